"""Routes from GPU to GPU through switches and NICs, none through a third GPU."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.model import Kind, Topology
from colsynth.topology.reach import mutual

MOST_ROUTES = 4
"""Routes kept for one pair of GPUs."""

Route = tuple[int, ...]
"""Link indices in the order data takes them."""


def routes(
    topology: Topology, groups: tuple[tuple[int, ...], ...] = ()
) -> Iterator[tuple[int, int, Route]]:
    """Yield (source rank, target rank, route), at most `MOST_ROUTES` for a pair.

    The shortest routes are kept, and longer ones that share neither their first nor their
    last link with a kept one, since only those add bandwidth. Between two GPUs that a box by
    itself joins both ways, be it through other GPUs, a route neither leaves the box nor crosses
    a NIC: runtimes do not waste NICs and the fabric inside a box. Equal routes are spread over
    parallel switches by starting the search of each GPU at another one.

    Parameters
    ----------
    topology : Topology
    groups : tuple of tuple of int
        Ranks between which no others may pass chunks on; empty for no such limit.
    """
    leaving, staying = _links_from(topology)
    inside = {
        node: _routes_from(topology, staying, node, rank)
        for rank, node in enumerate(topology.ranks)
    }
    component = _components(inside, [[topology.ranks[rank] for rank in group] for group in groups])
    for rank, node in enumerate(topology.ranks):
        found = _routes_from(topology, leaving, node, rank)
        for target in sorted(found):
            within = component[node] == component[target]
            for route in _useful(inside[node].get(target, []) if within else found[target]):
                yield rank, topology.rank_of[target], route


def _links_from(topology: Topology) -> tuple[list[list[int]], list[list[int]]]:
    """Return the links that leave each node, all and those that stay in its box, off NICs."""
    leaving: list[list[int]] = [[] for _ in topology.nodes]
    staying: list[list[int]] = [[] for _ in topology.nodes]
    for index, link in enumerate(topology.links):
        leaving[link.source].append(index)
        ends = topology.nodes[link.source], topology.nodes[link.target]
        alone = ends[0].box is not None and ends[0].box == ends[1].box
        if alone and all(end.kind is not Kind.NIC for end in ends):
            staying[link.source].append(index)
    return leaving, staying


def _components(
    inside: dict[int, dict[int, list[Route]]], groups: list[list[int]]
) -> dict[int, int]:
    """Return a number for every GPU, equal for those that routes in their box join."""
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    arcs = (
        (node, target)
        for node in inside
        for target in inside[node]
        if group_of.get(node) == group_of.get(target)
    )
    return {node: number for number, part in enumerate(mutual(inside, arcs)) for node in part}


def _routes_from(
    topology: Topology, leaving: list[list[int]], start: int, turn: int
) -> dict[int, list[Route]]:
    """Return routes by GPU reached, breadth first: shortest to every switch and NIC."""
    found: dict[int, list[Route]] = {}
    shortest: dict[int, list[Route]] = {start: [()]}
    layer = [start]
    while layer:
        reached: dict[int, list[Route]] = {}
        for node in layer:
            ways = leaving[node]
            shift = turn % len(ways) if ways else 0
            for index in (*ways[shift:], *ways[:shift]):
                target = topology.links[index].target
                grown = [(*route, index) for route in shortest[node]]
                if topology.nodes[target].kind is Kind.GPU:
                    if target != start:
                        found.setdefault(target, []).extend(grown)
                elif target not in shortest:
                    kept = reached.setdefault(target, [])
                    kept.extend(grown[: MOST_ROUTES - len(kept)])
        shortest.update(reached)
        layer = list(reached)
    return found


def _useful(candidates: list[Route]) -> list[Route]:
    """Return the shortest routes, and longer ones that add bandwidth."""
    ordered = sorted(candidates, key=len)
    kept: list[Route] = []
    for route in ordered:
        apart = all(route[0] != other[0] and route[-1] != other[-1] for other in kept)
        if len(kept) < MOST_ROUTES and (len(route) == len(ordered[0]) or apart):
            kept.append(route)
    return kept
