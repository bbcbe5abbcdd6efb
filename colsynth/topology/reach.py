"""What arcs lead to; networkx would take as long to load as a small compilation takes for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Arc = tuple[int, int]
"""From, to."""


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
