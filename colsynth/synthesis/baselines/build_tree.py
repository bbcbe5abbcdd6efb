"""Pass build-tree: Problem -> ChunkProgram along a double binary tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.selection import dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.channel_rate import (
    channel_rate,
    fewest,
    most_trees,
    require_channels,
)
from colsynth.synthesis.baselines.pairs_of_trees import Edge, Grower
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.script import Script

SERVED = (Collective.ALLREDUCE, Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True, slots=True)
class BuildTree:
    """Reduce and broadcast along two complementary binary trees of boxes, half each.

    Within a box the GPUs form a chain that begins at the GPU whose NIC the tree uses, as in
    NCCL; each pair of trees begins at other GPUs. GPUs outside all boxes count as boxes of
    one. A box that passes data on in one tree of a pair is a leaf of the other; the box of
    the root of a broadcast or reduce is above both.

    Parameters
    ----------
    channels : int
        Number of pairs of trees, each tree a channel; 0 takes as many as fill the links,
        given what a threadblock can move.
    chunks : int
        Chunks at least that follow each other along each tree: a rank passes one on while the
        next one is on its way.
    """

    channels: int = 0
    chunks: int = 4

    name: ClassVar[str] = "build-tree"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("channels", (0, 1, 2, 4, 8, 16)),)

    def __post_init__(self) -> None:
        require_least("channels", self.channels, 0)
        require_least("chunks", self.chunks, 1)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers of all trees.

        Raises
        ------
        InputError
            CS311: trees do not serve the collective. CS312: boxes have no chain of GPUs, or
            no ways to each other.
        LimitError
            CS402: the runtime has fewer channels.
        """
        require_collective("tree", value, SERVED)
        require_channels(self.channels, target.profile)
        trees = self._trees(value, target)
        if trees is None:
            note = "every box must have a chain of its GPUs and ways to and from every other box"
            raise unfit("tree", value.topology, "no binary tree of boxes was found", note)
        parts, least = target.parts(value, 1), len(trees) * self.chunks
        script = Script(value, dividing(parts, 2 * least - 1, least))  # some trees carry one more
        for chunk in range(script.chunks):
            tree = chunk * len(trees) // script.chunks
            arrived: dict[int, list[int]] = {}
            for phase, direction in enumerate(PHASES[value.collective]):
                origin = Origin(phase, direction, tree, tree)
                _walk(script, trees[tree], chunk, origin, arrived)
        return script.program(Ordering.FREE)

    def _trees(self, problem: Problem, target: Target) -> list[tuple[Edge, ...]] | None:
        """Return the trees of all pairs, as many as asked for or as are enough."""
        grower = Grower(problem)
        trees: list[tuple[Edge, ...]] = []
        speeds = []
        rate = channel_rate(target)
        for _ in range(self.channels or most_trees(target.profile)):
            pair = grower.pair()
            if pair is None:
                return None
            trees += pair
            speeds.append(rate.of(len(trees), len(trees) / grower.fullest))
        return trees[: 2 * (self.channels or fewest(speeds))]


def _walk(
    script: Script,
    edges: Sequence[Edge],
    chunk: int,
    origin: Origin,
    arrived: dict[int, list[int]],
) -> None:
    """Send a chunk along a tree, from all to the root or from the root to all.

    `arrived` has what reached each rank in the direction before, and is given what does now.
    """
    inwards = origin.direction is Direction.IN
    root = edges[0].parent
    into: dict[int, list[int]] = {} if inwards else {root: arrived.get(root, [])}
    for parent, child in reversed(edges) if inwards else edges:
        source, sink = (child, parent) if inwards else (parent, child)
        number = script.send(source, sink, chunk, into.get(source, ()), origin=origin)
        into.setdefault(sink, []).append(number)
    arrived.clear()
    arrived.update(into)
