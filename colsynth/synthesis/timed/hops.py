"""Routes with their cost per chunk, as arrays for the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import offsets
from colsynth.bounds.timed.ticks import Ticks, link_kinds
from colsynth.cost.routes import Route, routes
from colsynth.model import Hops, Topology

STORE_AND_FORWARD = "store-and-forward"
"""Capability of a switch or NIC that sends a chunk on only when all of it is there."""


def hops_of(
    topology: Topology,
    chunk_bytes: Fraction,
    ticks: Ticks,
    groups: tuple[tuple[int, ...], ...] = (),
    *,
    spaced: bool = False,
) -> Hops:
    """Return all hops of a topology, sorted by (target, source, links).

    A link is occupied for bytes / bandwidth and delivers a latency later. A cut-through
    switch sends on as soon as the head of the chunk has arrived, but no faster than the
    chunk comes in; onto a faster link it waits so long that it can send at full speed.

    Parameters
    ----------
    topology : Topology
    chunk_bytes : Fraction
    ticks : Ticks
    groups : tuple of tuple of int
        Ranks between which no others may pass chunks on; empty for no such limit.
    spaced : bool
        Whether a chunk occupies a link for its latency too, as a gap after every message.
    """
    if topology.is_direct:
        found: Iterable[tuple[int, int, Route]] = (
            (topology.rank_of[link.source], topology.rank_of[link.target], (index,))
            for index, link in enumerate(topology.links)
        )
    else:
        found = routes(topology, groups)
    ordered = sorted(found, key=lambda item: (item[1], item[0], item[2]))
    clock = _Clock(topology, chunk_bytes, ticks, spaced)
    times = [clock.times(route) for _, _, route in ordered]
    return Hops(
        source=np.array([item[0] for item in ordered], np.int32),
        target=np.array([item[1] for item in ordered], np.int32),
        first=offsets([len(route) for _, _, route in ordered]),
        links=np.array([i for item in ordered for i in item[2]], np.int32),
        begin=np.array([begin for time, _ in times for begin, _ in time], np.int64),
        end=np.array([end for time, _ in times for _, end in time], np.int64),
        lag=np.array([lag for _, lag in times], np.int64),
    )


_Times = tuple[tuple[tuple[int, int], ...], int]


class _Clock:
    """When the links of a route are occupied; remembers routes of the same kinds of link."""

    def __init__(
        self, topology: Topology, chunk_bytes: Fraction, ticks: Ticks, spaced: bool
    ) -> None:
        self._spaced = spaced
        kinds, kind_of = link_kinds(topology)
        stores = [STORE_AND_FORWARD in node.capabilities for node in topology.nodes]
        self._kind = [
            2 * kind + stores[link.source]
            for kind, link in zip(kind_of, topology.links, strict=True)
        ]
        self._costs = [
            (
                ticks.at_least(latency),
                ticks.at_most(chunk_bytes / bandwidth),
                ticks.at_least(chunk_bytes / bandwidth),
                ticks.at_least(latency + chunk_bytes / bandwidth),
                waits,
            )
            for bandwidth, latency in kinds
            for waits in (False, True)
        ]
        self._known: dict[tuple[int, ...], _Times] = {}

    def times(self, route: Route) -> _Times:
        """Return (begin, end) of every link of a route, in ticks after the start, and the lag."""
        key = tuple(self._kind[link] for link in route)
        if key not in self._known:
            self._known[key] = self._occupied(key)
        return self._known[key]

    def _occupied(self, kinds: tuple[int, ...]) -> _Times:
        head = tail = 0
        times = []
        for place, kind in enumerate(kinds):
            latency, least, moving, whole, waits = self._costs[kind]
            begin = (tail if waits else max(head, tail - least)) if place else 0
            head, tail = begin + latency, begin + whole
            times.append((begin, tail if self._spaced else begin + moving))
        return tuple(times), tail - times[-1][1]


def reverse(hops: Hops) -> tuple[Hops, NDArray[np.int64]]:
    """Return the hops with time turned around, and which of `hops` each of them was.

    The occupied times of a reversed cut-through route keep the rules of one, so a copying
    schedule on the reversed hops, run backwards, is a reducing schedule on `hops`.
    """
    sizes = np.diff(hops.first)
    order = np.lexsort((hops.target, hops.source))
    first = offsets(sizes[order])
    place = np.repeat(hops.first[1:][order], sizes[order]) - 1
    place -= np.arange(len(hops.links)) - np.repeat(first[:-1], sizes[order])
    lasts = np.repeat(hops.duration[order], sizes[order])
    turned = Hops(
        source=hops.target[order],
        target=hops.source[order],
        first=first,
        links=hops.links[place],
        begin=lasts - hops.end[place],
        end=lasts - hops.begin[place],
        lag=hops.begin[hops.first[:-1][order]],
    )
    return turned, order


def select(hops: Hops, keep: NDArray[np.bool_]) -> Hops:
    """Return the hops for which `keep`, (H,), is set."""
    sizes = np.diff(hops.first)
    links = np.repeat(keep, sizes)
    return Hops(
        source=hops.source[keep],
        target=hops.target[keep],
        first=offsets(sizes[keep]),
        links=hops.links[links],
        begin=hops.begin[links],
        end=hops.end[links],
        lag=hops.lag[keep],
    )
