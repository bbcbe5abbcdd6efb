"""Regions: sets of GPUs that every chunk should enter only once."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby

import numpy as np

from colsynth.bounds.network import common_divisor, to_int64
from colsynth.kernels.maxflow import max_flow, residual_index
from colsynth.model import Hops, Topology
from colsynth.topology.reach import Arc, mutual

TIGHT = Fraction(1, 2)
"""How near the cut around a region must be to the tightest around one GPU to matter."""

Region = tuple[int, ...]
"""Ranks, ascending."""


def regions(topology: Topology, hops: Hops) -> tuple[Region, ...]:
    """Return regions, widest first; any two are nested or apart.

    Hops are joined from the fastest to the slowest; every set of GPUs that hops of one
    speed and better hold together is a candidate (a card, a box). It is a region where
    the cut around it is nearly as tight as the tightest around a single GPU: a chunk that
    enters it twice costs time there, while inside it spreads over faster hops.
    """
    candidates = _candidates(topology.size, hops)
    if not candidates:
        return ()
    measure = _Cuts(topology)
    alone = max(measure.tightness((rank,)) for rank in range(topology.size))
    tight = (part for part in candidates if measure.tightness(part) >= TIGHT * alone)
    return tuple(sorted(tight, key=lambda part: (-len(part), part)))


def _candidates(size: int, hops: Hops) -> tuple[Region, ...]:
    """Return what hops of each speed and better hold together, short of everything."""
    part = list(range(size))
    source, target = hops.source.tolist(), hops.target.tolist()
    found: dict[Region, None] = {}
    speed = [int(d) for d in hops.duration]
    order = sorted(range(len(hops)), key=lambda h: speed[h])
    for _, batch in groupby(order, key=lambda h: speed[h]):
        for h in batch:
            one, other = part[source[h]], part[target[h]]
            if one != other:
                part = [other if x == one else x for x in part]
        parts: dict[int, list[int]] = {}
        for rank in range(size):
            parts.setdefault(part[rank], []).append(rank)
        if len(parts) == 1:
            break
        found.update((tuple(ranks), None) for ranks in parts.values() if len(ranks) > 1)
    return tuple(found)


def held_together(found: tuple[Region, ...], hops: Hops) -> tuple[Region, ...]:
    """Return the regions inside which every GPU reaches every other one.

    Only then does a chunk that enters a region once get to all of it.
    """
    arcs = list(zip(hops.source.tolist(), hops.target.tolist(), strict=True))
    return tuple(part for part in found if len(mutual(part, _within(part, arcs))) == 1)


def _within(part: Region, arcs: list[Arc]) -> Iterator[Arc]:
    inside = frozenset(part)
    return (arc for arc in arcs if inside.issuperset(arc))


class _Cuts:
    """Least bandwidth from the GPUs outside a set to those inside."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        links, nodes = topology.links, len(topology.nodes)
        self._unit = common_divisor(link.bandwidth for link in links)
        self._capacity = to_int64([int(x.bandwidth / self._unit) for x in links], "link bandwidths")
        gpus = list(topology.ranks)
        # Two more nodes: all GPUs outside send, all inside receive.
        self._source, self._sink = nodes, nodes + 1
        tail = [x.source for x in links] + [self._source] * len(gpus) + gpus
        head = [x.target for x in links] + gpus + [self._sink] * len(gpus)
        self._index = residual_index(nodes + 2, np.array(tail), np.array(head))

    def tightness(self, ranks: Region) -> Fraction:
        """Return GPUs outside per bytes/s into the set, 0 where nothing can enter."""
        size, total = self._topology.size, int(self._capacity.sum())
        inside = np.zeros(size, np.bool_)
        inside[list(ranks)] = True
        ends = np.where(np.concatenate((~inside, inside)), total, 0)
        residual = np.zeros(2 * (len(self._capacity) + 2 * size), np.int64)
        residual[::2] = np.concatenate((self._capacity, ends))
        first, arcs, to = self._index
        flow = max_flow(first, arcs, to, residual, self._source, self._sink, total)
        return Fraction(size - len(ranks)) / (int(flow) * self._unit) if flow else Fraction(0)
