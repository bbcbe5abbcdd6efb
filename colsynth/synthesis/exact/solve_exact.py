"""Pass solve-exact: Problem -> TimedSchedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from math import floor
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import (
    Diagnostic,
    InfeasibleError,
    InputError,
    LimitError,
    did_you_mean,
    require_least,
)
from colsynth.kernels.distances import FAR
from colsynth.model import Collective, Direction, Problem, TimeBound, TimedPhase, TimedSchedule
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.sketches.suggest import suggest
from colsynth.synthesis.exact.instance import Instance, Limits, instance_of, turns
from colsynth.synthesis.exact.joining import Joined, joined
from colsynth.synthesis.exact.joint import JointQuestion
from colsynth.synthesis.exact.pack import on_all_hops, outward_rows, packed, steps_of
from colsynth.synthesis.exact.retime import Found, Retiming
from colsynth.synthesis.exact.steps import Answer, Question, fewest_steps
from colsynth.synthesis.exact.worker import require_solver, solve
from colsynth.synthesis.timed.attempt import Setting, start_of_phase
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.synthesis.timed.phases import backwards, last_end
from colsynth.synthesis.timed.sketched import barred
from colsynth.units import format_duration, plural

Ints = NDArray[np.int64]

_BETWEEN = ("all", "relays")

_MOST = 400_000
"""Variables before symmetry, beyond which models take minutes to be made."""


@dataclass(frozen=True, slots=True)
class SolveExact:
    """Find the shortest schedule in few steps, and say how short any such schedule can be.

    A constraint solver decides routes, order and batches together. `match-chunks` gives it a
    schedule to begin with.

    Parameters
    ----------
    size : int
        Bytes of the message.
    chunks_per_gpu : int
        Chunks that every shard is cut into.
    steps : int
        Most steps, in each phase of an allreduce; 0 tries the fewest possible and one more. A
        schedule of more is refused, so neither `intervals` nor `fallback` counts then.
    work : int
        Limit of the solver, in units of its own work, each about a second, shared evenly by all
        questions; as much again for both phases of an allreduce together. The clock decides
        nothing.
    symmetry : bool
        Whether all boxes do the same, and all GPUs of a box where its links are.
    intervals : bool
        Whether chunks may then go at times of their own: all at once, where chunks times hops are
        at most 1000 per unit of the work that is left, otherwise a few at a time.
    fallback : bool
        Whether to take the schedule of `match-chunks` where it is no longer. Files lose the times
        of a schedule, so one in few steps may be faster in a file though it is longer here.
    between : str
        Which GPUs send to other boxes: ``"all"``, or ``"relays"``, one for every NIC, as in the
        sketch of that name that `colsynth sketch suggest` proposes. Then far fewer choices are
        left, so the solver finds better schedules with the same work.
    """

    size: int = 10**9
    chunks_per_gpu: int = 1
    steps: int = 0
    work: int = 10
    symmetry: bool = True
    intervals: bool = True
    fallback: bool = True
    between: str = "all"

    name: ClassVar[str] = "solve-exact"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = TimedSchedule
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("chunks_per_gpu", (1, 2, 4), ladder=True),
        Choice("size", (2**16, 2**20, 2**24), ladder=True),
        Choice("steps", (0, 3, 4, 5, 6)),
    )

    def __post_init__(self) -> None:
        for option, least in (("size", 1), ("chunks_per_gpu", 1), ("steps", 0), ("work", 1)):
            require_least(option.replace("_", "-"), getattr(self, option), least)
        if self.between not in _BETWEEN:
            phrase = f"there is no between {self.between!r}"
            raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(self.between, _BETWEEN)))

    def run(self, value: Problem, target: Target) -> TimedSchedule:
        """Return the shortest schedule found.

        Raises
        ------
        InfeasibleError
            CS302: some chunk cannot reach somebody who wants it.
        InputError
            As `match-chunks`; CS326: OR-tools is not installed. CS143: no boxes that share NICs.
        LimitError
            CS327: too many choices for the solver, or no schedule within `steps` was found.
        """
        if self.between == "all":
            return solve_problem(value, self, target, Limits())
        found = solve_problem(_relayed(value), self, target, Limits())
        free = MatchChunks(self.size, self.chunks_per_gpu, gap="none").run(value, target)
        claim = f"{found.claim}, with one relay for every NIC"
        return replace(found, problem=value, bound=free.bound, claim=claim)


def _relayed(problem: Problem) -> Problem:
    """Return a problem that keeps to the relays proposed for its topology."""
    found = {x.name: x.sketch for x in suggest(problem.topology)}
    if "relays" not in found or problem.sketch is not None:
        phrase = "between=relays is for boxes whose GPUs share NICs, and goes with no sketch"
        raise InputError(Diagnostic("CS143", phrase, help="leave it out"))
    return replace(problem, sketch=found["relays"])


def solve_problem(
    problem: Problem, asked: SolveExact, target: Target, limits: Limits
) -> TimedSchedule:
    """Return the shortest schedule found for a problem within limits.

    Parameters
    ----------
    problem : Problem
    asked : SolveExact
    target : Target
    limits : Limits
        In the direction of data.
    """
    require_solver()
    start = MatchChunks(asked.size, asked.chunks_per_gpu, gap="none").run(problem, target)
    setting = Setting(problem, asked.size, asked.chunks_per_gpu, spaced=False)
    boxes = problem.topology.gpu_boxes
    if asked.symmetry and problem.sketch is not None and problem.sketch.symmetries:
        limits = replace(limits, symmetries=problem.sketch.symmetries)
    if asked.symmetry and not limits.symmetries and -1 not in boxes:
        limits = replace(limits, symmetries=turns(boxes))
    done: list[TimedPhase] = []
    proofs: list[str] = []
    bound = start.bound
    for item, known in zip(setting.wants, start.phases, strict=True):
        way = _Phase(setting, item, limits, asked, target)
        phase, found = way.solved(known, start, done)
        done.append(phase)
        proofs.append(found.proof)
        least = found.bound * start.tick
        if least > bound.seconds and len(start.phases) == 1 and _free(limits):
            bound = TimeBound(least, "all routes and orders, searched by the solver")
    start = replace(start, bound=bound)
    end = max(map(last_end, done))
    claim = ", then ".join(proofs)
    together = way.joined(done) if _joins(problem) else None
    if together is not None and together.end < end:
        end, done, claim = together.end, list(together.phases), together.proof
    # What the matcher finds obeys no limits.
    if asked.fallback and not asked.steps and end >= start.ticks and _free(limits):
        return replace(start, claim=f"{claim}; {_beside(start, end, ' in steps' in claim)}")
    return replace(start, phases=tuple(done), ticks=end, claim=claim)


def _beside(matched: TimedSchedule, end: int, stepped: bool) -> str:
    """Return text that the matcher's schedule is taken: a step may end before the next begins."""
    time = format_duration(end * matched.tick)
    early = f"sent as early as it can be, it takes {time}, and " * stepped
    other = "a shorter one" if matched.ticks < end else "one as short"
    return f"{early}{MatchChunks.name} found {other}, which is taken"


