"""Pass build-hierarchical: Problem -> Forest of rings of boxes with stars inside."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from colsynth.model import Collective, Direction, Forest, Problem, Tree
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.forests import forest_of
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.refusals import equal_boxes, require_collective, require_ways
from colsynth.synthesis.baselines.trees import edge, near_tree

SERVED = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER)

Rails = tuple[tuple[int, ...], ...]
"""The ranks of every box, equal places on one rail."""


@dataclass(frozen=True, slots=True)
class BuildHierarchical:
    """Exchange shards inside boxes, and between boxes along a ring on every rail.

    An allreduce first adds up inside each box, all pairs at once, so that each GPU has its
    part of the box's sum; rings of the GPUs in equal places reduce and copy these parts; at
    last every box exchanges the results. Each GPU thus sends 2 (B - 1) / B of its part of
    the message from box to box, B being the number of boxes. Pairs in a box without a way
    through no third GPU go through as few as can be.
    """

    name: ClassVar[str] = "build-hierarchical"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True

    def run(self, value: Problem, target: Target) -> Forest:
        """Return one tree per root: a path on its rail, a star in every box.

        Raises
        ------
        InputError
            CS311: the collective is not served. CS312: boxes differ in size, or GPUs in equal
            places have no way to each other.
        InfeasibleError
            CS302: no data can pass between some two GPUs of a box.
        """
        require_collective("hierarchical", value, SERVED)
        rails = equal_boxes("hierarchical", value.topology)
        after = (*rails[1:], rails[0])
        steps = [p for a, b in zip(rails, after, strict=True) for p in zip(a, b, strict=True)]
        require_ways("hierarchical", value.topology, steps if len(rails) > 1 else [])
        ways = LoadedRoutes(value.topology)
        trees = {}
        for direction in PHASES[value.collective]:
            fresh = ways.unloaded()
            trees[direction] = tuple(_tree(fresh, rails, r, direction) for r in value.roots)
        return forest_of(value, trees)


def _tree(ways: LoadedRoutes, rails: Rails, root: int, direction: Direction) -> Tree:
    """Return the tree of a root; data takes its ring in the same sense either way."""
    home = next(number for number, ranks in enumerate(rails) if root in ranks)
    place = rails[home].index(root)
    sense = 1 if direction is Direction.OUT else -1
    path = [(home + sense * step) % len(rails) for step in range(len(rails))]
    edges = [edge(ways, rails[a][place], rails[b][place], direction) for a, b in pairwise(path)]
    for number in path:
        edges += near_tree(ways, rails[number][place], direction, rails[number]).edges
    return Tree(root, 1, tuple(edges))
