"""Pairs of complementary trees of all GPUs: boxes in a binary tree, a chain in each box."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, starmap
from typing import NamedTuple

from colsynth.model import Problem
from colsynth.model.problem import PHASES
from colsynth.synthesis.baselines.double_tree import Parents, double_tree, hung
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.paths import visit_all
from colsynth.synthesis.baselines.trees import flow

_GIVEN_UP = 8
"""Ranks of a box without a chain through it, after which none is sought there any more. Such a
search takes a fifth of a second; where one of the first ranks has no chain, others rarely do."""


class Edge(NamedTuple):
    """An edge of a tree, away from its root.

    Parameters
    ----------
    parent, child : int
        Ranks.
    """

    parent: int
    child: int


class Grower:
    """Grows pairs of trees, each along the ways that those before it use least.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self._ways = LoadedRoutes(problem.topology)
        self._directions = PHASES[problem.collective]
        self._boxes = tuple(_parts(problem))
        self._root = problem.root
        self._blind: tuple[set[int], ...] = tuple(set() for _ in self._boxes)
        """Of every box, the ranks from which no chain through it was found."""
        self._shapes = double_tree(len(self._boxes))
        if problem.root is not None:
            home = next(n for n, ranks in enumerate(self._boxes) if problem.root in ranks)
            self._shapes = hung(home, len(self._boxes))

    @property
    def fullest(self) -> Fraction:
        """How long the fullest link is busy with the trees so far."""
        return self._ways.fullest

    def pair(self) -> list[tuple[Edge, ...]] | None:
        """Return one more pair, or None where there is no way."""
        found = []
        for shape in self._shapes:
            edges = self._tree(shape)
            if edges is None:
                return None
            for direction in self._directions:
                self._ways.take(flow(*edge, direction) for edge in edges)
            found.append(edges)
        return found

    def _tree(self, shape: Parents) -> tuple[Edge, ...] | None:
        """Return the tree whose boxes are joined where the ways are least busy."""
        most = max(len(ranks) for ranks in self._boxes)
        choices = []
        for place in range(most):
            heads = [ranks[place % len(ranks)] for ranks in self._boxes]
            joints = [
                Edge(heads[above], heads[box])
                for box, above in enumerate(shape)
                if above is not None
            ]
            if all(self._joined(edge) for edge in joints):
                choices.append((self._cost(joints), place, heads))
        for _, _, heads in sorted(choices):
            edges = self._edges(shape, heads)
            if edges is not None:
                return edges
        return None

    def _edges(self, shape: Parents, heads: Sequence[int]) -> tuple[Edge, ...] | None:
        """Return the edges of a tree, every one behind that which reaches its parent."""
        edges: list[Edge] = []
        ready = [shape.index(None)]
        for box in ready:
            head = heads[box]
            first = self._root if self._root in self._boxes[box] else head
            chain = None
            blind = self._blind[box]
            if first not in blind and len(blind) < _GIVEN_UP:
                chain = visit_all(self._ways, self._boxes[box], first)
            if chain is None:  # loads only change which hops are preferred, not which there are
                blind.add(first)
                return None
            below = [child for child, above in enumerate(shape) if above == box]
            joints = [Edge(head, heads[child]) for child in below]
            inside = list(starmap(Edge, pairwise(chain)))
            edges += [*joints, *inside] if first == head else [*inside, *joints]
            ready += below
        return tuple(edges) if all(map(self._joined, edges)) else None

    def _joined(self, edge: Edge) -> bool:
        return all(self._ways.joins(*flow(*edge, direction)) for direction in self._directions)

    def _cost(self, edges: Sequence[Edge]) -> list[int]:
        """Return how busy the ways of some edges are, the busiest first."""
        pairs = [flow(*edge, direction) for edge in edges for direction in self._directions]
        return sorted((self._ways.cost(*pair) for pair in pairs), reverse=True)


def _parts(problem: Problem) -> list[tuple[int, ...]]:
    """Return the boxes; GPUs outside all boxes are boxes of one."""
    topology = problem.topology
    found: list[tuple[int, ...]] = []
    for ranks in topology.ranks_by_box:
        boxed = topology.nodes[topology.ranks[ranks[0]]].box is not None
        found += [ranks] if boxed else [(rank,) for rank in ranks]
    return found
