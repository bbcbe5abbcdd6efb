"""Logical arcs between nodes, and the routes of links behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from colsynth.bounds.network import Ints

Way = TypeVar("Way")


class ArcLike(Protocol):
    """Something with capacity from node to node."""

    @property
    def tail(self) -> int:
        """Node the arc leaves."""
        ...

    @property
    def head(self) -> int:
        """Node the arc enters."""
        ...

    @property
    def units(self) -> int:
        """Capacity."""
        ...


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

    def routes(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield (route, units)."""
        return ((arc.route, arc.units) for arc in self.arcs)


def ends_of(arcs: Sequence[ArcLike]) -> Ints:
    """Return rows of (tail, head, units), int64 (m, 3)."""
    return np.array([(a.tail, a.head, a.units) for a in arcs], np.int64).reshape(-1, 3)


def bundled(arcs: Iterable[Arc]) -> list[Bundle]:
    """Return the arcs as bundles sorted by their ends, equal routes added up."""
    return Logical(arcs).bundles()


def _bundle(tail: int, head: int, arcs: Sequence[Arc]) -> Bundle:
    """Return arcs between the same ends as one bundle."""
    if len(arcs) == 1:
        return Bundle(tail, head, arcs[0].units, (arcs[0],))
    routes: dict[tuple[int, ...], int] = {}
    for arc in arcs:
        routes[arc.route] = routes.get(arc.route, 0) + arc.units
    by_length = sorted(routes.items(), key=lambda item: (len(item[0]), item[0]))
    parallel = tuple(Arc(tail, head, units, route) for route, units in by_length)
    return Bundle(tail, head, sum(routes.values()), parallel)


class Logical:
    """A graph of bundles from which nodes can be taken."""

    def __init__(self, arcs: Iterable[Arc]) -> None:
        self._out: dict[int, dict[int, Bundle]] = {}
        self._into: dict[int, dict[int, Bundle]] = {}
        self._add(arcs)

    def _add(self, arcs: Iterable[Arc]) -> None:
        found: dict[tuple[int, int], list[Arc]] = {}
        for arc in arcs:
            if arc.units:
                found.setdefault((arc.tail, arc.head), []).append(arc)
        for (tail, head), parallel in found.items():
            before = self._out.setdefault(tail, {}).get(head)
            bundle = _bundle(tail, head, [*(before.arcs if before else ()), *parallel])
            self._out[tail][head] = self._into.setdefault(head, {})[tail] = bundle

    def into(self, node: int) -> list[Bundle]:
        """Return the bundles that enter a node, by their other end."""
        return [bundle for _, bundle in sorted(self._into.get(node, {}).items())]

    def out(self, node: int) -> list[Bundle]:
        """Return the bundles that leave a node, by their other end."""
        return [bundle for _, bundle in sorted(self._out.get(node, {}).items())]

    def bundles(self, without: int | None = None) -> list[Bundle]:
        """Return all bundles by their ends, but for those of a node."""
        return [
            bundle
            for tail in sorted(self._out)
            if tail != without
            for bundle in self.out(tail)
            if bundle.head != without
        ]

    def replace(self, node: int, arcs: Iterable[Arc]) -> None:
        """Take a node with its bundles out and add arcs between others."""
        for head in self._out.pop(node, {}):
            del self._into[head][node]
        for tail in self._into.pop(node, {}):
            del self._out[tail][node]
        self._add(arcs)

    def copy(self) -> Logical:
        """Return a copy that can be changed by itself."""
        other = Logical(())
        other._out = {node: dict(heads) for node, heads in self._out.items()}
        other._into = {node: dict(tails) for node, tails in self._into.items()}
        return other


class Supply(Generic[Way]):
    """The capacity of a bundle, used up one route after the other.

    Whoever takes what is left of the current route at most cuts routes only where two
    takers meet, so the number of pieces grows by additions, not by products.
    """

    def __init__(self, ways: Iterable[tuple[Way, int]]) -> None:
        self._left = deque(ways)

    @property
    def room(self) -> int:
        """Units left of the current route."""
        return self._left[0][1]

    def take(self, units: int) -> Way:
        """Use up to `room` units of the current route and return it."""
        way, left = self._left.popleft()
        if left > units:
            self._left.appendleft((way, left - units))
        return way
