"""Forests whose trees are given by their shape."""

from __future__ import annotations

from collections import Counter

from colsynth.bounds.trees import bound
from colsynth.model import (
    Direction,
    Forest,
    Phase,
    Problem,
    Tree,
    chunks_on_links,
    unit_bandwidth,
)


def forest_of(problem: Problem, trees: dict[Direction, tuple[Tree, ...]]) -> Forest:
    """Return a forest of the given trees, as fast as its fullest link allows.

    Parameters
    ----------
    problem : Problem
    trees : dict
        Of every phase in order. A root's trees weigh the same in each.
    """
    phases = tuple(
        Phase(direction, grown, unit_bandwidth(problem.topology, chunks_on_links(grown)))
        for direction, grown in trees.items()
    )
    first = phases[0].trees
    carried: Counter[int] = Counter()
    for tree in first:
        carried[tree.root] += tree.weight
    alike = len(set(carried.values())) == 1
    shares = () if alike else tuple(carried[root] for root in problem.roots)
    return Forest(problem, bound(problem), carried[first[0].root] if alike else 0, phases, shares)
