"""Forests whose trees are given by their shape."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from colsynth.bounds.optimum import allreduce_optimum
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
    each = carried[first[0].root] if alike else 0
    return _bounded(Forest(problem, bound(problem), each, phases, shares))


def _bounded(forest: Forest) -> Forest:
    """Return a forest beside a bound that holds for it.

    Shares that differ may carry an allreduce beyond what equal roots reach. Where the bound of free
    roots is not known, the forest claims no more than that of equal ones.
    """
    reached, most = forest.algbw, forest.bound.algbw
    if reached <= most:
        return forest
    free = allreduce_optimum(forest.problem).rooted
    if free is not None:
        return replace(forest, bound=free)
    slower = (replace(p, unit_bandwidth=p.unit_bandwidth * most / reached) for p in forest.phases)
    return replace(forest, phases=tuple(slower))
