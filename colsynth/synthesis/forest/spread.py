"""Proposals for pairing a switch's ingress with its egress.

Ports are grouped so that traffic never turns back into the group it came from: for a
switch of the fabric a group is a box, for a switch inside a box a group is one port. All GPUs
that share a NIC are a group: runtimes do not send between GPUs of a box through a NIC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from colsynth.model import Kind, Topology
from colsynth.synthesis.forest.grid import Grid, grid_rounds
from colsynth.synthesis.forest.routes import ArcLike

Pairing = dict[tuple[int, int], int]
"""Units by (index of the ingress arc, index of the egress arc)."""


class _Port(NamedTuple):
    """An arc of the switch: its group, its place among the group's arcs, its capacity."""

    group: int
    place: int
    units: int


def proposals(
    topology: Topology,
    node: int,
    into: Sequence[ArcLike],
    out: Sequence[ArcLike],
    grid: Grid = (),
    turn: int = 0,
) -> Iterator[Pairing]:
    """Yield pairings to try for a switch, sparse ones first.

    A grid, if one is given that has a place for every port. Rails (each port only with its
    counterpart in every other group), then an even spread over all ports of other groups. All
    keep every unit where groups are alike.

    Parameters
    ----------
    grid : tuple of int
        Extents of a grid in which ports are paired (`colsynth.synthesis.forest.grid`).
    turn : int
        Rounds that switches between the same neighbours have dealt before: parallel
        planes go on where the last one stopped, so that together they spread evenly.
    """
    neighbours = sorted({arc.tail for arc in into} | {arc.head for arc in out})
    groups = _groups(topology, node, neighbours)
    sources = _ports([arc.tail for arc in into], [arc.units for arc in into], groups)
    sinks = _ports([arc.head for arc in out], [arc.units for arc in out], groups)
    count = max(groups.values(), default=0) + 1
    if prod(grid) == count == len(sources) == len(sinks):
        yield _dealt(sources, sinks, grid_rounds(grid))
    if topology.nodes[node].kind is not Kind.NIC and len(set(groups.values())) < len(groups):
        yield _dealt(sources, sinks, _rotated(_rail_rounds(sources, sinks, count), turn))
    yield _dealt(sources, sinks, _rotated(_spread_rounds(sources, sinks, count), turn))


def _groups(topology: Topology, node: int, neighbours: Sequence[int]) -> dict[int, int]:
    """Number the groups of a switch's neighbours from 0 in order of first appearance."""
    fabric = topology.nodes[node].box is None
    nic = topology.nodes[node].kind is Kind.NIC
    keys: dict[object, int] = {}
    groups = {}
    for neighbour in neighbours:
        other = topology.nodes[neighbour]
        together = (fabric and other.box is not None) or (nic and other.kind is Kind.GPU)
        key = ("box", other.box) if together else ("port", neighbour)
        groups[neighbour] = keys.setdefault(key, len(keys))
    return groups


def _ports(ends: Sequence[int], units: Sequence[int], groups: dict[int, int]) -> list[_Port]:
    filled: dict[int, int] = {}
    ports = []
    for end, capacity in zip(ends, units, strict=True):
        group = groups[end]
        ports.append(_Port(group, filled.get(group, 0), capacity))
        filled[group] = filled.get(group, 0) + 1
    return ports


def _rail_rounds(
    sources: Sequence[_Port], sinks: Sequence[_Port], count: int
) -> list[list[tuple[int, int]]]:
    """Rounds of pairs (same place, other group), one round per distance of groups."""
    at = {(port.group, port.place): j for j, port in enumerate(sinks)}
    rounds = []
    for distance in range(1, count):
        pairs = [
            (i, at.get(((port.group + distance) % count, port.place)))
            for i, port in enumerate(sources)
        ]
        rounds.append([(i, j) for i, j in pairs if j is not None])
    return rounds


def _spread_rounds(
    sources: Sequence[_Port], sinks: Sequence[_Port], count: int
) -> list[list[tuple[int, int]]]:
    """Rounds of pairs (other group, any place), rotating over groups and places."""
    members: dict[int, list[int]] = {}
    for j, port in enumerate(sinks):
        members.setdefault(port.group, []).append(j)
    widest = max((len(ports) for ports in members.values()), default=0)
    rounds = []
    for shift in range(widest):
        for distance in range(1, count):
            pairs = []
            for i, port in enumerate(sources):
                others = members.get((port.group + distance) % count)
                if others:
                    pairs.append((i, others[(port.place + shift) % len(others)]))
            rounds.append(pairs)
    return rounds


def _rotated(rounds: list[list[tuple[int, int]]], turn: int) -> list[list[tuple[int, int]]]:
    first = turn % len(rounds) if rounds else 0
    return rounds[first:] + rounds[:first]


def _dealt(
    sources: Sequence[_Port], sinks: Sequence[_Port], rounds: list[list[tuple[int, int]]]
) -> Pairing:
    """Deal capacity out in turns, an equal share per round, until nothing moves.

    Turns that go like the one before are dealt at once, so that the work does not grow with
    the ratio of the bandwidths.
    """
    left = [*(port.units for port in sources), *(port.units for port in sinks)]
    pairs = [(i, len(sources) + j) for each in rounds for i, j in each]
    pairing: Pairing = {}
    while least := min((x for x in left if x), default=0):
        share = max(1, least // max(1, len(rounds)))
        before = left.copy()
        moved = [_moved(left, i, j, share) for i, j in pairs]
        if not any(moved):
            break
        turns = 1
        if all(units in {0, share} for units in moved):
            used = [x - y for x, y in zip(before, left, strict=True)]
            turns += _more_turns(left, used, share * len(rounds) if share > 1 else 0)
            left = [x - y * (turns - 1) for x, y in zip(left, used, strict=True)]
        for (i, j), units in zip(pairs, moved, strict=True):
            if units:
                key = i, j - len(sources)
                pairing[key] = pairing.get(key, 0) + units * turns
    return pairing


def _moved(left: list[int], i: int, j: int, share: int) -> int:
    """Take what two ports can pass on of a share, and return it."""
    units = min(share, left[i], left[j])
    left[i] -= units
    left[j] -= units
    return units


def _more_turns(left: Sequence[int], used: Sequence[int], least: int) -> int:
    """Return how often a turn can be repeated while all it uses keep `least` or more."""
    return max(0, min((x - least) // y for x, y in zip(left, used, strict=True) if y))
