"""The wish of a user: the choices that are fixed before a search, and its level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.options import options_of, spelt
from colsynth.pipeline.registry import ALGORITHMS, pipeline_of
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import power_of_two
from colsynth.search.case import Case
from colsynth.search.hops import Hops
from colsynth.search.levels import BASELINES, CLOSE, DEFAULT_LEVEL, HEAVY, OWN
from colsynth.search.measured import Measured
from colsynth.search.objective import Objective
from colsynth.search.plan import Plan
from colsynth.search.variants import (
    COPIED,
    DIVIDED,
    FEWER,
    GATHERED,
    HALVED,
    KEPT,
    MEETING,
    MEETING_IN_PLANS,
    MEETING_IN_RING,
    MOST_COPIES,
    PAIRS,
    RING,
    STAGED,
    STRAIGHT,
    TWO_SHOT,
    VARIANTS,
)
from colsynth.synthesis.baselines.rails import divides, is_between, meets


@dataclass(frozen=True)
class Wish:
    """The choices that are fixed before a search.

    Parameters
    ----------
    algorithm : str or None
        None: any algorithm.
    settings : mapping
        Options of passes by field. The search does not vary them.
    protocol : str or None
        None: `usual`, and others where the level tries them.
    usual : str
        The protocol to begin with where none is fixed.
    passes : str or None
        Text of a pipeline that is run unchanged.
    level : int
        Index into `LEVELS`.
    rounds : bool
        Whether pipelines end in rounds (`Profile.rounds`).
    size : int or None
        Bytes of the message that programs are for, timed schedules among them; None: of several
        sizes, and timed schedules have their own.
    """

    algorithm: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    usual: str = "Simple"
    passes: str | None = None
    level: int = DEFAULT_LEVEL
    rounds: bool = False
    size: int | None = None

    def start(self, algorithm: str, **values: Any) -> Plan:
        """Return the plan of an algorithm with all fixed options.

        Raises
        ------
        InputError
            CS217 for options that the algorithm does not have, CS210 for wrong values.
        """
        asked = {**values, **self.settings}
        if self.size is not None and "size" in _fields(algorithm, self.rounds):
            asked = {"size": self.size, **asked}
        if asked.get("trees") == "optimal" and "parts" in _fields(algorithm, self.rounds):
            asked = {"parts": "keep", **asked}  # exact weights, even if fewer calls select the file
        pipeline = configured(algorithm, asked, rounds=self.rounds)
        return Plan(algorithm, self.protocol or self.usual, str(pipeline), self.size)

    @property
    def is_open(self) -> bool:
        """Whether other algorithms are tried than the first, each as it stands."""
        fixed = self.algorithm is not None or self.passes is not None or bool(self.settings)
        return not fixed and self.level > 0

    @property
    def pinned(self) -> frozenset[str]:
        """The options that are not varied: trees that reach the optimum do so at one bandwidth."""
        implied = {"bandwidth"} if self.settings.get("trees") == "optimal" else set()
        return frozenset(self.settings.keys() | implied)

    def starts(self, algorithm: str) -> tuple[Plan, ...]:
        """Return the plan of an algorithm, and that of a timed schedule for large messages.

        The latter may be faster: an alltoall of 64 MiB by rccl on an MI250 takes 1551 us, not 1579.
        """
        plan = self.start(algorithm)
        if self.size is None or algorithm == HEAVY:
            return (plan,)
        large = replace(self, size=None).start(algorithm)
        return tuple(dict.fromkeys((plan, replace(large, size=self.size))))

    def variants(self, algorithm: str, case: Case, hops: Hops) -> tuple[Plan, ...]:
        """Return further plans of an algorithm to start from (`VARIANTS`), where they are open.

        They differ in their threadblocks, which rounds do not have.

        Parameters
        ----------
        algorithm : str
        case : Case
        hops : Hops
            Where they dominate, `STRAIGHT` is tried and `RING` is not; where one more may be worth
            it, `TWO_SHOT` is, and `STAGED` in many boxes.
        """
        profile, gathers = case.profile, case.problem.collective is Collective.ALLGATHER
        xml = profile.xml and algorithm in DIVIDED
        divided = xml and divides(case.problem, profile)
        ranks = case.problem.topology.ranks_by_box
        boxes = len(ranks)
        if gathers:
            found = self._with(GATHERED, algorithm)
            found += self._with(KEPT, algorithm) if xml and boxes == 1 else ()
        else:
            found = self._with(DIVIDED if divided else VARIANTS, algorithm)
        found += self._copies(algorithm, case)
        if divided and self.size and boxes == 2:
            found += self._with(HALVED, algorithm)
        if meets(case.problem):
            found += self._with(MEETING if profile.xml else MEETING_IN_PLANS, algorithm)
        if xml and boxes > 2 and not hops.dominate and (gathers or not profile.fuses):
            found += self._with(RING, algorithm)
            found += self._with(MEETING_IN_RING, algorithm) if meets(case.problem) else ()
        if is_between(case.problem, Collective.ALLREDUCE):
            found += self._with(STRAIGHT, algorithm) if hops.dominate else ()
            if xml and boxes > 2 and hops.one_more:
                found += self._with(TWO_SHOT, algorithm)
                staged = boxes > max(map(len, ranks)) and _has_stages(boxes)
                found += self._with(STAGED, algorithm) if staged else ()
        return found

    def every_variant(self, algorithm: str, case: Case) -> tuple[Plan, ...]:
        """Return the variants of an algorithm, whether hops take most of the time or not."""
        both = (
            self.variants(algorithm, case, Hops(dominate, one_more=True))
            for dominate in (True, False)
        )
        return tuple(dict.fromkeys(chain(*both, self.in_two_shots(algorithm, case))))

    def _copies(self, algorithm: str, case: Case) -> tuple[Plan, ...]:
        """Return the plans of an algorithm in copies (`COPIED`)."""
        peers = max(1, case.problem.topology.size - 1)
        most = min(MOST_COPIES, power_of_two(case.profile.usable_threadblocks // peers))
        numbers = (number for number in (most, most // 2) if number > 1)
        options = {COPIED: tuple({"instances": number} for number in numbers)}
        return self._with(options, algorithm)

    def in_two_shots(self, algorithm: str, case: Case) -> tuple[Plan, ...]:
        """Return plans for where no file sends along rails, or that of an algorithm is refused."""
        summed = case.problem.collective is Collective.ALLREDUCE and case.profile.xml
        return self._with(PAIRS, algorithm) if summed else ()

    def fewer(self, algorithm: str) -> tuple[Plan, ...]:
        """Return plans for where that of an algorithm is refused (`FEWER`), where they are open."""
        return self._with(FEWER, algorithm)

    def _with(
        self, options: Mapping[str, tuple[dict[str, Any], ...]], algorithm: str
    ) -> tuple[Plan, ...]:
        if self.rounds:
            return ()
        known = _fields(algorithm, self.rounds) - self.settings.keys()
        open_ = (values for values in options.get(algorithm, ()) if values.keys() <= known)
        return tuple(self.start(algorithm, **values) for values in open_)

    def variants_of(
        self,
        case: Case,
        found: Iterable[Measured],
        objective: Objective,
        hops: Hops,
        *protocols: str,
    ) -> list[tuple[Plan, ...]]:
        """Return the variants of all algorithms with a plan that was not too slow to simulate.

        Each has the protocol of the best plan of its algorithm, and once more those given here:
        what the pipeline as it stands does with protocols says little of its variants. It says
        least of those in which data takes several hops between boxes (`RING`, `TWO_SHOT`): these
        are tried with all protocols that are nearly as fast (`CLOSE`).
        """
        plans: dict[str, list[Measured]] = {}
        for measured in found:
            if measured.seconds[objective.main] is not None:
                plans.setdefault(measured.plan.algorithm, []).append(measured)
        rows: list[tuple[Plan, ...]] = []
        for name, own in plans.items():
            if (best := objective.best(own)) is None:
                continue
            first, every = (best.plan.protocol, *protocols), self.variants(name, case, hops)
            if "rails" not in plans:
                every += self.in_two_shots(name, case)
            for one in dict.fromkeys((*first, *_close(own, objective))):
                tried = (plan for plan in every if one in first or _is_indirect(plan))
                rows += [or_longer(replace(plan, protocol=one)) for plan in tried]
        return rows

    def check(self) -> None:
        """Raise if no algorithm has all options (CS217), or if a value is wrong (CS210)."""
        names = tuple(filter(self.allows, ALGORITHMS))
        if names:
            self.start(names[0])
            return
        for name in self.settings:
            if not any(name in _fields(algorithm, self.rounds) for algorithm in ALGORITHMS):
                asked = {name: self.settings[name]}
                configured(next(iter(ALGORITHMS)), asked, rounds=self.rounds)
        listed = ", ".join(f"--{spelt(name)}" for name in self.settings)
        phrase = f"no algorithm has {listed} together"
        raise InputError(Diagnostic("CS217", phrase, help=_owners(next(iter(self.settings)))))

    def allows(self, algorithm: str) -> bool:
        """Whether an algorithm has all fixed options."""
        return not self.settings or set(self.settings) <= _fields(algorithm, self.rounds)


def configured(algorithm: str, settings: Mapping[str, Any], *, rounds: bool = False) -> Pipeline:
    """Return the pipeline of an algorithm with values in the passes that take them.

    Raises
    ------
    InputError
        CS213 for an unknown algorithm, CS217 for options that it does not have, CS210 for
        values out of range.
    """
    if algorithm not in ALGORITHMS:
        phrase = f"there is no algorithm {algorithm!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(algorithm, ALGORITHMS)))
    for name in settings:
        if name not in _fields(algorithm, rounds):
            with_what = "rounds" if name in _fields(algorithm) else f"-a {algorithm}"
            phrase = f"--{spelt(name)} does not go with {with_what}"
            raise InputError(Diagnostic("CS217", phrase, help=_owners(name)))
    passes: list[Any] = []
    for item in Pipeline.from_text(pipeline_of(algorithm, rounds=rounds)).passes:
        known = {option.field for option in options_of(type(item))}
        own = {name: value for name, value in settings.items() if name in known}
        passes.append(replace(item, **own))  # type: ignore[type-var]
    return Pipeline(tuple(passes))


def _fields(algorithm: str, rounds: bool = False) -> frozenset[str]:
    passes = Pipeline.from_text(pipeline_of(algorithm, rounds=rounds)).passes
    return frozenset(option.field for item in passes for option in options_of(type(item)))


def _owners(name: str) -> str:
    """Return advice that names the algorithms with an option."""
    found = [algorithm for algorithm in ALGORITHMS if name in _fields(algorithm)]
    return f"it is an option of -a {', '.join(found)}"


def algorithm_names(
    problem: Problem, chosen: Sequence[str] | None = None, profile: Profile | None = None
) -> tuple[str, ...]:
    """Return the algorithms to try, all or those chosen; colsynth's own come first.

    Shortest-path trees are left out where switches would only have them refused, `HEAVY` where
    nobody chose it, `multicast` unless files of `profile` and a switch can do it, and `pipelined`
    on runtimes of plans. Where a runtime adds while it receives, that is for an allreduce alone: an
    allgather has nothing to add up, and rings are faster in a reduce-scatter.

    Raises
    ------
    InputError
        CS213 for an unknown algorithm, or an empty list.
    """
    from colsynth.cost.shared_switch import usable_switch
    from colsynth.synthesis.bfb.rails import rail_ways

    if chosen is not None and not chosen:
        advice = f"valid: {', '.join(ALGORITHMS)}"
        raise InputError(Diagnostic("CS213", "--algorithms names none", help=advice))
    for name in chosen or ():
        configured(name, {})
    grows = problem.topology.is_direct or rail_ways(problem.topology)
    unfit = {HEAVY} if grows else {HEAVY, "bfb"}
    if profile is None or usable_switch(problem, profile) is None:
        unfit.add("multicast")
    adds = problem.collective is Collective.ALLREDUCE
    if profile is None or not profile.xml or (profile.fuses and not adds):
        unfit.add("pipelined")
    every = [name for name in ALGORITHMS if name not in unfit]
    names = every if chosen is None else dict.fromkeys(chosen)
    return tuple(sorted(names, key=lambda name: name not in OWN))


def is_baseline(algorithm: str) -> bool:
    """Whether an algorithm is a baseline, as libraries have."""
    return algorithm in BASELINES


def or_longer(plan: Plan) -> tuple[Plan, ...]:
    """Return a plan of rails, and those with fewer segments, for where it has too many steps.

    By msccl, a reduce-scatter of 64 MiB on eight DGX H100 takes 240 us with two segments, where
    four do not fit, and 261 without.
    """
    found, segments = [plan], plan.option("segments", 1)
    while plan.algorithm == "rails" and segments > 2:
        segments //= 2
        found += plan.with_each([{"build-rails.segments": segments}])
    return tuple(found)


def _has_stages(boxes: int) -> bool:
    """Return whether so many boxes exchange in several stages (`STAGED`)."""
    from colsynth.synthesis.baselines.rails_two_shot_numbers import radices

    return all(len(radices(boxes, one["radix"])) > 1 for one in STAGED["rails"])


def _is_indirect(plan: Plan) -> bool:
    """Return whether data takes several hops between boxes."""
    exchange: str = plan.option("exchange", "direct")
    return exchange != "direct"


def _close(found: Iterable[Measured], objective: Objective) -> list[str]:
    """Return the protocols of results that are nearly as fast as the best, at the main size."""
    known = ((m.seconds[objective.main], m.plan.protocol) for m in found)
    times = [(seconds, protocol) for seconds, protocol in known if seconds is not None]
    least = min(times, default=(0.0, ""))[0]
    return [protocol for seconds, protocol in times if seconds <= CLOSE * least]
