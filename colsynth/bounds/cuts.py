"""Cuts as values, and sets of nodes that become tighter cuts one node at a time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Cut, Direction, Topology

Found = TypeVar("Found", bound=tuple[Any, ...])
"""Bytes per second that a set of nodes allows, the set, and what else its user wants to know."""


def cut_of(topology: Topology, direction: Direction, inside: NDArray[np.bool_]) -> Cut:
    """Return the cut around a set of nodes."""
    forward = direction is Direction.OUT
    crossing = tuple(
        index
        for index, link in enumerate(topology.links)
        if inside[link.source] != inside[link.target] and bool(inside[link.source]) == forward
    )
    return Cut(
        direction=direction,
        nodes=tuple(int(v) for v in np.nonzero(inside)[0]),
        gpus=tuple(rank for rank, node in enumerate(topology.ranks) if inside[node]),
        links=crossing,
        bandwidth=sum((topology.links[i].bandwidth for i in crossing), Fraction(0)),
    )


def improved(start: Found, nodes: int, rated: Callable[[frozenset[int]], Found | None]) -> Found:
    """Return a set to which moving no single node to the other side does any good.

    Parameters
    ----------
    start : Found
    nodes : int
        Of the topology.
    rated : callable
        What a set allows; None where nothing has to leave it.
    """
    best = start
    while True:
        tried = (rated(best[1] ^ {node}) for node in range(nodes))
        rest = (found for found in tried if found is not None)
        least = min(rest, key=lambda found: found[0], default=best)
        if least[0] >= best[0]:
            return best
        best = least
