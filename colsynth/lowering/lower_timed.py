"""Pass lower-timed: TimedSchedule -> ChunkProgram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import Diagnostic, LimitError, require_least
from colsynth.lowering.refusals import over_limit, require_nodes
from colsynth.lowering.travel import Leg, legs
from colsynth.model import (
    ChunkProgram,
    Collective,
    Ordering,
    Origin,
    Problem,
    TimedSchedule,
    Transfer,
)
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class LowerTimed:
    """Keep the order of a timed schedule and drop its times.

    A copied chunk leaves a GPU after the transfer that brought it, a sum after all
    transfers that added to it. Adjacent chunks that follow each other from one GPU to
    another become one transfer where neither end would notice: all of them are there
    when the first leaves, and none is needed before the last arrives.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of every shard.
    """

    instances: int = 1

    name: ClassVar[str] = "lower-timed"
    takes: ClassVar[type] = TimedSchedule
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("instances", (1, 2, 4, 8), cuts=True),)

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 1)

    def run(self, value: TimedSchedule, target: Target) -> ChunkProgram:
        """Return the transfers of a schedule, earliest start first.

        Raises
        ------
        LimitError
            CS402: more chunks or steps than the runtime can count. CS404: no file of a
            runtime says what is asked for.
        """
        _check_problem(value.problem, target)
        exchanges = value.problem.collective is Collective.ALLTOALL
        messages = value.problem.topology.size if exchanges else 1
        chunks = value.chunks // messages * self.instances
        _check_size(value, chunks, target)
        # Copies lie side by side within each shard, so what crosses shards has gaps.
        within = value.chunks if self.instances == 1 else value.chunks_per_gpu
        transfers = tuple(
            self._transfer(leg, instance, value)
            for leg in legs(value, target.profile.max_count, within)
            for instance in range(self.instances)
        )
        return ChunkProgram(value.problem, chunks, transfers, ordering=Ordering.FIXED)

    def _transfer(self, leg: Leg, instance: int, value: TimedSchedule) -> Transfer:
        """Return one copy's transfer; copies of a transfer stand side by side."""
        each = value.chunks_per_gpu
        shard, place = divmod(leg.chunk, each)
        chunk = (shard * self.instances + instance) * each + place
        origin = Origin(leg.phase, value.phases[leg.phase].direction, leg.chunk, instance)
        after = tuple(number * self.instances + instance for number in leg.after)
        return Transfer(leg.source, leg.target, chunk, leg.count, leg.reduces, after, origin)


def _check_problem(problem: Problem, target: Target) -> None:
    """Refuse what a file cannot say: it is for all ranks of a communicator, in order."""
    if problem.collective not in target.profile.collectives:
        phrase = f"{target.profile.name} has no word for {problem.collective}"
    elif problem.members != (tuple(range(problem.topology.size)),):
        phrase = f"{target.profile.name} runs a file on all ranks of a communicator at once"
    else:
        return
    advice = "keep the timed schedule: colsynth synthesize ... --schedule FILE.npz"
    raise LimitError(Diagnostic("CS404", phrase, help=advice))


def _check_size(value: TimedSchedule, chunks: int, target: Target) -> None:
    """Refuse early what would be refused after long work."""
    import numpy as np

    profile, ranks = target.profile, value.problem.topology.size
    if chunks > profile.max_offset + 1:
        raise over_limit("chunks per buffer", chunks, profile.max_offset + 1, profile)
    moves = np.zeros(ranks, np.int64)
    for phase in value.phases:
        carried = np.diff(phase.first)
        np.add.at(moves, phase.hops.source, carried)
        np.add.at(moves, phase.hops.target, carried)
    require_nodes(-(-int(moves.max()) // profile.max_count), ranks, profile)
