"""Replace switches and NICs by logical arcs between GPUs, keeping the rate.

A switch only forwards, so each unit that enters it leaves on one link: removing it means
pairing ingress with egress. A whole pairing is proposed at once and certified with one
maximum flow per GPU; proposals that spread bandwidth over other boxes, or over the GPU in
the same place of every other box, almost always pass on real clusters. Where none does,
pairs are split off one by one: pairing (u, w) with (w, t) lowers exactly the cuts that
separate w from both, each by one per unit, so the largest deficit after a tentative
pairing is what must be taken back, and one round of flows settles each pair exactly
(edge splitting: Bang-Jensen, Frank, Jackson 1995; ForestColl, arXiv 2402.06787). For
switches with as much ingress as egress the theorem promises that nothing is lost; for
others the caller measures what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from colsynth.kernels.maxflow import largest_deficit
from colsynth.model import Kind, Topology
from colsynth.synthesis.forest.spread import Pairing, proposals
from colsynth.synthesis.network import Ints, Network


class Arc(NamedTuple):
    """A logical arc: `units` of capacity from node to node along a route of links."""

    tail: int
    head: int
    units: int
    route: tuple[int, ...]


def remove_switches(
    topology: Topology, network: Network, units: Ints, trees: int
) -> tuple[tuple[Arc, ...], int]:
    """Return logical arcs between GPU nodes, and the deficit they leave.

    Parameters
    ----------
    topology : Topology
    network : Network
        Of the phase; arc i of it is link i of the topology, turned for IN phases.
    units : int64 (m,)
        Capacity of each arc in trees.
    trees : int
        Trees per root the capacities must hold.

    Returns
    -------
    arcs : tuple of Arc
        ``tail`` and ``head`` are node indices of GPUs; sorted.
    deficit : int
        0 when the arcs hold the trees; positive when unbalanced switches lost capacity.
    """
    arcs = [
        Arc(int(a), int(b), int(c), (i,))
        for i, (a, b, c) in enumerate(zip(network.tail, network.head, units, strict=True))
        if c > 0
    ]
    certify = _Certifier(network, trees)
    for node in _removal_order(topology):
        arcs = _remove(topology, node, arcs, certify)
    return tuple(sorted(_merged(arcs))), certify(arcs)


class _Certifier:
    """Largest deficit of any GPU when roots feed `trees` trees each into given arcs."""

    def __init__(self, network: Network, trees: int) -> None:
        self._network = network
        self._roots = network.roots
        self._supply = network.weight[self._roots] * trees
        self._demand = int(self._supply.sum())

    def __call__(self, arcs: list[Arc]) -> int:
        source = self._network.size
        ends = np.array([arc[:3] for arc in arcs], np.int64).reshape(-1, 3)
        deficit, _ = largest_deficit(
            source + 1,
            np.concatenate((ends[:, 0], np.full(self._roots.size, source, np.int64))),
            np.concatenate((ends[:, 1], self._roots)),
            np.concatenate((ends[:, 2], self._supply)),
            source,
            self._network.gpus,
            self._demand,
        )
        return int(deficit)


def _removal_order(topology: Topology) -> list[int]:
    """NICs and mere relays first, then the fabric, then switches inside boxes."""
    neighbours: dict[int, set[int]] = {}
    for link in topology.links:
        neighbours.setdefault(link.source, set()).add(link.target)
        neighbours.setdefault(link.target, set()).add(link.source)

    def key(index: int) -> tuple[bool, bool, int]:
        node = topology.nodes[index]
        relay = node.kind is Kind.NIC or len(neighbours.get(index, ())) <= 2
        return not relay, node.box is not None, index

    others = [i for i, node in enumerate(topology.nodes) if node.kind is not Kind.GPU]
    return sorted(others, key=key)


def _remove(topology: Topology, node: int, arcs: list[Arc], certify: _Certifier) -> list[Arc]:
    """Return the arcs without `node`, its ingress paired with its egress."""
    into = [arc for arc in arcs if arc.head == node]
    out = [arc for arc in arcs if arc.tail == node]
    rest = [arc for arc in arcs if node not in (arc.tail, arc.head)]
    for pairing in proposals(topology, node, into, out):
        proposed = _merged([*rest, *_joined(into, out, pairing)])
        if certify(proposed) == 0:
            return proposed
    return _merged(_split_off(rest, into, out, certify))


def _joined(into: list[Arc], out: list[Arc], pairing: Pairing) -> Iterator[Arc]:
    """Yield the arcs of a pairing {(index into `into`, index into `out`): units}."""
    for (i, j), units in sorted(pairing.items()):
        if units > 0 and into[i].tail != out[j].head:
            yield Arc(into[i].tail, out[j].head, units, into[i].route + out[j].route)


def _split_off(rest: list[Arc], into: list[Arc], out: list[Arc], certify: _Certifier) -> list[Arc]:
    """Pair ingress with egress exactly, one pair of arcs at a time."""
    into, out = list(into), list(out)
    base = certify([*rest, *into, *out])
    for i in range(len(into)):
        for j in range(len(out)):
            most = min(into[i].units, out[j].units)
            if most == 0 or into[i].tail == out[j].head:
                continue
            tentative = _take(rest, into, out, i, j, most)
            taken = most - max(0, certify([*tentative[0], *tentative[1], *tentative[2]]) - base)
            if taken > 0:
                rest, into, out = _take(rest, into, out, i, j, taken)
    return rest


def _take(
    rest: list[Arc], into: list[Arc], out: list[Arc], i: int, j: int, units: int
) -> tuple[list[Arc], list[Arc], list[Arc]]:
    """Return (rest, into, out) after pairing `units` of ingress i with egress j."""
    joined = [*rest, *_joined(into, out, {(i, j): units})]
    first = [a._replace(units=a.units - units) if k == i else a for k, a in enumerate(into)]
    second = [a._replace(units=a.units - units) if k == j else a for k, a in enumerate(out)]
    return joined, first, second


def _merged(arcs: list[Arc]) -> list[Arc]:
    """Return the arcs sorted, equal routes between the same nodes added up."""
    total: dict[tuple[int, int, tuple[int, ...]], int] = {}
    for arc in arcs:
        key = arc.tail, arc.head, arc.route
        total[key] = total.get(key, 0) + arc.units
    return [Arc(a, b, units, route) for (a, b, route), units in sorted(total.items()) if units]
