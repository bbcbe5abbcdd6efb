"""Direct-connect fabrics: topologies in which every link leads from a GPU to a GPU.

A switch or NIC with two neighbours only passes on what comes (a relay), and counts as a part of
the cable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from colsynth.bounds.network import Ints, common_divisor, to_int64
from colsynth.bounds.trees import phases_of
from colsynth.errors import Diagnostic, InputError
from colsynth.kernels.shortest import MOST_LINKS, distances
from colsynth.model import Direction, Kind, Problem, Topology

Route = tuple[int, ...]

MOST_GPUS = 8192
"""Distances between all pairs take 2 bytes each: 128 MB."""


@dataclass(frozen=True)
class Fabric:
    """Arcs between ranks, sorted by head: outwards from the roots of one phase.

    Parameters
    ----------
    size : int
        Number of ranks.
    first : int64 (size + 1,)
        Arcs ``first[u]:first[u + 1]`` enter rank u.
    tail : int64 (m,)
    bandwidth : tuple of Fraction
    routes : tuple of tuple of int
        Links of every arc in the order data takes them.
    weight : int64 (size,)
        Weight of each rank as a root.
    """

    size: int
    first: Ints
    tail: Ints
    bandwidth: tuple[Fraction, ...]
    routes: tuple[Route, ...]
    weight: Ints

    @cached_property
    def unit(self) -> Fraction:
        """Greatest common divisor of the bandwidths."""
        return common_divisor(self.bandwidth)

    @cached_property
    def capacity(self) -> Ints:
        """Bandwidths in multiples of `unit`."""
        scaled = {b: int(b / self.unit) for b in set(self.bandwidth)}
        found = to_int64([scaled[b] for b in self.bandwidth], "link bandwidths")
        to_int64([int(found.sum()), int(found.sum()) * int(self.weight.sum())], "loads of links")
        return found

    @cached_property
    def distance(self) -> Ints:
        """Arcs from every rank (column) to every rank (row)."""
        return np.asarray(distances(self.first, self.tail, np.arange(self.size)))


def fabric_of(problem: Problem, direction: Direction) -> Fabric:
    """Return the fabric of one phase.

    Raises
    ------
    InputError
        CS309: a switch joins more than two neighbours, or a GPU has too many links. CS303: the
        problem has process groups or is no problem of trees.
    """
    return fabric_between(problem, direction, _cables(problem.topology))


def fabric_between(
    problem: Problem, direction: Direction, ways: Iterable[tuple[int, int, Route]]
) -> Fabric:
    """Return the fabric of one phase of some ways, each (source, target, links).

    Ways that share a link share its bandwidth.

    Raises
    ------
    InputError
        As `fabric_of`.
    """
    topology = problem.topology
    phases_of(problem)
    if topology.size > MOST_GPUS:
        phrase = f"{topology.size} GPUs are too many for shortest paths, at most {MOST_GPUS}"
        raise InputError(Diagnostic("CS309", phrase, help="use -a ten, or 'colsynth synthesize'"))
    forward, known = direction is Direction.OUT, list(ways)
    users = Counter(link for *_, route in known for link in route)
    found = []
    for source, target, route in known:
        bandwidth = min(topology.links[i].bandwidth / users[i] for i in route)
        ends = (source, target) if forward else (target, source)
        found.append((ends[1], ends[0], route, bandwidth))
    found.sort(key=lambda arc: arc[:3])
    entering = np.bincount([arc[0] for arc in found], minlength=topology.size)
    if entering.max() > MOST_LINKS:
        name = topology.gpu_names[int(entering.argmax())]
        phrase = f"GPU {name!r} has {entering.max()} links, at most {MOST_LINKS} are counted"
        raise InputError(Diagnostic("CS309", phrase, help="-a forest has no such limit"))
    weight = np.zeros(topology.size, np.int64)
    for rank, part in zip(problem.roots, problem.weights, strict=True):
        weight[rank] = part
    return Fabric(
        topology.size,
        np.concatenate(([0], np.cumsum(entering))).astype(np.int64),
        np.array([arc[1] for arc in found], np.int64),
        tuple(arc[3] for arc in found),
        tuple(arc[2] for arc in found),
        weight,
    )


def _cables(topology: Topology) -> Iterator[tuple[int, int, Route]]:
    """Yield (source, target, links) between ranks; refuse switches that join more than two."""
    rank_of = topology.rank_of
    after: dict[int, list[int]] = {}
    for i, link in enumerate(topology.links):
        after.setdefault(link.source, []).append(i)
    if (shared := shared_node(topology)) is not None:
        raise _refusal(topology, *shared)
    for source in topology.ranks:
        for i in after.get(source, ()):
            route = _through_relays(topology, after, i)
            target = topology.links[route[-1]].target
            if target in rank_of and target != source:
                yield rank_of[source], rank_of[target], route


def _through_relays(topology: Topology, after: dict[int, list[int]], link: int) -> Route:
    """Return a link and those that carry on from it through relays, up to a GPU."""
    route = [link]
    while (at := topology.links[route[-1]].target) not in topology.rank_of:
        before = topology.links[route[-1]].source
        onward = [j for j in after.get(at, ()) if topology.links[j].target != before]
        if not onward or len(route) > len(topology.nodes):
            break
        route.append(onward[0])
    return tuple(route)


def shared_node(topology: Topology) -> tuple[int, int] | None:
    """Return the first switch or NIC of more than two neighbours and their number, if any."""
    if topology.is_direct:
        return None
    near: dict[int, set[int]] = {}
    for link in topology.links:
        near.setdefault(link.source, set()).add(link.target)
        near.setdefault(link.target, set()).add(link.source)
    for node, neighbours in sorted(near.items()):
        if node not in topology.rank_of and len(neighbours) > 2:
            return node, len(neighbours)
    return None


def _refusal(topology: Topology, node: int, neighbours: int) -> InputError:
    found = topology.nodes[node]
    kind = "NIC" if found.kind is Kind.NIC else "switch"
    phrase = f"{kind} {found.name!r} joins {neighbours} neighbours: no direct-connect fabric"
    note = "shortest-path trees need links that lead from GPU to GPU, or a relay between two"
    return InputError(
        Diagnostic("CS309", phrase, notes=(note,), help="use -a forest, without --max-height")
    )
