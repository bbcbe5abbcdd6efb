"""Boxes of direct links that a network joins: as a fabric, by a link between GPUs in equal places.

A GPU may reach every GPU of every other box. With one neighbour in each, trees of shortest paths
are a hop higher than those of a box, and few threadblocks serve the network.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

from colsynth.bounds.direct import shared_node
from colsynth.cost.routes import Route, routes
from colsynth.model import Topology

Way = tuple[int, int, Route]
"""Source, target, and the links between them in the order data takes them."""


def rail_ways(topology: Topology) -> tuple[Way, ...]:
    """Return the ways within equal boxes, and between GPUs in equal places; none elsewhere.

    There are none where cables lead from GPU to GPU alone, where GPUs of a box share links, as
    behind a switch, and where some have no way to their partners.
    """
    boxes = topology.ranks_by_box
    if len(boxes) < 2 or len({len(box) for box in boxes}) > 1 or shared_node(topology) is None:
        return ()
    box_of = {rank: number for number, box in enumerate(boxes) for rank in box}
    place = {rank: number for box in boxes for number, rank in enumerate(box)}
    inside: list[Way] = []
    across: list[Way] = []
    for source, target, route in routes(topology):
        if box_of[source] == box_of[target]:
            inside.append((source, target, route))
        elif place[source] == place[target]:
            across.append((source, target, route))
    users = Counter(link for *_, route in inside for link in route)
    pairs = {pair for rail in zip(*boxes, strict=True) for pair in permutations(rail, 2)}
    is_fit = max(users.values(), default=0) == 1 and pairs == {way[:2] for way in across}
    return (*inside, *across) if is_fit else ()
