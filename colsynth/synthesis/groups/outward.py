"""Trees found on a group's own machine, told of the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colsynth.model import Direction, Phase, Problem, Topology, Tree, TreeEdge
from colsynth.synthesis.forest.trees import merge_equal
from colsynth.topology.communicator import Communicator

_Hop = tuple[int, int]
"""A link of the whole topology, and the node it leads to away from the root."""


class OutwardTrees:
    """Trees of one group; equal edges of all its phases are the same object.

    Parameters
    ----------
    whole : Topology
    group : Communicator
    """

    def __init__(self, whole: Topology, group: Communicator) -> None:
        self._whole, self._group = whole, group
        self._edges: dict[TreeEdge, TreeEdge] = {}

    def phase(self, phase: Phase, inner: Problem) -> Phase:
        """Return the trees of a phase between GPUs of the whole, relays among them."""
        trees = (self._tree(tree, phase.direction, inner.topology) for tree in phase.trees)
        return replace(phase, trees=merge_equal(trees))

    def _tree(self, tree: Tree, direction: Direction, inner: Topology) -> Tree:
        """Return a tree whose routes are broken up where they pass a relay.

        A relay that two routes pass receives what it passes on once: the second goes on from
        where the first has been, and the rest of it is not needed.
        """
        root = self._whole.ranks[self._group.old_ranks[tree.root]]
        reached = {root}
        edges: list[TreeEdge] = []
        for edge in tree.edges:
            start = self._group.nodes[inner.ranks[edge.parent]]
            for near, hops in self._pieces(start, edge, direction, reached):
                edges.append(self._edge(near, hops, direction))
                reached.add(hops[-1][1])
        return Tree(self._group.old_ranks[tree.root], tree.weight, tuple(edges))

    def _pieces(
        self, start: int, edge: TreeEdge, direction: Direction, reached: set[int]
    ) -> Iterator[tuple[int, list[_Hop]]]:
        """Yield the pieces of a route from GPU to GPU that the tree does not have yet."""
        stops: list[tuple[int, list[_Hop]]] = [(start, [])]
        hops: list[_Hop] = []
        for index in edge.route if direction is Direction.OUT else reversed(edge.route):
            link = self._whole.links[self._group.links[index]]
            node = link.target if direction is Direction.OUT else link.source
            hops.append((self._group.links[index], node))
            if node not in self._whole.rank_of:
                continue
            known = [place for place, (stop, _) in enumerate(stops) if stop == node]
            stops = stops[: known[0] + 1] if known else [*stops, (node, hops)]
            hops = []
        last = max(place for place, (node, _) in enumerate(stops) if node in reached)
        for (near, _), (_, way) in zip(stops[last:], stops[last + 1 :], strict=False):
            yield near, way

    def _edge(self, near: int, hops: list[_Hop], direction: Direction) -> TreeEdge:
        """Return the edge over some hops; equal ones are the same object."""
        step = 1 if direction is Direction.OUT else -1
        route = tuple(link for link, _ in hops)[::step]
        edge = TreeEdge(self._whole.rank_of[near], self._whole.rank_of[hops[-1][1]], route)
        return self._edges.setdefault(edge, edge)
