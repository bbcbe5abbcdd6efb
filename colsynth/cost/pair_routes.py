"""The links that the data of a connection takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from colsynth.cost.routes import Route, routes
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import Kind, Topology

Pair = tuple[int, int]

_TURNS = 8
"""Connections of a pair over which shares of bandwidth are spread, about."""


def pair_routes(topology: Topology, pairs: Iterable[Pair]) -> dict[Pair, tuple[Route, ...]]:
    """Return the routes of pairs of ranks, each a tuple of link indices, in turns of channels.

    They are the shortest ones through switches and NICs. Where there are none, data passes
    other GPUs, as it does on NCCL from GPU to GPU (NVB) and to the NIC of another (PXN); in a box
    that joins the two, without the network.

    Raises
    ------
    InfeasibleError
        CS601: no links lead from one rank to another.
    """
    known = _ways(topology)
    return {pair: known.routes(pair) for pair in sorted(set(pairs))}


class _Ways:
    """The routes of a topology that were asked for; every program of a search asks for some."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._leaving: list[list[int]] = [[] for _ in topology.nodes]
        self._staying: list[list[int]] = [[] for _ in topology.nodes]
        for index, link in enumerate(topology.links):
            self._leaving[link.source].append(index)
            if index not in topology.network:
                self._staying[link.source].append(index)
        found: dict[Pair, list[Route]] = {}
        for source, target, route in routes(topology):
            found.setdefault((source, target), []).append(route)
        self._known = {pair: _spread(topology, _shortest(kept)) for pair, kept in found.items()}

    @property
    def most_nics(self) -> int:
        """The most NICs at the source of a pair."""
        links, nodes = self._topology.links, self._topology.nodes

        def first(route: Route) -> int | None:
            ends = (links[index].target for index in route)
            return next((end for end in ends if nodes[end].kind is Kind.NIC), None)

        return max((len(set(map(first, routes))) for routes in self._known.values()), default=1)

    def routes(self, pair: Pair) -> tuple[Route, ...]:
        """Return the routes of a pair of ranks."""
        if pair not in self._known:
            inside = _relayed(self._topology, self._staying, pair)
            self._known[pair] = (inside or _over_all(self._topology, self._leaving, pair),)
        return self._known[pair]


@lru_cache(maxsize=8)
def _ways(topology: Topology) -> _Ways:
    return _Ways(topology)


def _shortest(kept: list[Route]) -> tuple[Route, ...]:
    least = min(map(len, kept))
    return tuple(route for route in kept if len(route) == least)


def _spread(topology: Topology, equal: tuple[Route, ...]) -> tuple[Route, ...]:
    """Return routes as often as data takes them, in turns; those of a box by their bandwidths.

    GPUs spread data over the links of a box. Of the NICs at each end, those with the most bandwidth
    take turns, and slower ones have no part (NCCL, src/graph/topo.cc ncclTopoGetLocal).
    """
    if len(equal) == 1:
        return equal
    if any(i in topology.network for route in equal for i in route):
        return _fastest_nics(topology, _fastest_nics(topology, equal, 1), -1)
    rates = [min(topology.links[i].bandwidth for i in route) for route in equal]
    if len(set(rates)) == 1:
        return equal
    shares = [max(1, round(_TURNS * rate / sum(rates))) for rate in rates]
    turns = sorted(
        (Fraction(2 * turn + 1, 2 * share), place)
        for place, share in enumerate(shares)
        for turn in range(share)
    )
    return tuple(equal[place] for _, place in turns)


def _fastest_nics(topology: Topology, equal: tuple[Route, ...], step: int) -> tuple[Route, ...]:
    """Return the routes with the most bandwidth from the GPU out of its box; -1: into the box."""
    rates = []
    for route in equal:
        rate = topology.links[route[::step][0]].bandwidth
        for index in route[::step]:
            link = topology.links[index]
            rate = min(rate, link.bandwidth)
            if topology.nodes[link.source].box != topology.nodes[link.target].box:
                break
        rates.append(rate)
    return tuple(route for route, rate in zip(equal, rates, strict=True) if rate == max(rates))


def most_nics(topology: Topology) -> int:
    """Return the most NICs that take turns at the source of a pair; 1 where there are none."""
    return _ways(topology).most_nics


def gpus_passed(topology: Topology, route: Route) -> int:
    """Return through how many GPUs a route leads, its ends not counted."""
    return sum(topology.links[index].target in topology.rank_of for index in route[:-1])


def most_passed(topology: Topology, pair: Pair, passes_on: Mapping[str, int]) -> int:
    """Return how many GPUs a connection of a pair of ranks passes at most (`Profile.passes_on`).

    GPUs in no box may be hosts of their own, which pass on nothing.
    """
    boxes = {topology.nodes[topology.ranks[rank]].box for rank in pair}
    if None in boxes:
        return 0
    return passes_on.get("box" if len(boxes) == 1 else "network", 0)


def _over_all(topology: Topology, leaving: list[list[int]], pair: Pair) -> Route:
    """Return a route of fewest links through whatever nodes there are."""
    found = _relayed(topology, leaving, pair)
    if found is None:
        phrase = f"no links lead from rank {pair[0]} to rank {pair[1]}"
        note = f"the program sends between them, {topology.name} cannot"
        raise InfeasibleError(Diagnostic("CS601", phrase, notes=(note,)))
    return found


def _relayed(topology: Topology, leaving: list[list[int]], pair: Pair) -> Route | None:
    """Return a route of fewest links of some, also through GPUs; None where there is none."""
    start, goal = topology.ranks[pair[0]], topology.ranks[pair[1]]
    reached: dict[int, Route] = {start: ()}
    layer = [start]
    while layer and goal not in reached:
        following = []
        for node in layer:
            for index in leaving[node]:
                target = topology.links[index].target
                if target not in reached:
                    reached[target] = (*reached[node], index)
                    following.append(target)
        layer = following
    return reached.get(goal)
