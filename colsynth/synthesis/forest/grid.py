"""Grids behind switches: few neighbours for each GPU, at the same rate.

A switch may forward from any port to any other, so the bandwidth of its ports can be paired in
many ways that keep the rate. If every GPU is a neighbour of every other one, it needs N - 1
connections for each phase, and threadblocks run out. In a grid, neighbours differ in one
coordinate only. A tree sends along the last coordinate first: its root serves n - 1 GPUs, each
of which serves all others along the coordinate before, and so on. Every GPU then receives
N - 1 shards, and sends as many, as with a direct tree; so nothing is lost. With extents n1 x n2
x ... a GPU has sum(ni - 1) neighbours, and a tree has as many levels as there are extents.
The grid of extents 2 x 2 x ... is the hypercube. Source: products of complete graphs (Hamming
graphs) are bandwidth-optimal under breadth-first broadcast (arXiv 2202.03356).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import count, islice, takewhile
from math import ceil, prod

from colsynth.cost import model_of
from colsynth.cost.usable import pace
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Kind, Topology
from colsynth.runtimes.choice import Basis, Changes, Proposal
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest.circulant import single_switch

Grid = tuple[int, ...]
"""Extents of a grid, the first for neighbouring ports; empty for none."""

_MOST_PORTS = 4096
"""Ports of a switch up to which its grids are proposed; no file holds so many ranks."""


class Distances(tuple[int, ...]):
    """Distances of neighbours on a ring of all GPUs (`colsynth.synthesis.forest.circulant`)."""

    __slots__ = ()


def grid_of(text: str) -> Grid | Distances:
    """Return the extents of a grid, none for ``"all"``, or distances; refuse others (CS210)."""
    if text == "all":
        return ()
    if re.fullmatch(r"[1-9]\d{0,3}(\+[1-9]\d{0,3})+", text):
        return Distances(map(int, text.split("+")))
    if not re.fullmatch(r"[1-9]\d{0,3}(x[1-9]\d{0,3})*", text):
        phrase = f"grid {text}: expected all, extents such as 2x2x3, or distances such as 1+3+9"
        raise InputError(Diagnostic("CS210", phrase))
    return tuple(map(int, text.split("x")))


def grid_rounds(grid: Grid) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs (source, sink), one for each shard that a GPU sends.

    Along a coordinate, a GPU passes on what it has from all later coordinates, so these rounds
    are repeated as often.
    """
    rounds: list[list[tuple[int, int]]] = []
    stride = 1
    for place, extent in enumerate(grid):
        for distance in range(1, extent):
            pairs = []
            for port in range(prod(grid)):
                own = port // stride % extent
                pairs.append((port, port + ((own + distance) % extent - own) * stride))
            rounds += [pairs] * prod(grid[place + 1 :])
        stride *= extent
    return rounds


def grids(basis: Basis) -> Iterator[Proposal]:
    """Yield grids for the largest switch of a box, the one with the fewest neighbours first.

    Unless all is tried, only where one threadblock for each connection, direction and phase
    would be more than may be resident. Behind a single switch, distances are yielded too, which
    lead to few neighbours whatever the number of GPUs; a grid must then leave each connection
    two threadblocks, since their loads differ. Where a grid was taken, distances are yielded once
    more: with segments they may be faster.
    """
    taken = grid_of(basis.values["pack-trees.grid"])
    if basis.problem.groups or isinstance(taken, Distances):
        return
    ports = _most_ports(basis.problem.topology)
    phases = basis.shape.rises + basis.shape.falls
    if not (taken or basis.thorough) and _fits(ports - 1, 1, phases, basis.profile):
        return
    single = single_switch(basis.problem.topology) is not None
    for grid in () if taken else _factorings(ports):
        if _fits(_neighbours(grid), 2 if single else 1, phases, basis.profile):
            yield ({"pack-trees.grid": _spelt(grid)},)
    if single:
        yield from _distances(ports, basis)


def few_neighbours(topology: Topology) -> Iterator[str]:
    """Yield the grid with the fewest neighbours behind the largest switch, then distances.

    For machines where every GPU as a neighbour of every other one asks for more threadblocks than
    a file may have, so that no program is known to propose others for.
    """
    ports = _most_ports(topology)
    yield from map(_spelt, islice(_factorings(ports), 1))
    if single_switch(topology) is not None:
        yield from _on_a_ring(ports)


def roomy_grids(topology: Topology, phases: int, profile: Profile) -> tuple[str, ...]:
    """Return grids that leave each connection two threadblocks, where all neighbours do not.

    Up to half of all threadblocks are idle there, and connections have one, whatever their load.
    The two smallest prime factors are made one, which saves a level. Small messages are faster
    where the first extent is the shortest; large ones sometimes are where it is the longest.
    """
    ports = _crowded_ports(topology, phases, profile)
    factors = _primes(ports)
    merged = tuple(_merged(factors) if len(factors) > 2 else factors)
    grids = dict.fromkeys((merged, merged[::-1])) if len(merged) > 1 else ()
    return tuple(_spelt(x) for x in grids if _fits(_neighbours(x), 2, phases, profile))


