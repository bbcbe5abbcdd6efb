"""Where a bound is tight, by the names of GPUs and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from colsynth.model import AllreduceBound, Bound, Direction, FlowBound, Topology
from colsynth.reading import in_form
from colsynth.units import exact_gb_per_s, gb_per_s, parse_fraction

_OPPOSITE = {"into": "out of", "out of": "into"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """The plain values of a bottleneck, without those that repeat others."""

    way: str
    sets: tuple[tuple[str, ...], ...]
    links: tuple[str, ...]
    bandwidth: str
    allows: str | None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Links that hold everything back.

    Parameters
    ----------
    way : str
        ``"into"`` or ``"out of"`` a set of GPUs, or ``"between"`` several sets.
    sets : tuple of tuple of str
        Names of the GPUs; of a cut, the smaller side.
    links : tuple of str
    bandwidth : Fraction
        Of the links, bytes per second.
    allows : Fraction, optional
        What they alone would allow, bytes per second, where other links take part in the proof.
    """

    way: str
    sets: tuple[tuple[str, ...], ...]
    links: tuple[str, ...]
    bandwidth: Fraction
    allows: Fraction | None = None

    def entry(self) -> dict[str, Any]:
        """Return plain values that `of_entry` reads back."""
        return {
            "way": self.way,
            "sets": [list(names) for names in self.sets],
            "links": list(self.links),
            "bandwidth_gb_per_s": gb_per_s(self.bandwidth),
            "bandwidth": exact_gb_per_s(self.bandwidth),
            "allows": None if self.allows is None else exact_gb_per_s(self.allows),
        }

    @classmethod
    def of_entry(cls, entry: Any) -> Bottleneck:
        """Return what `entry` wrote; ValueError from others."""
        found = in_form(entry, _Entry)
        allows = None if found.allows is None else parse_fraction(found.allows) * 10**9
        bandwidth = parse_fraction(found.bandwidth) * 10**9
        return cls(found.way, found.sets, found.links, bandwidth, allows)


def bottleneck_of(topology: Topology, bound: Bound | FlowBound | AllreduceBound) -> Bottleneck:
    """Return where a bound is tight.

    Of flows the tightest cut, which may allow more; of trees the cut of the slowest phase; of an
    allreduce with free roots the sets that the data must leave or enter, or else the set with the
    highest price.
    """
    if isinstance(bound, FlowBound):
        tight = _around(topology, bound.cut.direction, [bound.cut.nodes])
        return replace(tight, allows=bound.cut_algbw) if bound.cut_algbw > bound.algbw else tight
    if isinstance(bound, AllreduceBound) and bound.limit.algbw == bound.algbw:
        return _around(topology, bound.limit.direction, bound.limit.parts)
    if isinstance(bound, AllreduceBound) and bound.rooted is not None:
        dearest = max(bound.rooted.cuts, key=lambda cut: cut.price)
        return _around(topology, dearest.direction, [dearest.nodes])
    trees = bound.composition if isinstance(bound, AllreduceBound) else bound
    phases = zip(trees.rates, trees.cuts, strict=True)
    cut = min(phases, key=lambda phase: phase[0])[1]
    return _around(topology, cut.direction, [cut.nodes])


def _around(topology: Topology, direction: Direction, parts: Sequence[Sequence[int]]) -> Bottleneck:
    """Return the links that leave (OUT) or enter (IN) any of the sets of nodes."""
    part_of = {node: number for number, nodes in enumerate(parts) for node in nodes}
    leaving = direction is Direction.OUT
    ways = (link.ends[:: 1 if leaving else -1] for link in topology.links)
    crossing = tuple(
        index
        for index, (inner, outer) in enumerate(ways)
        if inner in part_of and part_of[inner] != part_of.get(outer)
    )
    sets = [[node for node in topology.ranks if part_of.get(node) == i] for i in range(len(parts))]
    way = "between"
    if len(parts) == 1:
        way = "out of" if leaving else "into"
        if 2 * len(sets[0]) > topology.size:
            sets = [[node for node in topology.ranks if node not in part_of]]
            way = _OPPOSITE[way]
    return Bottleneck(
        way,
        tuple(tuple(topology.nodes[node].name for node in nodes) for nodes in sets),
        tuple(topology.link_name(index) for index in crossing),
        sum((topology.links[index].bandwidth for index in crossing), Fraction(0)),
    )
