"""List scheduling of transfers on links, longest remaining path first.

A threadblock executes its steps one after the other, tile by tile. A step that waits for data
from far away delays the steps behind it. So every transfer is scheduled on all links of its
route for as long as its chunks take. Of the transfers that are ready, those with the longest
path behind them go first. Threadblocks that follow the resulting order seldom wait long.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from math import lcm

from colsynth.cost.pair_routes import pair_routes
from colsynth.model import Topology, Transfer

Way = tuple[int, ...]


def list_schedule(transfers: Sequence[Transfer], topology: Topology) -> list[int]:
    """Return the indices of the transfers in the order in which they begin.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    topology : Topology

    Raises
    ------
    InfeasibleError
        CS601: no links lead from one rank to another.
    """
    routes = _routes(transfers, topology)
    needs = _durations(transfers, routes, topology)
    return _Links(transfers, routes, needs, len(topology.links)).run()


def _routes(transfers: Sequence[Transfer], topology: Topology) -> list[Way]:
    """Return the links of every transfer; those of a pair take its ways in turn."""
    known = pair_routes(
        topology, sorted({(t.source, t.target) for t in transfers if not t.is_local})
    )
    taken: Counter[tuple[int, int]] = Counter()
    routes: list[Way] = []
    for transfer in transfers:
        pair = transfer.source, transfer.target
        if transfer.is_local:
            routes.append(())
            continue
        routes.append(known[pair][taken[pair] % len(known[pair])])
        taken[pair] += 1
    return routes


def _durations(
    transfers: Sequence[Transfer], routes: Sequence[Way], topology: Topology
) -> list[int]:
    """Return how long each transfer takes, in whole ticks."""
    slowest = [
        min((topology.links[link].bandwidth for link in route), default=None) for route in routes
    ]
    known = {bandwidth for bandwidth in slowest if bandwidth is not None}
    scale = lcm(*(bandwidth.numerator for bandwidth in known))
    ticks = {bandwidth: int(scale / bandwidth) for bandwidth in known}
    return [
        0 if bandwidth is None else transfer.count * ticks[bandwidth]
        for transfer, bandwidth in zip(transfers, slowest, strict=True)
    ]


class _Links:
    """Links that carry one transfer at a time, and the transfers that wait for them."""

    def __init__(
        self,
        transfers: Sequence[Transfer],
        routes: Sequence[Way],
        needs: Sequence[int],
        links: int,
    ) -> None:
        self.routes = routes
        self.needs = needs
        self.missing = [len(transfer.after) for transfer in transfers]
        self.following: list[list[int]] = [[] for _ in transfers]
        for number, transfer in enumerate(transfers):
            for other in transfer.after:
                self.following[other].append(number)
        left = [0] * len(transfers)
        for number in reversed(range(len(transfers))):
            longest = max((left[other] for other in self.following[number]), default=0)
            left[number] = needs[number] + longest
        self.keys = [(-ahead, number) for number, ahead in enumerate(left)]
        self.busy = [False] * links
        self.waiting: list[list[tuple[int, int]]] = [[] for _ in range(links)]
        self.ending: list[tuple[int, int]] = []
        self.order: list[int] = []

    def run(self) -> list[int]:
        """Carry out everything; return the order of beginnings."""
        now = 0
        self._begin([number for number, left in enumerate(self.missing) if not left], (), now)
        while self.ending:
            now = self.ending[0][0]
            ready: list[int] = []
            freed: list[int] = []
            while self.ending and self.ending[0][0] == now:
                _, done = heapq.heappop(self.ending)
                freed += self.routes[done]
                for other in self.following[done]:
                    self.missing[other] -= 1
                    if not self.missing[other]:
                        ready.append(other)
            self._begin(ready, freed, now)
        return self.order

    def _begin(self, ready: Sequence[int], freed: Sequence[int], now: int) -> None:
        """Begin what can, most urgent first: on links that are free again, and what is new."""
        for link in freed:
            self.busy[link] = False
        heads = [(self.waiting[link][0], link) for link in sorted(set(freed)) if self.waiting[link]]
        urgent = heads + [(self.keys[number], -1) for number in ready]
        heapq.heapify(urgent)
        while urgent:
            key, link = heapq.heappop(urgent)
            if link >= 0:
                if self.busy[link]:
                    continue
                heapq.heappop(self.waiting[link])
            self._try(key, now)
            if link >= 0 and self.waiting[link] and not self.busy[link]:
                heapq.heappush(urgent, (self.waiting[link][0], link))

    def _try(self, key: tuple[int, int], now: int) -> None:
        """Begin a transfer, or let it wait for the first link of its way that is busy."""
        number = key[1]
        for link in self.routes[number]:
            if self.busy[link]:
                heapq.heappush(self.waiting[link], key)
                return
        for link in self.routes[number]:
            self.busy[link] = True
        self.order.append(number)
        heapq.heappush(self.ending, (now + self.needs[number], number))
