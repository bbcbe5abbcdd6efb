"""Pass build-two-level: Problem -> ChunkProgram of an alltoall inside boxes, then between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.build_pairwise import rounds
from colsynth.synthesis.baselines.refusals import equal_boxes, require_collective, require_ways
from colsynth.synthesis.baselines.replicated import Replicated
from colsynth.synthesis.baselines.script import Script


@dataclass(frozen=True, slots=True)
class BuildTwoLevel(Replicated):
    """Collect inside each box what goes to the same place of other boxes, then exchange it.

    What a GPU has for place p of any box first goes to place p of its own box; from there to
    the other boxes, on the rail of its target. So every GPU talks to the others of its box
    and to one GPU of each other box, where a pairwise exchange talks to all.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of all data.
    """

    name: ClassVar[str] = "build-two-level"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers inside boxes, then those between them.

        Raises
        ------
        InputError
            CS311: it is no alltoall. CS312: boxes differ in size, or pairs that exchange data
            have no way to each other.
        """
        require_collective("two-level", value, (Collective.ALLTOALL,))
        topology = value.topology
        rails = equal_boxes("two-level", topology)
        inside = [(ranks[a], ranks[b]) for ranks in rails for a, b in rounds(len(ranks))]
        between = [
            (rails[a][place], rails[b][place])
            for a, b in rounds(len(rails))
            for place in range(len(rails[0]))
        ]
        require_ways("two-level", topology, [*inside, *between])
        return _exchange(value, rails, inside, between, self.instances)


def _exchange(
    problem: Problem,
    rails: tuple[tuple[int, ...], ...],
    inside: list[tuple[int, int]],
    between: list[tuple[int, int]],
    instances: int,
) -> ChunkProgram:
    """Return both levels; what leaves for other boxes is collected first."""
    size = problem.topology.size
    place = {rank: p for ranks in rails for p, rank in enumerate(ranks)}
    box = {rank: ranks for ranks in rails for rank in ranks}
    script = Script(problem, size, instances)
    collected: dict[tuple[int, int], int] = {}
    for own in (False, True):
        for source, sink in inside:
            for ranks in rails:
                if (ranks == box[source]) is own:
                    chunk = source * size + ranks[place[sink]]
                    origin = Origin(0, Direction.OUT, chunk)
                    collected[sink, chunk] = script.send(source, sink, chunk, origin=origin)
    for via, sink in between:
        for source in box[via]:
            chunk = source * size + sink
            after = () if source == via else (collected[via, chunk],)
            script.send(via, sink, chunk, after, origin=Origin(0, Direction.OUT, chunk))
    return script.program(Ordering.FIXED)
