"""What importers lead to, before it is YAML: groups of nodes, wires between them, sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm

from colsynth.errors import Diagnostic

Ref = tuple[str, int]
"""A node: the name of its group, and its number in it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What links of one kind carry.

    Parameters
    ----------
    name : str
        Of the parameter, which is numbered if several have it; latencies are ``KIND-latency``.
    bandwidth : Fraction
        Bytes per second of one link in one direction.
    source : str
        Where the bandwidth comes from.
    kind : str
        ``"nvlink"``, ``"pcie"``, ``"nic"``, ...
    latency : Fraction
        Seconds.
    latency_source : str
    text : str
        Of the bandwidth, where its source has another unit.
    """

    name: str
    bandwidth: Fraction
    source: str
    kind: str
    latency: Fraction = Fraction(0)
    latency_source: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Like nodes.

    Parameters
    ----------
    name : str
        Letters; the nodes are numbered.
    kind : str
        ``"gpu"``, ``"switch"`` or ``"nic"``.
    members : tuple of str
        What the source calls each of them.
    note : str
        A sentence on where they come from.
    capabilities : tuple of str
    """

    name: str
    kind: str
    members: tuple[str, ...]
    note: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wire:
    """Parallel links between two nodes; `note` says where their number comes from."""

    source: Ref
    target: Ref
    rate: Rate
    count: int = 1
    one_way: bool = False
    note: str = ""


def unit_of(bandwidths: Iterable[Fraction]) -> Fraction:
    """Return the largest bandwidth of which all are multiples."""
    values = list(bandwidths)
    scale = lcm(*(x.denominator for x in values))
    return Fraction(gcd(*(int(x * scale) for x in values)), scale)


def free_name(name: str, part: Part) -> str:
    """Return a name for a group of the fabric that no group of a box has."""
    while any(group.name == name for group in part.groups):
        name += "-x"
    return name


def merged(wires: Iterable[Wire]) -> tuple[Wire, ...]:
    """Return one wire for all between the same two nodes: rates that differ are added up."""
    found: dict[frozenset[Ref], Wire] = {}
    for wire in wires:
        ends = frozenset((wire.source, wire.target))
        same = found.get(ends)
        if same is None:
            found[ends] = wire
        elif same.rate == wire.rate:
            found[ends] = replace(same, count=same.count + wire.count)
        else:
            total = same.rate.bandwidth * same.count + wire.rate.bandwidth * wire.count
            found[ends] = replace(same, rate=replace(same.rate, bandwidth=total), count=1)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Part:
    """A box, or the fabric between boxes."""

    groups: tuple[Group, ...] = ()
    wires: tuple[Wire, ...] = ()


@dataclass(frozen=True, slots=True)
class Port:
    """Where a fabric can be attached to a box; `label` is what the source calls it."""

    node: Ref
    label: str
    rate: Rate
    plane: int | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """One box, where a fabric joins it, and how many of them the source speaks of."""

    title: str
    part: Part
    ports: tuple[Port, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole topology.

    Parameters
    ----------
    name, title : str
    notes : tuple of str
        Comments at the top.
    box : Part
        Of every box.
    hosts : tuple of str
        What each box is called, as far as the sources say; as many as there are boxes.
    fabric : Part
    uplinks : tuple of tuple of Wire
        From each box to the fabric.
    boxed : bool
        Whether the nodes belong to boxes; False for a network that says nothing of them.
    warnings : tuple of Diagnostic
    places : tuple of (Ref, int)
        The boxes of some nodes, where `boxed` is False.
    """

    name: str
    title: str
    notes: tuple[str, ...]
    box: Part
    hosts: tuple[str, ...] = ("",)
    fabric: Part = Part()
    uplinks: tuple[tuple[Wire, ...], ...] = ((),)
    boxed: bool = True
    warnings: tuple[Diagnostic, ...] = ()
    places: tuple[tuple[Ref, int], ...] = ()
