"""Pass build-pairwise: Problem -> ChunkProgram of pairwise exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import ChunkProgram, Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.refusals import require_collective
from colsynth.synthesis.baselines.script import Script


@dataclass(frozen=True, slots=True)
class BuildPairwise:
    """Send every rank its data in rounds that pair all ranks: the alltoall of libraries.

    Of a power of two ranks, the two of a pair send to each other; of other numbers, each
    sends to the one k places on in round k. Rounds say the order only: every pair has
    threadblocks of its own, and ways between GPUs are left to the runtime, as with the
    grouped sends and receives of NCCL.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of all data.
    """

    instances: int = 1

    name: ClassVar[str] = "build-pairwise"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 1)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return one transfer per pair, round by round.

        Raises
        ------
        InputError
            CS311: it is no alltoall.
        """
        require_collective("pairwise", value, (Collective.ALLTOALL,))
        size = value.topology.size
        script = Script(value, size, self.instances)
        for source, sink in rounds(size):
            script.send(source, sink, source * size + sink)
        return script.program(ordered=True)


def rounds(size: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of `size` places, each place once as either end in every `size` pairs."""
    for distance in range(1, size):
        for source in range(size):
            mutual = size & (size - 1) == 0
            yield source, source ^ distance if mutual else (source + distance) % size
