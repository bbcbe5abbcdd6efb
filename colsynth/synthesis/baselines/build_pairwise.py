"""Pass build-pairwise: Problem -> ChunkProgram of pairwise exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.refusals import require_collective
from colsynth.synthesis.baselines.replicated import Replicated
from colsynth.synthesis.baselines.script import Script
from colsynth.synthesis.baselines.trees import near_tree, paths_of


@dataclass(frozen=True, slots=True)
class BuildPairwise(Replicated):
    """Send every rank its data in rounds that pair all ranks: the alltoall of libraries.

    Of a power of two ranks, the two of a pair send to each other; of other numbers, each
    sends to the one k places on in round k. Rounds say the order only: every pair has
    threadblocks of its own, as with the grouped sends and receives of NCCL.

    Pairs without a way through no third GPU go through as few as can be. NCCL does that by
    itself (NVB, PXN), RCCL does not unless told to; a file that relays suits both.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of all data.
    """

    name: ClassVar[str] = "build-pairwise"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return one transfer per pair, round by round, then what is passed on.

        Raises
        ------
        InputError
            CS311: it is no alltoall.
        InfeasibleError
            CS302: no data can pass between some two GPUs.
        """
        require_collective("pairwise", value, (Collective.ALLTOALL,))
        size = value.topology.size
        script = Script(value, size, self.instances)
        ways = LoadedRoutes(value.topology)
        paths = [paths_of(near_tree(ways, root, Direction.OUT)) for root in range(size)]
        script.relay((source * size + sink, paths[source][sink]) for source, sink in rounds(size))
        return script.program(Ordering.FIXED)


def rounds(size: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of `size` places, each place once as either end in every `size` pairs."""
    for distance in range(1, size):
        for source in range(size):
            mutual = size & (size - 1) == 0
            yield source, source ^ distance if mutual else (source + distance) % size
