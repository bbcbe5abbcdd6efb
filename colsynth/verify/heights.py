"""The proof of a height bound, added up from its definition (see `model/heights.py`)."""

from __future__ import annotations

from fractions import Fraction

from colsynth.errors import Diagnostic, VerificationError
from colsynth.model import Direction, Problem
from colsynth.model.heights import HeightBound


def check_heights(problem: Problem, bound: HeightBound) -> None:
    """Check that prices prove the bound.

    Raises
    ------
    VerificationError
        CS527: a price is negative, or the prices prove less.
    """
    topology = problem.topology
    joints = {(root, link, level): price for root, link, level, price in bound.joints}
    if len(bound.prices) != len(topology.links) or min((0, *bound.prices, *joints.values())) < 0:
        raise _failure("there is not a price for every link, zero or more")
    given = sum(
        part * _given(problem, bound, root, joints)
        for root, part in zip(problem.roots, problem.weights, strict=True)
    )
    pairs = zip(topology.links, bound.prices, strict=True)
    paid = sum((link.bandwidth * price for link, price in pairs), Fraction(0))
    if not paid or bound.load > given / paid:
        proven = given / paid if paid else 0
        raise _failure(f"the prices prove {proven} seconds per byte, not {bound.load}")


def _given(
    problem: Problem, bound: HeightBound, root: int, joints: dict[tuple[int, int, int], int]
) -> int:
    """Return what the GPUs of one root's tree are given, all levels allowed that any tree has."""
    topology = problem.topology
    arcs = []
    for i, link in enumerate(topology.links):
        ends = topology.rank_of[link.source], topology.rank_of[link.target]
        arcs.append((i, *(ends if bound.direction is Direction.OUT else ends[::-1])))
    levels = _levels(arcs, root, bound.height)
    onward: dict[tuple[int, int], int] = {}
    for i, tail, _ in arcs:
        for level in range(1, bound.height + 1):
            price = joints.get((root, i, level), 0)
            onward[tail, level - 1] = onward.get((tail, level - 1), 0) + price
    least: dict[int, int] = {}
    for i, tail, head in arcs:
        for level in range(1, bound.height + 1):
            if head == root or level - 1 not in levels[tail]:
                continue
            joint = joints.get((root, i, level), 0) if level > 1 else 0
            cost = bound.prices[i] + joint - onward.get((head, level), 0)
            least[head] = min(cost, least.get(head, cost))
    if len(least) < topology.size - 1:
        raise _failure(f"no tree of rank {root} is {bound.height} high")
    return sum(least.values())


def _levels(arcs: list[tuple[int, int, int]], root: int, height: int) -> dict[int, set[int]]:
    """Return the levels that each rank can have: walks of this length from the root, not back."""
    found: dict[int, set[int]] = {root: {0}}
    for _, tail, head in arcs:
        found.setdefault(tail, set())
        found.setdefault(head, set())
    for level in range(1, height + 1):
        for _, tail, head in arcs:
            if level - 1 in found[tail] and head != root:
                found[head].add(level)
    return found


def _failure(phrase: str) -> VerificationError:
    return VerificationError(Diagnostic("CS527", phrase))
