"""The links that the data of a connection takes."""

from __future__ import annotations

from collections.abc import Iterable

from colsynth.cost.routes import Route, routes
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import Kind, Topology

Pair = tuple[int, int]


def pair_routes(topology: Topology, pairs: Iterable[Pair]) -> dict[Pair, tuple[Route, ...]]:
    """Return the routes of pairs of ranks, each a tuple of link indices.

    They are the shortest ones through switches and NICs. Where there are none, data passes
    other GPUs, as it does on NCCL from GPU to GPU (NVB) and to the NIC of another (PXN).

    Raises
    ------
    InfeasibleError
        CS601: no links lead from one rank to another.
    """
    wanted = set(pairs)
    found: dict[Pair, list[Route]] = {}
    for source, target, route in routes(topology):
        if (source, target) in wanted:
            found.setdefault((source, target), []).append(route)
    leaving: list[list[int]] = [[] for _ in topology.nodes]
    for index, link in enumerate(topology.links):
        leaving[link.source].append(index)
    result = {}
    for pair in sorted(wanted):
        kept = found.get(pair) or [_relayed(topology, leaving, pair)]
        shortest = min(map(len, kept))
        result[pair] = tuple(route for route in kept if len(route) == shortest)
    return result


def is_network(topology: Topology, index: int) -> bool:
    """Whether a link ends at a NIC or leaves its box."""
    link = topology.links[index]
    ends = (topology.nodes[link.source], topology.nodes[link.target])
    if any(node.kind is Kind.NIC for node in ends):
        return True
    return ends[0].box != ends[1].box


def _relayed(topology: Topology, leaving: list[list[int]], pair: Pair) -> Route:
    """Return a route of fewest links through whatever nodes there are."""
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
    if goal not in reached:
        phrase = f"no links lead from rank {pair[0]} to rank {pair[1]}"
        note = f"the program sends between them, {topology.name} cannot"
        raise InfeasibleError(Diagnostic("CS601", phrase, notes=(note,)))
    return reached[goal]
