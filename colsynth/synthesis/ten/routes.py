"""Routes from GPU to GPU through switches and NICs, none through a third GPU."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.model import Kind, Topology

MOST_ROUTES = 4
"""Routes kept for one pair of GPUs."""

Route = tuple[int, ...]
"""Link indices in the order data takes them."""


def routes(topology: Topology) -> Iterator[tuple[int, int, Route]]:
    """Yield (source rank, target rank, route), at most `MOST_ROUTES` for a pair.

    The shortest routes are kept, and longer ones that share neither their first nor their
    last link with a kept one, since only those add bandwidth. A route never leaves the box
    that holds both of its ends, unless the box has no way of its own between them: a
    fabric between boxes is not wasted inside one. Equal routes are spread over parallel
    switches by starting the search of each GPU at another one.
    """
    leaving: list[list[int]] = [[] for _ in topology.nodes]
    for index, link in enumerate(topology.links):
        leaving[link.source].append(index)
    inside = _reached_inside(topology)
    for rank, node in enumerate(topology.ranks):
        found = _routes_from(topology, leaving, node, rank)
        for target in sorted(found):
            within = inside[node] is not None and inside[node] == inside[target]
            candidates = [r for r in found[target] if not within or _stays(topology, r)]
            for route in _useful(candidates):
                yield rank, topology.rank_of[target], route


def _reached_inside(topology: Topology) -> list[tuple[int, int] | None]:
    """Return, for every GPU, its box and the part of the box that is one piece by itself."""
    part: list[tuple[int, int] | None] = [None] * len(topology.nodes)
    neighbours: list[list[int]] = [[] for _ in topology.nodes]
    for link in topology.links:
        if topology.nodes[link.source].box == topology.nodes[link.target].box:
            neighbours[link.source].append(link.target)
            neighbours[link.target].append(link.source)
    for start in topology.ranks:
        box = topology.nodes[start].box
        if part[start] is not None or box is None:
            continue
        part[start], stack = (box, start), [start]
        while stack:
            for node in neighbours[stack.pop()]:
                if part[node] is None:
                    part[node] = (box, start)
                    stack.append(node)
    return part


def _stays(topology: Topology, route: Route) -> bool:
    """Whether a route keeps to the box of its first node."""
    box = topology.nodes[topology.links[route[0]].source].box
    return all(topology.nodes[topology.links[i].target].box == box for i in route)


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