def _joins(problem: Problem) -> bool:
    """Whether both phases of an allreduce may use the same hops for all chunks."""
    narrow = problem.sketch is not None and problem.sketch.leave
    return problem.collective is Collective.ALLREDUCE and not problem.groups and not narrow


def _free(limits: Limits) -> bool:
    return limits.pairs is None and not limits.barred


class _Phase:
    """One phase of a problem and its instance."""

    def __init__(
        self, setting: Setting, item: Wants, limits: Limits, asked: SolveExact, target: Target
    ) -> None:
        self._setting, self._item, self._asked, self._target = setting, item, asked, target
        self._inwards = item.direction is Direction.IN
        self._hops, self._was = setting.outwards(item)
        limits = _turned(limits) if self._inwards else limits
        kept = barred(setting.problem, self._hops, item)
        self._limits = replace(limits, barred=limits.barred | kept)
        self._instance = self._made(self._limits)

    @property
    def _steps(self) -> int:
        """The steps asked for, 0 for none; no more than chunks arrive, one at least in each."""
        return min(self._asked.steps, self._instance.chunks * (self._instance.gpus - 1))

    def _made(self, limits: Limits) -> Instance:
        setting = self._setting
        sizes = setting.gpus, setting.links
        return instance_of(*sizes, self._hops, self._item, setting.problem.members, limits)

    def solved(
        self, known: TimedPhase, start: TimedSchedule, before: list[TimedPhase]
    ) -> tuple[TimedPhase, Found]:
        """Return the phase in the direction of data, and how it was found.

        Parameters
        ----------
        known : TimedPhase
            What the matcher found.
        start : TimedSchedule
            Of which `known` is a phase.
        before : list of TimedPhase
        """
        begin = start_of_phase(self._setting, self._item, before)
        ticks = start.bound.seconds / start.tick if len(start.phases) == 1 else Fraction(0)
        best = self._searched(known, ticks, begin)
        if best is None and self._instance.symmetries:
            self._instance = self._made(replace(self._limits, symmetries=()))
            best = self._searched(known, ticks, begin)
        if best is None:
            phrase = "no schedule of so few steps was found"
            advice = "allow more --steps or more --work"
            raise LimitError(Diagnostic("CS327", phrase, help=advice))
        phase = on_all_hops(best.phase, self._instance, self._hops)
        if self._inwards:
            phase = backwards(phase, self._setting.hops, self._was, last_end(phase))
        return phase, best

    def joined(self, known: Sequence[TimedPhase]) -> Joined | None:
        """Return the shortest allreduce found whose phases share steps; this is its outward one."""
        asked, instance = self._asked, self._instance
        self._target.progress("solving for both phases together", 0, 0)
        way = JointQuestion(2 * self._steps, asked.work, self._target.seed % 2**31)
        found = joined(instance, known, self._item.number, way)
        if found is None:
            return None
        phases = tuple(on_all_hops(phase, instance, self._hops) for phase in found.phases)
        proof = self._proof(instance, found.answer, found.steps)
        return replace(found, phases=phases, proof=f"{proof}, both phases together")

    def _searched(
        self, known: TimedPhase, ticks: Fraction, begin: tuple[Ints, Ints]
    ) -> Found | None:
        """Return the shortest schedule found, outwards."""
        asked, instance, item = self._asked, self._instance, self._item
        fewest = fewest_steps(instance)
        intervals = asked.intervals and not asked.steps
        large = self._is_large(fewest, intervals)
        rows, seed = outward_rows(known, self._was), self._target.seed % 2**31
        hint = steps_of(instance, rows, item)
        best: Found | None = None
        tried: Iterable[int] = (self._steps,) if asked.steps else count(fewest)
        left = asked.work / len(self._setting.wants)
        work = left / ((1 if asked.steps else 2) + intervals)
        fewer, least = Answer("unknown"), floor(ticks / instance.unit)
        for steps in () if large else tried:
            self._target.progress(f"solving for {plural(steps, 'step')}", 0, 0)
            shown = [x for x in hint if x.step < steps]
            below = fewer.units if fewer.status == "optimal" else 0
            answer = solve(instance, Question(steps, min(work, left), seed, least, below, shown))
            left -= answer.work
            if answer.status == "infeasible" and below and best is not None:
                best = best._replace(proof=self._proof(instance, fewer, steps))
            fewer, before = answer, best
            if answer.sent:
                phase = packed(instance, answer.sent, item, begin)
                if best is None or last_end(phase) < best.end:
                    best = Found(last_end(phase), phase, self._proof(instance, answer, steps))
            if best is not None and best.end <= ticks:
                return best
            # One more step is asked while that helps; intervals find the same without steps.
            if steps > fewest and (intervals or best is before or left < work / 10):
                break
        if not intervals:
            return best
        self._target.progress("solving without steps", 0, 0)
        asks = [instance]
        if instance.symmetries:
            asks.append(self._made(replace(self._limits, symmetries=())))
        way = Retiming(item, begin, floor(ticks), left, seed, self._proof)
        return way.best(asks, rows, best)

    def _is_large(self, fewest: int, intervals: bool) -> bool:
        """Whether the model of steps would be too large; refuse what the limits do not allow."""
        if fewest >= FAR:
            phrase = "some chunk cannot reach a GPU that wants it over the links allowed"
            raise InfeasibleError(Diagnostic("CS302", phrase, help="allow more links"))
        choices = self._instance.chunks * len(self._instance.hops) * (max(fewest, self._steps) + 1)
        if choices > _MOST and not intervals:
            phrase = f"{choices} choices of chunk, link and step are too many for -a exact"
            note = f"it takes up to {_MOST}"
            advice = "take fewer --steps or --chunks-per-gpu, or -a ten"
            raise LimitError(Diagnostic("CS327", phrase, notes=(note,), help=advice))
        return choices > _MOST

    def _proof(self, instance: Instance, answer: Answer, steps: int = 0) -> str:
        """Return what is proven, under all conditions that it is proven for; 0: without steps."""
        unit = instance.unit * self._setting.ticks.unit
        where = f"{plural(steps, 'step')}, " * bool(steps)
        where += f"{plural(self._asked.chunks_per_gpu, 'chunk')} per GPU"
        where += ", GPUs that do the same by symmetry" * bool(instance.symmetries)
        time = format_duration(answer.units * unit) + " in steps" * bool(steps)
        if answer.status == "optimal":
            return f"{time} is optimal for {where}"
        return f"{time}, at least {format_duration(answer.bound * unit)} for {where}"


def _turned(limits: Limits) -> Limits:
    """Return limits for the network with all links turned around."""
    pairs = None if limits.pairs is None else frozenset((v, u) for u, v in limits.pairs)
    return replace(limits, pairs=pairs, barred=frozenset((c, v, u) for c, u, v in limits.barred))
