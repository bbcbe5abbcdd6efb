"""What arcs lead to, and how far; networkx takes longer to load than a small compilation for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from heapq import heappop, heappush

Arc = tuple[int, int]
"""From, to."""

Lengths = Mapping[int, Mapping[int, Fraction | int]]
"""The length of each arc, by where it leaves and where it leads."""


def reached(start: int, arcs: Iterable[Arc]) -> set[int]:
    """Return all nodes that arcs lead to from a node, and the node itself."""
    return _reached(start, _after(arcs))


def mutual(nodes: Iterable[int], arcs: Iterable[Arc]) -> list[set[int]]:
    """Return the sets of nodes that reach each other, by their first nodes.

    O(arcs) for each set.

    Parameters
    ----------
    nodes : iterable of int
        All that arcs name, and others.
    arcs : iterable of (int, int)

    Examples
    --------
    >>> mutual([0, 1, 2, 3], [(0, 1), (1, 2), (2, 1)])
    [{0}, {1, 2}, {3}]
    """
    known = list(arcs)
    after, before = _after(known), _after((target, source) for source, target in known)
    seen, found = set[int](), list[set[int]]()
    for node in nodes:
        if node not in seen:
            found.append(_reached(node, after) & _reached(node, before))
            seen |= found[-1]
    return found


def joined(nodes: Iterable[int], arcs: Iterable[Arc]) -> list[set[int]]:
    """Return the sets of nodes that arcs join, whichever way they point, by their first nodes."""
    known = list(arcs)
    return mutual(nodes, [*known, *((target, source) for source, target in known)])


def lengths(starts: Iterable[int], arcs: Lengths) -> dict[int, Fraction | int]:
    """Return how far each node that arcs lead to is from the nearest of some nodes (Dijkstra).

    Examples
    --------
    >>> lengths([0], {0: {1: 2, 2: 5}, 1: {2: 1}})
    {0: 0, 1: 2, 2: 3}
    """
    found: dict[int, Fraction | int] = {}
    waiting: list[tuple[Fraction | int, int]] = [(0, start) for start in sorted(starts)]
    while waiting:
        length, node = heappop(waiting)
        if node in found:
            continue
        found[node] = length
        for after, more in arcs.get(node, {}).items():
            if after not in found:
                heappush(waiting, (length + more, after))
    return found


def _after(arcs: Iterable[Arc]) -> Mapping[int, list[int]]:
    after: dict[int, list[int]] = {}
    for source, target in arcs:
        after.setdefault(source, []).append(target)
    return after


def _reached(start: int, after: Mapping[int, list[int]]) -> set[int]:
    seen, front = {start}, [start]
    while front:
        for node in after.get(front.pop(), ()):
            if node not in seen:
                seen.add(node)
                front.append(node)
    return seen
