"""Forests whose trees are given by their shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from colsynth.bounds.trees import bound
from colsynth.model import Direction, Forest, Phase, Problem, Tree


def forest_of(problem: Problem, trees: dict[Direction, tuple[Tree, ...]]) -> Forest:
    """Return a forest of the given trees, as fast as its fullest link allows.

    Parameters
    ----------
    problem : Problem
    trees : dict
        Of every phase in order. A root's trees weigh the same in each.
    """
    phases = tuple(
        Phase(direction, grown, _unit_bandwidth(problem, grown))
        for direction, grown in trees.items()
    )
    first = phases[0].trees
    carried: Counter[int] = Counter()
    for tree in first:
        carried[tree.root] += tree.weight
    alike = len(set(carried.values())) == 1
    shares = () if alike else tuple(carried[root] for root in problem.roots)
    return Forest(problem, bound(problem), carried[first[0].root] if alike else 0, phases, shares)


def _unit_bandwidth(problem: Problem, trees: Iterable[Tree]) -> Fraction:
    """Return the bandwidth of a unit of weight at which no link is overfull."""
    carried: Counter[int] = Counter()
    for tree in trees:
        for edge in tree.edges:
            for link in edge.route:
                carried[link] += tree.weight
    links = problem.topology.links
    return min(links[link].bandwidth / weight for link, weight in carried.items())
