"""Slow, obvious twin of what switches that only forward let trees reach."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from colsynth.model import Direction, Kind, Problem
from tests.reference.simplex import maximise


def best_forwarded(problem: Problem, direction: Direction) -> Fraction:
    """Return the best rate of forests in bytes/s, by a linear program over every cut, exactly.

    Variables are the rate per unit of root weight and what is taken of every link, the same
    into each switch as out of it. For at most eight nodes.
    """
    topology, links = problem.topology, problem.topology.links
    count = 1 + len(links)
    rows: list[list[int]] = []
    limits: list[Fraction] = []

    def require(entries: dict[int, int], limit: Fraction = Fraction(0)) -> None:
        rows.append([entries.get(j, 0) for j in range(count)])
        limits.append(limit)

    for i, link in enumerate(links):
        require({1 + i: 1}, link.bandwidth)
    for node, value in enumerate(topology.nodes):
        if value.kind is not Kind.GPU:
            balance = {1 + i: 1 for i, x in enumerate(links) if x.target == node}
            balance |= {1 + i: -1 for i, x in enumerate(links) if x.source == node}
            require(balance)
            require({j: -entry for j, entry in balance.items()})
    worth = {topology.ranks[r]: w for r, w in zip(problem.roots, problem.weights, strict=True)}
    for size in range(1, len(topology.nodes)):
        for chosen in combinations(range(len(topology.nodes)), size):
            weight = sum(worth.get(node, 0) for node in chosen)
            if weight and not set(topology.ranks) <= set(chosen):
                crossing = {1 + i: -1 for i in _leaving(problem, set(chosen), direction)}
                require({0: weight, **crossing})
    return maximise([1] + [0] * len(links), rows, limits) * sum(worth.values())


def _leaving(problem: Problem, inside: set[int], direction: Direction) -> list[int]:
    """Return the links that leave a set of nodes, away from the roots."""
    ends = [(link.source, link.target) for link in problem.topology.links]
    if direction is Direction.IN:
        ends = [(target, source) for source, target in ends]
    return [i for i, (a, b) in enumerate(ends) if a in inside and b not in inside]
