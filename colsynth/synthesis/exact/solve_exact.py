"""Pass solve-exact: Problem -> TimedSchedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor
from typing import ClassVar

from colsynth.errors import Diagnostic, LimitError, require_least
from colsynth.model import Direction, Problem, TimedPhase, TimedSchedule
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.exact.instance import Limits, box_turns, instance_of
from colsynth.synthesis.exact.pack import on_all_hops, outward_rows, packed, steps_of
from colsynth.synthesis.exact.steps import Answer, Question, fewest_steps, solve, solver_module
from colsynth.synthesis.timed.attempt import Setting, start_of_phase
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.synthesis.timed.phases import backwards, last_end
from colsynth.synthesis.timed.sketched import barred
from colsynth.units import format_duration, plural

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
        Most steps; 0 tries the fewest possible and one more.
    work : int
        Limit of the solver, in units of its own work, each about a second. The clock decides
        nothing.
    symmetry : bool
        Whether all boxes do the same.
    fallback : bool
        Whether to take the schedule of `match-chunks` where it is no longer. Files lose the times
        of a schedule, so one in few steps may be faster in a file though it is longer here.
    """

    size: int = 10**9
    chunks_per_gpu: int = 1
    steps: int = 0
    work: int = 10
    symmetry: bool = True
    fallback: bool = True

    name: ClassVar[str] = "solve-exact"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = TimedSchedule
    any_protocol: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("chunks_per_gpu", (1, 2, 4), ladder=True),
        Choice("size", (2**16, 2**20, 2**24), ladder=True),
        Choice("steps", (0, 3, 4, 5, 6)),
    )

    def __post_init__(self) -> None:
        for option, least in (("size", 1), ("chunks_per_gpu", 1), ("steps", 0), ("work", 1)):
            require_least(option.replace("_", "-"), getattr(self, option), least)

    def run(self, value: Problem, target: Target) -> TimedSchedule:
        """Return the shortest schedule found.

        Raises
        ------
        InfeasibleError
            CS302: some chunk cannot reach somebody who wants it.
        InputError
            As `match-chunks`; CS326: OR-tools is not installed.
        LimitError
            CS327: too many choices for the solver.
        """
        return solve_problem(value, self, target, Limits())


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
    solver_module()
    start = MatchChunks(asked.size, asked.chunks_per_gpu, gap="none").run(problem, target)
    setting = Setting(problem, asked.size, asked.chunks_per_gpu, spaced=False)
    boxes = [problem.topology.nodes[node].box for node in problem.topology.ranks]
    if asked.symmetry and problem.sketch is not None and problem.sketch.symmetries:
        limits = replace(limits, symmetries=problem.sketch.symmetries)
    if asked.symmetry and not limits.symmetries and None not in boxes:
        limits = replace(limits, symmetries=box_turns([box or 0 for box in boxes]))
    done: list[TimedPhase] = []
    proofs: list[str] = []
    for item, known in zip(setting.wants, start.phases, strict=True):
        phase, proof = _Phase(setting, item, limits, asked, target).solved(known, start, done)
        done.append(phase)
        proofs.append(proof)
    end = max(map(last_end, done))
    claim = ", then ".join(proofs)
    # What the matcher finds obeys no limits.
    if asked.fallback and end >= start.ticks and limits.pairs is None and not limits.barred:
        return replace(start, claim=f"{claim}; the schedule of {MatchChunks.name} is no longer")
    return replace(start, phases=tuple(done), ticks=end, claim=claim)


class _Phase:
    """One phase of a problem and its instance."""

    def __init__(
        self, setting: Setting, item: Wants, limits: Limits, asked: SolveExact, target: Target
    ) -> None:
        self._setting, self._item, self._asked, self._target = setting, item, asked, target
        self._inwards = item.direction is Direction.IN
        self._hops, self._was = setting.outwards(item)
        if self._inwards:
            limits = _turned(limits)
        kept = barred(setting.problem, self._hops, item)
        limits = replace(limits, barred=limits.barred | kept)
        self._instance = instance_of(
            setting.gpus, setting.links, self._hops, item, setting.problem.members, limits
        )
        self._symmetric = bool(self._instance.symmetries)

    def solved(
        self, known: TimedPhase, start: TimedSchedule, before: list[TimedPhase]
    ) -> tuple[TimedPhase, str]:
        """Return the phase in the direction of data, and what is proven of it.

        Parameters
        ----------
        known : TimedPhase
            What the matcher found.
        start : TimedSchedule
            Of which `known` is a phase.
        before : list of TimedPhase
        """
        asked, instance, item = self._asked, self._instance, self._item
        fewest = fewest_steps(instance)
        self._refuse_too_large(fewest)
        hint = steps_of(instance, outward_rows(known, self._was), item)
        ticks = start.bound.seconds / start.tick if len(start.phases) == 1 else 0
        begin = start_of_phase(self._setting, item, before)
        best: tuple[int, TimedPhase, str] | None = None
        for steps in (asked.steps,) if asked.steps else (fewest, fewest + 1):
            self._target.progress(f"solving for {steps} steps", 0, 0)
            shown = [x for x in hint if x.step < steps]
            least = floor(ticks / instance.unit)
            seed = self._target.seed % 2**31
            answer = solve(instance, Question(steps, asked.work, seed, least, shown))
            if answer.sent:
                phase = packed(instance, answer.sent, item, begin)
                if best is None or last_end(phase) < best[0]:
                    best = last_end(phase), phase, self._proof(answer, steps)
        if best is None:
            phrase = f"no schedule of {asked.steps or fewest + 1} steps was found"
            advice = "allow more --steps or more --work"
            raise LimitError(Diagnostic("CS327", phrase, help=advice))
        phase = on_all_hops(best[1], instance, self._hops)
        if self._inwards:
            phase = backwards(phase, self._setting.hops, self._was, last_end(phase))
        return phase, best[2]

    def _refuse_too_large(self, fewest: int) -> None:
        choices = self._instance.chunks * len(self._instance.hops) * (fewest + 1)
        if choices > _MOST:
            phrase = f"{choices} choices of chunk, link and step are too many for -a exact"
            note = f"it takes up to {_MOST}"
            advice = "take fewer --chunks-per-gpu, or -a ten"
            raise LimitError(Diagnostic("CS327", phrase, notes=(note,), help=advice))

    def _proof(self, answer: Answer, steps: int) -> str:
        """Return what is proven, under all conditions that it is proven for."""
        unit = self._instance.unit * self._setting.ticks.unit
        chunks = plural(self._asked.chunks_per_gpu, "chunk")
        where = f"{plural(steps, 'step')}, {chunks} per GPU"
        where += ", boxes that do the same" * self._symmetric
        time = format_duration(answer.units * unit)
        if answer.status == "optimal":
            return f"{time} in steps is optimal for {where}"
        return f"{time} in steps, at least {format_duration(answer.bound * unit)} for {where}"


def _turned(limits: Limits) -> Limits:
    """Return limits for the network with all links turned around."""
    pairs = None if limits.pairs is None else frozenset((v, u) for u, v in limits.pairs)
    return replace(limits, pairs=pairs, barred=frozenset((c, v, u) for c, u, v in limits.barred))
