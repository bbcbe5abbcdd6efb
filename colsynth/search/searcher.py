"""The searcher: decides which plans to try, so that the best are found without trying all.

A search starts with the default plans of algorithms. `sweep` varies one choice after the other,
from the best plan so far. `climb` works in rounds: it tries neighbours of the best plan of each
algorithm, alternating between algorithms, the most promising first. Only predictions decide, never
the clock, so equal inputs try equal plans with any number of processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, zip_longest
from math import exp, inf, log

from colsynth.bounds.runtime import RuntimeBound
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.runtimes.selection import SMALL
from colsynth.search.least_times import Known, LeastTimes
from colsynth.search.levels import CLOSE, NEAR, PROMISING, REPEATED, WORTH, swept
from colsynth.search.means import Means
from colsynth.search.measured import NOT_ASKED, Limit, Measured
from colsynth.search.neighbours import Alternatives, Neighbours
from colsynth.search.objective import Objective
from colsynth.search.plan import Plan
from colsynth.search.workshop import Workshop

_ROUND = 24
"""Evaluations of a round of `climb`, before the best plans are determined again."""

Names = Sequence[str]
"""Of algorithms, or of choices."""


class Searcher:
    """All results so far, and the choice of plans to try next.

    Parameters
    ----------
    workshop : Workshop
    objective : Objective
    means : Means
    protocols : tuple of str
        Protocols that may be tried.
    pinned : frozenset of str
        Options, by field, that the user gave; they are not varied.
    floors : tuple of RuntimeBound
        The least time of any file, at every size. The sweep ends near it.
    known : Known, optional
        Results of other searches of the case. They are not measured again, but count as if.
    shows_all : bool
        Whether plans that are far too slow are simulated too, for somebody to see their times:
        those that may be the best of their algorithm.
    """

    def __init__(
        self,
        workshop: Workshop,
        objective: Objective,
        means: Means,
        protocols: tuple[str, ...],
        pinned: frozenset[str] = frozenset(),
        floors: tuple[RuntimeBound, ...] = (),
        known: Known | None = None,
        *,
        shows_all: bool = False,
    ) -> None:
        self.workshop, self.objective, self.means = workshop, objective, means
        self.protocols, self.pinned, self.floors = protocols, pinned, floors
        told = known or Known()
        self.known, self.shows_all = told.results, shows_all
        self._times, self._own_times = told.times, LeastTimes([True] * len(workshop.case.sizes))
        self.found: dict[Plan, Measured] = {}
        size = workshop.case.sizes[objective.main]
        self._neighbours = Neighbours(workshop.case, size, protocols, pinned, self.found)
        self._programs: set[tuple[object, ...]] = set()  # protocol, shape and seconds of each
        self.evaluations = 0
        self.work = 0
        self.most_evaluations: int | None = means.budget
        self.most_work: int | None = None

    # What is known

    def best(self, *algorithms: str) -> Measured | None:
        """Return the best result of some algorithms, or of all."""
        known = self.found.values()
        return self.objective.best(
            m for m in known if not algorithms or m.plan.algorithm in algorithms
        )

    def behind(self, measured: Measured, place: int | None = None) -> float:
        """Return the ratio of a plan's time to the floor, infinite where either is unknown.

        It is that at the size with the largest weight, unless another place is given.
        """
        at = self.objective.main if place is None else place
        seconds, known = measured.seconds[at], bool(self.floors) and measured.exact[at]
        return seconds / self.floors[at].seconds if seconds and known else float("inf")

    def slowest(self, best: Measured | None) -> float:
        """Return the time, at the main size, beyond which a plan need not be simulated.

        It would not be varied further (`PROMISING`), nor be the best: other sizes weigh too little.
        Where calls do not use the file of the best plan, a slow one that serves them is better.
        """
        score = None if best is None else self.objective.score(best)
        seconds = None if best is None else best.seconds[self.objective.main]
        if score is None or score[0] > 0 or seconds is None:
            return inf
        return PROMISING * seconds

    def limit(self, plan: Plan, slowest: float) -> Limit:
        """Return the times that are asked for of a plan, given what `slowest` returns.

        Those of a program for one size are asked for at others if it wins (`LeastTimes.of_use`).
        """
        place, case = self.objective.main, self.workshop.case
        if plan.size is not None or self._times is None:
            most = (inf if plan.size is None else NOT_ASKED,) * len(case.sizes)
        else:
            most = self._times.limits(plan)
        own = self._own_times.limits(plan)[place] if self.shows_all else slowest
        limit = Limit((*most[:place], own, *most[place + 1 :]), None if self.shows_all else place)
        known = self.known.get(plan)
        times = (None,) * len(case.sizes) if known is None else known.seconds
        return limit.without(times, case.tried(plan.protocol))

    def may_win(self, least: Sequence[float]) -> bool:
        """Whether a program that takes so many seconds at each size, or more, may be the best."""
        best = self.best()
        score = None if best is None else self.objective.score(best)
        if score is None or score[0] > 0 or not self.floors:
            return True
        weighted = zip(self.objective.weights, self.floors, least, strict=True)
        return sum(w * log(max(floor.seconds, time)) for w, floor, time in weighted) < score[1]

    def is_near(self) -> bool:
        """Whether some plan is near its floor (`NEAR`), at medium sizes too (`CLOSE`)."""
        best = self.best()
        if best is None or self.behind(best) > NEAR:
            return False
        sizes = enumerate(zip(self.workshop.case.sizes, self.objective.weights, strict=True))
        others = (place for place, (size, weight) in sizes if weight and size > SMALL)
        return all(self.behind(best, place) <= CLOSE for place in others)

    def is_spent(self) -> bool:
        """Whether the budget allows no further evaluation."""
        spent = self.most_evaluations is not None and self.evaluations >= self.most_evaluations
        return spent or (self.most_work is not None and self.work >= self.most_work)

    # What to try

    def try_all(self, batch: Sequence[Alternatives]) -> None:
        """Simulate plans without a result, within the budget, in the order of the batch."""
        fresh = [x for x in dict.fromkeys(batch) if x and not self._is_known(x)]
        if self.most_evaluations is not None:
            fresh = fresh[: max(0, self.most_evaluations - self.evaluations)]
        best = self.best()
        slowest = self.slowest(best)
        asked = {plan: self.limit(plan, slowest) for item in fresh for plan in item}
        recalled = {item: self._recalled(item, asked) for item in fresh}
        waiting = [item[len(recalled[item]) :] for item in fresh if not _ends(recalled[item])]
        measured: dict[Plan, list[Measured]] = {}
        journal = self.means.journal
        self._tell(len(fresh) - len(waiting), measured)
        for row in self._measured([x for x in waiting if x], asked):
            found = measured[row[0].plan] = [self._judged(m, asked) for m in row]
            last = found[-1]
            better = self.objective.best(m for m in (best, last) if m is not None) == last
            if self.means.sharing is not None and (better or last.plan in self.workshop.held):
                self.means.sharing.adopt(last)
            if better:
                best = last
                self.workshop.pin(best.plan)
            if journal is not None:
                for m in found:
                    journal.keep(self.workshop.case.key(m.plan), m.entry())
            self._tell(len(measured), measured)
        for item in fresh:
            known = recalled[item]
            rest = item[len(known) :]
            more = [] if _ends(known) or not rest else measured[rest[0]]
            self.take([*known, *more])

    def _measured(
        self, rows: Sequence[Alternatives], asked: Mapping[Plan, Limit]
    ) -> Iterator[list[Measured]]:
        """Yield for every row the results of its plans up to the first that gives a program."""
        pairs = [tuple((plan, asked[plan]) for plan in row) for row in rows]
        if self.means.sharing is not None:
            return self.means.sharing.run(pairs)
        return self.means.workers.run(self.workshop.measure, pairs)

    def _judged(self, measured: Measured, asked: Mapping[Plan, Limit]) -> Measured:
        """Return a result with the times that were asked for, and those that were known."""
        judged = asked[measured.plan].judged(measured)
        return judged.beside(self.known.get(measured.plan))

    def take(self, row: Sequence[Measured]) -> None:
        """Keep measurements, whose programs count as work, equal ones once."""
        for measured in row:
            self.found[measured.plan] = measured
            self.evaluations += 1
            if self.shows_all:
                self._own_times.note(measured)
            if self._times is not None:
                self._times.note(measured)
            weighed = zip(measured.seconds, self.objective.weights, strict=True)
            seconds = tuple(time for time, weight in weighed if weight)
            program = measured.plan.protocol, measured.shape, seconds
            if measured.shape is not None and program not in self._programs:
                self.work += measured.shape.steps
                if any(seconds):
                    self._programs.add(program)

    def _is_known(self, item: Alternatives) -> bool:
        """Whether alternatives were tried, up to the first that fits."""
        for plan in item:
            if plan not in self.found:
                return False
            if self.found[plan].refusal is None:
                return True
        return True

    def _recalled(self, item: Alternatives, asked: Mapping[Plan, Limit]) -> list[Measured]:
        """Return the results of alternatives that are known, from the first on."""
        rows: list[Measured] = []
        for plan in item:
            measured = self.found.get(plan) or self.known.get(plan) or self._noted(plan)
            if measured is None or not self._suffices(measured, asked[plan]):
                break
            rows.append(measured)
            if measured.refusal is None:
                break
        return rows

    def _suffices(self, measured: Measured, limit: Limit) -> bool:
        """Whether a result has all times that are asked for; what is known to others has, too."""
        whole = self._times is None and measured.plan in self.known
        return whole or limit.holds(measured)

    def _noted(self, plan: Plan) -> Measured | None:
        """Return the result of a plan in the journal; a key takes a hash of all sources."""
        if self.means.journal is None:
            return None
        case = self.workshop.case
        with suppress(ValueError):
            entry = self.means.journal.recall(case.key(plan))
            return Measured.of_entry(plan, case.tried(plan.protocol), entry)
        return None

    def _tell(self, more: int, fresh: dict[Plan, list[Measured]]) -> None:
        if self.means.progress is not None:
            tried = chain(self.found.values(), *fresh.values())
            refused = sum(measured.refusal is not None for measured in tried)
            what = f"compiling {self.workshop.case.problem.collective}"
            what += f", {refused} refused" if refused else ""
            done, most = self.evaluations + more, self.most_evaluations
            self.means.progress(what, done, 0 if most is None else max(done, most))

    def sweep(self, algorithms: Names, but: Collection[str] = (), only: Names = ()) -> None:
        """Vary the choices of `swept` but some, or only some, each from the best plan so far."""
        rounds = self.workshop.case.profile.rounds
        for name in (choice for choice in only or swept() if choice not in but):
            while not (self.is_spent() or self.is_near()) and (parent := self.best(*algorithms)):
                self.try_all(self._within(parent, self._neighbours.turned(parent, name)))
                best = self.best(*algorithms) or parent
                again = name in REPEATED and best != parent
                if not again or (rounds and self.ratio(parent, best) < WORTH):
                    break

    def vary_protocol(self, algorithms: Collection[str] = ALGORITHMS, only: str = "") -> None:
        """Try promising algorithms with all protocols, or with only one, unless a plan is near."""
        if len(self.protocols) > 1 and not self.is_near():
            plans = [
                replace(plan, protocol=protocol)
                for plan in self._promising()
                if plan.algorithm in algorithms and not self._neighbours.is_tied(plan)
                for protocol in self.protocols
                if only in ("", protocol)
            ]
            self.try_all([(plan,) for plan in dict.fromkeys(plans)])

    def climb(self) -> None:
        """Try neighbours of the best plans until none is new, or the budget is spent."""
        while not self.is_spent():
            batch = self._next()[:_ROUND]
            if not batch:
                return
            self.try_all(batch)

    def _next(self) -> list[Alternatives]:
        """Return new neighbours of the best plan of each algorithm, the most promising first."""
        parents = sorted(ranked := self._promising(), key=lambda plan: ranked[plan])
        rows = []
        for parent in (self.found[plan] for plan in parents):
            near = self._within(parent, self._neighbours.all_of(parent))
            rows.append([item for item in near if not self._is_known(item)])
        dealt = (item for turn in zip_longest(*rows) for item in turn if item is not None)
        return list(dict.fromkeys(dealt))

    def _promising(self) -> dict[Plan, float]:
        """Return the best plan of each algorithm that may be varied, and how far it is behind."""
        ranked: dict[Plan, float] = {}
        best = self.best()
        for algorithm in dict.fromkeys(plan.algorithm for plan in self.found):
            own = self.best(algorithm)
            if own is None or best is None:
                continue
            behind = self.ratio(own, best)
            if behind <= PROMISING:
                ranked[own.plan] = behind
        return ranked

    def ratio(self, own: Measured, best: Measured) -> float:
        """Return the ratio of the times of two plans; 1 where one has no score.

        It is that of the main size where that is far too slow: it must not matter whether such
        plans were simulated (`limit`).
        """
        mine, theirs = self.objective.score(own), self.objective.score(best)
        if mine is None or theirs is None:
            return 1.0
        slow, fast = (m.seconds[self.objective.main] for m in (own, best))
        if slow is not None and fast is not None and slow > PROMISING * fast:
            return slow / fast
        return exp(mine[1] - theirs[1])

    def _within(self, parent: Measured, rows: Iterable[Alternatives]) -> list[Alternatives]:
        """Return neighbours of a plan without those for which the budget has no room."""
        return [tuple(x for x in row if self._has_room(parent, x)) for row in rows]

    def _has_room(self, parent: Measured, plan: Plan) -> bool:
        """Whether the remaining budget suffices for a plan, by an estimate of its steps."""
        if self.most_work is None or parent.shape is None:
            return True
        times = plan.replicas / parent.plan.replicas
        return self.work + parent.shape.steps * times <= self.most_work


def _ends(known: Sequence[Measured]) -> bool:
    """Whether the last known alternative fits."""
    return bool(known) and known[-1].refusal is None
