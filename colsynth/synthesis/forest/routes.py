"""Logical arcs between nodes, and the routes of links behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple


class Arc(NamedTuple):
    """A logical arc: `units` of capacity from node to node along a route of links."""

    tail: int
    head: int
    units: int
    route: tuple[int, ...]


class Bundle(NamedTuple):
    """All arcs from one node to another, those of fewest links first."""

    tail: int
    head: int
    units: int
    arcs: tuple[Arc, ...]


def bundled(arcs: Iterable[Arc]) -> list[Bundle]:
    """Return the arcs as bundles sorted by their ends, equal routes added up."""
    total: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
    for arc in arcs:
        routes = total.setdefault((arc.tail, arc.head), {})
        routes[arc.route] = routes.get(arc.route, 0) + arc.units
    bundles = []
    for (tail, head), routes in sorted(total.items()):
        by_length = sorted(routes.items(), key=lambda item: (len(item[0]), item[0]))
        parallel = tuple(Arc(tail, head, units, route) for route, units in by_length if units)
        if parallel:
            bundles.append(Bundle(tail, head, sum(routes.values()), parallel))
    return bundles


class Supply:
    """The capacity of a bundle, used up one route after the other.

    Whoever takes what is left of the current route at most cuts routes only where two
    takers meet, so the number of pieces grows by additions, not by products.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._left = deque((arc.route, arc.units) for arc in bundle.arcs)

    @property
    def room(self) -> int:
        """Units left of the current route."""
        return self._left[0][1]

    def take(self, units: int) -> tuple[int, ...]:
        """Use up to `room` units of the current route and return it."""
        route, left = self._left.popleft()
        if left > units:
            self._left.appendleft((route, left - units))
        return route
