"""Pass match-chunks: Problem -> TimedSchedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from colsynth.bounds.timed.time_bound import time_bound
from colsynth.errors import Diagnostic, InfeasibleError, InputError, did_you_mean, require_least
from colsynth.model import Problem, TimeBound, TimedPhase, TimedSchedule
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.timed.attempt import AUTO, Setting, attempt, tactics
from colsynth.synthesis.timed.demands import chunk_size, count_chunks, count_transfers
from colsynth.synthesis.timed.match import POLICIES
from colsynth.synthesis.timed.memory import refuse_too_large
from colsynth.synthesis.timed.phases import last_end
from colsynth.synthesis.timed.progress import WorkMeter

LATENCY = "latency"
GAPS = (AUTO, "none", LATENCY)
_SMALL = 8
"""With transfers that take so many times the latency of a link, gaps cost little; chunks then meet
in step, which uniform networks are matched by (`uniform`)."""


@dataclass(frozen=True, slots=True)
class MatchChunks:
    """Match chunks to links step by step, on a network expanded in time.

    Where everyone in a group wants everything, every free link is offered the chunks that
    its sender holds and its receiver lacks. Where not, every chunk first gets a tree that
    avoids full links, and links then choose among the chunks that wait for them.
    Reducing phases are copying phases of the reversed network, run backwards.

    Parameters
    ----------
    size : int
        Bytes of the message.
    chunks_per_gpu : int
        Chunks that every shard is cut into.
    policy : str
        Which chunk goes first: the ``oldest`` its sender has, the ``rarest`` of them, or
        for the ``earliest`` finish the oldest, unless the other links into the receiver
        could bring all that it still lacks before this one is done. With ``auto`` tries
        take the oldest and the rarest in turn, beginning with the oldest where all links
        take equally long and no root has everything, with the rarest elsewhere.
    tries : int
        Schedules made, of which the best is kept; fewer where one meets the bound. They
        differ in who chooses first, in the policy where that is ``auto``, and in whether
        a chunk may enter a region twice when there is nothing new for it; where chunks
        take trees, in which of equal trees they take, and in what makes them urgent. There,
        one more takes the shortest trees.
    budget : int
        Transfers placed after which no further try begins; 0 sets no such limit.
    gap : str
        What a link is occupied for beyond the bytes of a message: ``none``, or its
        ``latency``, where every chunk is a message. ``auto`` takes the latency where that
        is at most an eighth of every transfer, or where a try exceeds the budget.
    """

    size: int = 10**9
    chunks_per_gpu: int = 1
    policy: str = AUTO
    tries: int = 4
    budget: int = 500_000
    gap: str = AUTO

    name: ClassVar[str] = "match-chunks"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = TimedSchedule
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("chunks_per_gpu", (1, 2, 4, 8, 16), ladder=True),
        Choice("size", (2**20, 2**26, 2**30), ladder=True),
        Choice("gap", GAPS[1:]),
    )

    def __post_init__(self) -> None:
        for option, least in (("size", 1), ("chunks_per_gpu", 1), ("tries", 1), ("budget", 0)):
            require_least(option.replace("_", "-"), getattr(self, option), least)
        for option, known in (("policy", (AUTO, *POLICIES)), ("gap", GAPS)):
            given = getattr(self, option)
            if given not in known:
                phrase = f"there is no {option} {given!r}"
                raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(given, known)))

    def run(self, value: Problem, target: Target) -> TimedSchedule:
        """Return the best schedule found.

        Raises
        ------
        InfeasibleError
            CS302: some chunk cannot reach somebody who wants it.
        InputError
            CS117: fewer than two GPUs. CS307: nothing to do. CS125, CS308: too much to do.
            CS311: shards that differ, or several roots.
        """
        if value.shards or value.has_several_roots:
            raise _uneven(value)
        if value.topology.size < 2:
            raise InputError(Diagnostic("CS117", "a collective needs two GPUs or more"))
        total = count_transfers(value, self.chunks_per_gpu)
        if total == 0:
            note = "whoever wants a chunk holds it from the beginning"
            raise InputError(Diagnostic("CS307", "no chunk has to move", notes=(note,)))
        refuse_too_large(value, self.chunks_per_gpu)
        setting = Setting(value, self.size, self.chunks_per_gpu, self._spaced(value, total))
        meter = WorkMeter(total, setting.ticks.unit, target.progress)
        target.progress("preparing routes", 0, total)
        tasks = setting.tasks()
        best: tuple[TimedPhase, ...] = ()
        bound = TimeBound(Fraction(0), "")
        ticks = 0
        choices = tactics(value, tasks, self.policy, self.tries, target.seed)
        for number, choice in enumerate(choices):
            meter.begin()
            phases = attempt(setting, tasks, choice, meter)
            end = max(map(last_end, phases))
            if not best or end < ticks:
                best, ticks = phases, end
            if number == 0:
                bound = self._bound(setting, ticks)
            if self._suffices(setting, ticks, bound, meter):
                break
        found = TimedSchedule(
            problem=value,
            size=self.size,
            chunks_per_gpu=self.chunks_per_gpu,
            chunks=count_chunks(value, self.chunks_per_gpu)[0],
            chunk_bytes=setting.chunk_bytes,
            tick=setting.ticks.unit,
            ticks=ticks,
            phases=best,
            bound=bound,
        )
        if value.transit and found.seconds > bound.seconds:
            return self._faster(found, target)
        return found

    def _faster(self, found: TimedSchedule, target: Target) -> TimedSchedule:
        """Return a schedule, or one in which nobody outside a group forwards, if that is faster.

        There, every free link is offered what its receiver lacks, and no tree is fixed beforehand.
        """
        try:
            alone = self.run(replace(found.problem, transit=False), target)
        except InfeasibleError:
            return found
        if alone.ticks >= found.ticks:
            return found
        return replace(alone, problem=found.problem, bound=found.bound)

    def _spaced(self, problem: Problem, transfers: int) -> bool:
        """Whether links stay occupied for the latency of every chunk."""
        if self.gap != AUTO:
            return self.gap == LATENCY
        chunk = chunk_size(problem, self.size, self.chunks_per_gpu)
        kinds = {(link.bandwidth, link.latency) for link in problem.topology.links}
        small = all(_SMALL * lag * rate <= chunk for rate, lag in kinds)
        return small or 0 < self.budget < transfers

    def _bound(self, setting: Setting, ticks: int) -> TimeBound:
        """Return the bound that a schedule of so many ticks is measured against."""
        problem, hops = setting.problem, setting.all_hops
        chunks, size = self.chunks_per_gpu, setting.chunk_bytes
        return time_bound(problem, chunks, size, hops, setting.ticks, ticks)

    def _suffices(self, setting: Setting, ticks: int, bound: TimeBound, meter: WorkMeter) -> bool:
        """Whether no further try is worth it."""
        return ticks * setting.ticks.unit <= bound.seconds or 0 < self.budget <= meter.placed


def _uneven(problem: Problem) -> InputError:
    """Return the refusal of shards, which would be taken for equal ones."""
    phrase = f"{MatchChunks.name} cuts {problem.collective} into equal shards only"
    note = "the problem has shards of its own"
    advice = "api.synthesize makes it a custom collective, of chunks of one size"
    return InputError(Diagnostic("CS311", phrase, notes=(note,), help=advice))
