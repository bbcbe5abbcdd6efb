"""The logical topology: the ways between two GPUs that a sketch leaves, none through a third."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Kind, Sketch, Topology
from colsynth.model.sketch import Pairs

Flags = NDArray[np.bool_]


def allowed(
    topology: Topology,
    sketch: Sketch,
    source: NDArray[Any],
    target: NDArray[Any],
    first: NDArray[np.int64],
    links: NDArray[Any],
) -> Flags:
    """Return which ways a sketch allows, (H,).

    Parameters
    ----------
    topology : Topology
    sketch : Sketch
    source, target : (H,)
        Ranks.
    first, links : (H + 1,), (L,)
        Way h takes ``links[first[h]:first[h + 1]]``.
    """
    box = np.array(topology.gpu_boxes)
    together = box[source] == box[target]
    to_nic = [topology.nodes[link.target].kind is Kind.NIC for link in topology.links]
    through_nic = np.logical_or.reduceat(np.array(to_nic, np.bool_)[links], first[:-1])
    inside = _pairs(topology, sketch.within)[source, target] & ~through_nic
    across = _pairs(topology, sketch.between)[source, target]
    return np.asarray(np.where(together, inside, across), np.bool_)


def leaves(topology: Topology, sketch: Sketch, start: int) -> Flags:
    """Return between which (source, target) ranks a chunk that begins at a rank may pass, (N, N).

    Raises
    ------
    IndexError
        The sketch has no `leave`.
    """
    box = np.array(topology.gpu_boxes)
    found = np.asarray(box[:, None] == box[None, :])
    found[list(sketch.leave[start])] = True
    return found


def _pairs(topology: Topology, pairs: Pairs | None) -> Flags:
    found = np.full((topology.size, topology.size), pairs is None)
    if pairs:
        found[tuple(np.array(pairs).T)] = True
    return found


def members_of(topology: Topology) -> list[list[int]]:
    """Return the ranks of every box, boxes in the order of their first rank."""
    boxes: dict[int, list[int]] = {}
    for rank, box in enumerate(topology.gpu_boxes):
        boxes.setdefault(box, []).append(rank)
    return list(boxes.values())


def ways_of(topology: Topology, sketch: Sketch) -> list[tuple[int, int, Sequence[int]]]:
    """Return (source rank, target rank, links) of every way that a sketch leaves."""
    from colsynth.cost.routes import routes

    found = list(routes(topology))
    if not found:
        return []
    first = np.cumsum([0, *(len(route) for _, _, route in found)])
    flat = np.array([link for _, _, route in found for link in route])
    source, target = (np.array([way[end] for way in found]) for end in (0, 1))
    keep = allowed(topology, sketch, source, target, first, flat)
    return [way for way, kept in zip(found, keep.tolist(), strict=True) if kept]