def flat_grid(topology: Topology, phases: int, profile: Profile) -> tuple[str, ...]:
    """Return the grid with the fewest levels, where all neighbours leave connections no room.

    One threadblock for each connection is enough for small messages. Of those with as few levels,
    that with the fewest neighbours; the longest extent is first, as data takes it last.
    """
    ports = _crowded_ports(topology, phases, profile)
    grids = (x for x in _products(ports, ports) if _fits(_neighbours(x), 1, phases, profile))
    found = min(grids, key=lambda grid: (len(grid), sum(grid), grid), default=())
    return (_spelt(found),) if len(found) > 1 else ()


def fused_grid(topology: Topology, phases: int, target: Target) -> tuple[str, ...]:
    """Return the grid with the fewest neighbours, where it helps threadblocks to fill the links.

    That is where those for all neighbours of a GPU cannot, and a relay shares the threadblock of
    its arrival: a grid has relays where direct trees have further sends.
    """
    ports = _most_ports(topology)
    if not target.profile.fuses or ports > _MOST_PORTS or ports < 2:
        return ()
    rate = pace(model_of(target), "Simple")
    wanted = ceil(_port_rate(topology, ports) / (ports - 1) / rate)
    if _fits(ports - 1, wanted, phases, target.profile):
        return ()
    return tuple(map(_spelt, islice(_factorings(ports), 1)))


def _port_rate(topology: Topology, ports: int) -> Fraction:
    """Return the largest bandwidth from a GPU to a switch that joins so many."""
    into: dict[int, list[Fraction]] = {}
    for link in topology.links:
        source, target = (topology.nodes[end].kind for end in link.ends)
        if source is Kind.GPU and target is Kind.SWITCH:
            into.setdefault(link.target, []).append(link.bandwidth)
    known = (max(rates) for rates in into.values() if len(rates) >= ports)
    return max(known, default=Fraction(0))


def _crowded_ports(topology: Topology, phases: int, profile: Profile) -> int:
    """Return the ports of the largest switch, 1 where connections may have two threadblocks."""
    ports = _most_ports(topology)
    return 1 if ports > _MOST_PORTS or _fits(ports - 1, 2, phases, profile) else ports


def _neighbours(grid: Grid) -> int:
    return sum(grid) - len(grid)


def _fits(neighbours: int, threadblocks: int, phases: int, profile: Profile) -> bool:
    """Whether each connection, in each direction and phase, can have so many threadblocks."""
    return 2 * phases * neighbours * threadblocks <= profile.usable_threadblocks


def _most_ports(topology: Topology) -> int:
    """Return the ports of the switch with most GPUs, of those that only GPUs are joined to.

    Switches of the fabric that join several GPUs of a box do not count: they are paired box by box
    (`colsynth.synthesis.forest.spread`), so that no grid fits.
    """
    ports: dict[int, set[int]] = {}
    for link in topology.links:
        for switch, other in (link.ends, (link.target, link.source)):
            if topology.nodes[switch].kind is Kind.SWITCH:
                ports.setdefault(switch, set()).add(other)
    counts = (
        len(joined)
        for switch, joined in ports.items()
        if all(topology.nodes[node].kind is Kind.GPU for node in joined)
        and (topology.nodes[switch].box is not None or _are_apart(topology, joined))
    )
    return max(counts, default=0)


def _are_apart(topology: Topology, gpus: Collection[int]) -> bool:
    """Whether no two GPUs are in one box."""
    boxes = [topology.nodes[gpu].box for gpu in gpus if topology.nodes[gpu].box is not None]
    return len(set(boxes)) == len(boxes)


def _factorings(number: int) -> Iterator[Grid]:
    """Yield factorings into two or more: the prime factors, then the two smallest made one.

    The prime factors come in both orders, since the first extent has most of the load.
    """
    factors = _primes(number) if number <= _MOST_PORTS else []
    orders = [tuple(factors), tuple(reversed(factors))]
    while len(factors) > 1:
        orders.append(tuple(factors))
        factors = _merged(factors)
    yield from dict.fromkeys(grid for grid in orders if len(grid) > 1)


def _distances(ports: int, basis: Basis) -> Iterator[Proposal]:
    """Yield powers of 3 as distances: a digit takes a hop, near the ends of the ring two.

    Trees take turns on each of the few connections: root by root, a connection would wait for
    the last tree before it begins with the next.
    """
    both = basis.shape.rises and basis.shape.falls
    turns: Changes = {
        "order-transfers.order": "round-robin",
        "assign-threadblocks.strategy": "pooled" if both else "balanced",
    }
    for text in _on_a_ring(ports):
        grid: Changes = {"pack-trees.grid": text}
        yield {**grid, **turns}, grid


def _on_a_ring(ports: int) -> Iterator[str]:
    """Yield powers of 3 as distances on a ring of so many ports, unless 1 is the only one."""
    powers = list(takewhile(lambda power: 2 * power <= ports, (3**k for k in count())))
    if len(powers) > 1:
        yield "+".join(map(str, powers))


def _spelt(grid: Grid) -> str:
    return "x".join(map(str, grid))


def _merged(factors: list[int]) -> list[int]:
    """Return factors, ascending, with the two smallest made one."""
    return sorted([prod(factors[:2]), *factors[2:]])


def _products(number: int, most: int) -> Iterator[Grid]:
    """Yield the factorings of a number into factors from 2 to `most`, each descending."""
    if number == 1:
        yield ()
    for factor in range(min(number, most), 1, -1):
        if number % factor == 0:
            yield from ((factor, *rest) for rest in _products(number // factor, factor))


def _primes(number: int) -> list[int]:
    """Return the prime factors of a number, ascending."""
    found = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found
