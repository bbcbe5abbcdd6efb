"""Pairs of GPUs with two kinds of wire between them, and the switches that are wires."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from colsynth.model import Kind, Link, Topology
from colsynth.topology.damage import Ends
from colsynth.topology.reach import joined

MOST_PAIRS = 2**19
"""Pairs of GPUs that are looked at; beyond, all wires stay."""

DIRECT = -1
"""The number of the wire that is a link between two GPUs."""


class _Way(NamedTuple):
    """How one wire joins two GPUs: over a link, or through a fabric of switches by its number."""

    bandwidth: int
    latency: int
    fabric: int


@dataclass(frozen=True, slots=True)
class Fabric:
    """Switches that links join, and the links that touch them."""

    switches: frozenset[int]
    links: tuple[Link, ...]
    gpus: frozenset[int]

    def is_border(self, ends: Ends) -> bool:
        """Whether a link leads into the fabric or out of it."""
        return (ends[0] in self.switches) != (ends[1] in self.switches)


def fabrics_of(topology: Topology) -> list[Fabric]:
    """Return the switches in boxes, those together that links join; all where no GPU has a box."""
    boxed = any(topology.nodes[gpu].box is not None for gpu in topology.ranks)
    inside = [
        index
        for index, node in enumerate(topology.nodes)
        if node.kind is Kind.SWITCH and (node.box is not None or not boxed)
    ]
    within = set(inside)
    parts = joined(inside, [x for x in topology.link_between if within.issuperset(x)])
    part_of = {switch: number for number, part in enumerate(parts) for switch in part}
    links: dict[int, list[Link]] = {}
    for link in topology.links:
        for number in {part_of[end] for end in link.ends if end in part_of}:
            links.setdefault(number, []).append(link)
    return [
        Fabric(
            frozenset(parts[number]),
            tuple(touching),
            frozenset({x.source for x in touching} | {x.target for x in touching})
            & topology.rank_of.keys(),
        )
        for number, touching in sorted(links.items())
    ]


def spare_pairs(
    topology: Topology, fabrics: list[Fabric], rates: Mapping[Ends, Fraction]
) -> dict[int, set[Ends]]:
    """Return, by fabric, the pairs of GPUs between which a faster wire of another kind leads."""
    gpus = topology.rank_of
    direct = [x for x in topology.links if x.source in gpus and x.target in gpus]
    wires = Counter(gpu for fabric in fabrics for gpu in fabric.gpus)
    wires.update({gpu for link in direct for gpu in link.ends})
    busy = [i for i, x in enumerate(fabrics) if sum(wires[gpu] > 1 for gpu in x.gpus) > 1]
    if not busy or sum(len(fabrics[i].gpus) ** 2 for i in busy) > MOST_PAIRS:
        return {}
    figures = _figures(topology, rates)
    ways: dict[Ends, list[_Way]] = {}
    for link in direct:
        ends = link.source, link.target
        ways[ends] = [_Way(*figures[ends], DIRECT)]
    for i in busy:
        for ends, way in _through(fabrics[i], i, figures):
            ways.setdefault(ends, []).append(way)
    spare: dict[int, set[Ends]] = {}
    for ends, found in ways.items():
        if len(found) > 1:
            best = max(found, key=lambda way: (way.bandwidth, -way.latency))
            for way in found:
                if _is_other_kind(way, best):
                    spare.setdefault(way.fabric, set()).add(ends)
    return dict(sorted(spare.items()))


def _figures(topology: Topology, rates: Mapping[Ends, Fraction]) -> dict[Ends, tuple[int, int]]:
    """Return bandwidth and latency of every link as integers of one scale each."""
    links = {x.ends: x for x in topology.links}
    speeds = {ends: rates.get(ends, link.bandwidth) for ends, link in links.items()}
    scale = lcm(*{speed.denominator for speed in speeds.values()})
    delay = lcm(*{link.latency.denominator for link in links.values()})
    return {
        ends: (int(speeds[ends] * scale), int(link.latency * delay)) for ends, link in links.items()
    }


def _is_other_kind(way: _Way, best: _Way) -> bool:
    """Whether a way is slower than the best one because its wire is of another kind."""
    if way.bandwidth >= best.bandwidth:
        return False
    direct = DIRECT in (way.fabric, best.fabric)
    return direct or way.latency != best.latency or 2 * way.bandwidth <= best.bandwidth


def _through(
    fabric: Fabric, number: int, figures: Mapping[Ends, tuple[int, int]]
) -> Iterator[tuple[Ends, _Way]]:
    """Yield the widest way through a fabric from each GPU to each other; of equals the quickest."""
    leaving: dict[int, list[int]] = {}
    for link in fabric.links:
        leaving.setdefault(link.source, []).append(link.target)
    for gpu in sorted(fabric.gpus):
        best: dict[int, tuple[int, int]] = {}
        heap = [(-max((figures[gpu, x][0] for x in leaving.get(gpu, ())), default=0), 0, gpu)]
        while heap:
            narrow, latency, node = heapq.heappop(heap)  # narrow is minus the bandwidth
            if node in best:
                continue
            best[node] = narrow, latency
            for target in leaving.get(node, ()) if node == gpu or node in fabric.switches else ():
                if target not in best:
                    rate, delay = figures[node, target]
                    heapq.heappush(heap, (max(narrow, -rate), latency + delay, target))
        for target in sorted((best.keys() & fabric.gpus) - {gpu}):
            narrow, latency = best[target]
            yield (gpu, target), _Way(-narrow, latency, number)
