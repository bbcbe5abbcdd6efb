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
from itertools import count, islice, takewhile
from math import prod

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Kind, Topology
from colsynth.runtimes.choice import Basis, Changes, Proposal
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
    if not (taken or basis.thorough) and _fits(ports - 1, 1, basis):
        return
    single = single_switch(basis.problem.topology) is not None
    for grid in () if taken else _factorings(ports):
        if _fits(sum(grid) - len(grid), 2 if single else 1, basis):
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


def _fits(neighbours: int, threadblocks: int, basis: Basis) -> bool:
    """Whether each connection, in each direction and phase, can have so many threadblocks."""
    ends = 2 * (basis.shape.rises + basis.shape.falls) * neighbours
    return ends * threadblocks <= basis.profile.usable_threadblocks


def _most_ports(topology: Topology) -> int:
    """Return the ports of the switch with most GPUs, of those that only GPUs are joined to.

    Switches of the fabric that join several GPUs of a box do not count: they are paired box by box
    (`colsynth.synthesis.forest.spread`), so that no grid fits.
    """
    ports: dict[int, set[int]] = {}
    for link in topology.links:
        for switch, other in ((link.source, link.target), (link.target, link.source)):
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
        factors = sorted([factors[0] * factors[1], *factors[2:]])
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
