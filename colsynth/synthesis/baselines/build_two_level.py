"""Pass build-two-level: Problem -> ChunkProgram of an alltoall inside boxes, then between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.alltoall_grid import (
    AUTO,
    check_grid,
    extents_of,
    fitting_grid,
    stages,
)
from colsynth.synthesis.baselines.refusals import (
    equal_boxes,
    require_collective,
    require_ways,
    unfit,
)
from colsynth.synthesis.baselines.replicated import Replicated
from colsynth.synthesis.baselines.script import Script
from colsynth.synthesis.forest.grid import Grid

_STRATEGY = "assign-threadblocks.strategy"


def _copies(basis: Basis) -> Iterator[Proposal]:
    """Yield another allocation of threadblocks, and two copies.

    With as many threadblocks as their loads ask for, connections may have to share them. One that
    sends and receives does so in turns, and each tile waits for the one before. An alltoall of
    2304 MiB by RCCL among 72 GPUs on a switch reaches 37 GB/s with them, and 170 without.
    """
    for strategy in ("spread", "balanced"):
        for instances in (1, 2):
            changes = {"build-two-level.instances": instances, _STRATEGY: strategy}
            if changes.items() - basis.values.items():
                yield (changes,)


@dataclass(frozen=True, slots=True)
class BuildTwoLevel(Replicated):
    """Collect inside each box what goes to the same place of other boxes, then exchange it.

    What a GPU has for place p of any box first goes to place p of its own box; from there to
    the other boxes, on the rail of its target. So every GPU talks to the others of its box
    and to one GPU of each other box, where a pairwise exchange talks to all. Where that is
    still more than there are threadblocks for, boxes are grids, and data takes one coordinate
    after the other (`colsynth.synthesis.baselines.alltoall_grid`).

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of all data.
    grid : str
        Extents of a box, or of all GPUs, such as ``"8x9"``. ``"all"``: every GPU of a box is a
        partner of every other. ``"auto"``: the fewest coordinates for which threadblocks suffice.
    """

    grid: str = AUTO

    name: ClassVar[str] = "build-two-level"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("instances", propose=_copies),)

    def __post_init__(self) -> None:
        Replicated.__post_init__(self)
        check_grid(self.grid)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers inside boxes, then those between them.

        Raises
        ------
        InputError
            CS311: it is no alltoall. CS312: boxes differ in size or are no such grid, or pairs
            that exchange data have no way to each other.
        """
        require_collective("two-level", value, (Collective.ALLTOALL,))
        topology = value.topology
        boxes = equal_boxes("two-level", topology)
        sizes = len(boxes[0]), len(boxes)
        if self.grid == AUTO:
            extents: Grid | None = fitting_grid(*sizes, self.instances, target.profile)
        else:
            extents = extents_of(self.grid, *sizes)
        if extents is None:
            reason = f"boxes of {sizes[0]} GPUs are no grid of {self.grid}"
            raise unfit("two-level", topology, reason)
        ranks = [rank for box in boxes for rank in box]
        every = [(ranks[a], ranks[b]) for *_, pairs in stages(extents) for a, b in pairs]
        require_ways("two-level", topology, every)
        return _exchange(value, ranks, extents, self.instances)


def _exchange(
    problem: Problem, ranks: Sequence[int], extents: Grid, instances: int
) -> ChunkProgram:
    """Return all stages; what has to go on comes first in each.

    A GPU holds, before a stage, what comes from GPUs with its own later coordinates and goes to
    those with its own earlier ones.
    """
    size = len(ranks)
    script = Script(problem, size, instances)
    arrived: dict[tuple[int, int], int] = {}
    for stride, later, pairs in stages(extents):
        for ends in (False, True):
            for via, sink in pairs:
                begin = via // stride * stride
                targets = [t for t in range(sink % later, size, later) if (t == sink) is ends]
                for target in targets:
                    for source in range(begin, begin + stride):
                        chunk = ranks[source] * size + ranks[target]
                        after = () if source == via else (arrived[via, chunk],)
                        origin = Origin(0, Direction.OUT, chunk)
                        number = script.send(ranks[via], ranks[sink], chunk, after, origin=origin)
                        arrived[sink, chunk] = number
    return script.program(Ordering.FIXED)
