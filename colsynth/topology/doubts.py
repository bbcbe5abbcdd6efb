"""Notes on figures of links that nobody can mean; most come from a wrong unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from colsynth.model import Kind, Link, Topology
from colsynth.units import format_bandwidth, plural

FASTEST = Fraction(10**14)
"""Bytes per second at a GPU or a NIC. Memory of a GPU has a tenth of it; trunks may have more."""

SLOWEST = Fraction(10**6)
"""Bytes per second. The first Ethernet (10 Mb/s) had more."""

LATEST = Fraction(1)
"""Seconds. Light goes around the Earth seven times, a packet over a satellite four."""


def doubted(topology: Topology) -> Topology:
    """Return a topology with a note on each kind of figure that cannot be meant."""
    ends = {i for i, node in enumerate(topology.nodes) if node.kind is not Kind.SWITCH}
    fast = [x for x in topology.links if x.bandwidth > FASTEST and ends & {x.source, x.target}]
    slow = [x for x in topology.links if x.bandwidth < SLOWEST]
    late = [x for x in topology.links if x.latency > LATEST]
    notes = []
    if fast:
        worst = max(fast, key=lambda link: link.bandwidth)
        told = f"{format_bandwidth(worst.bandwidth)}, more than the memory of any GPU"
        notes.append(f"{_of(topology, worst, fast)} bandwidth of {told}")
    if slow:
        worst = min(slow, key=lambda link: link.bandwidth)
        told = f"{format_bandwidth(worst.bandwidth)}, less than any network"
        notes.append(f"{_of(topology, worst, slow)} bandwidth of {told}")
    if late:
        worst = max(late, key=lambda link: link.latency)
        told = f"{float(worst.latency):.4g} s, longer than a signal takes around the Earth"
        notes.append(f"{_of(topology, worst, late)} latency of {told}")
    asked = (f"{note}: is the unit right?" for note in notes)
    return replace(topology, notes=(*topology.notes, *asked)) if notes else topology


def _of(topology: Topology, link: Link, found: list[Link]) -> str:
    """Return the name of the worst link, and how many others are doubted like it."""
    name = topology.link_name(topology.link_between[link.source, link.target])
    others = f" (like {plural(len(found) - 1, 'other link')})" if len(found) > 1 else ""
    return f"{name}{others} has a"
