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

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from colsynth.kernels.maxflow import largest_deficit
from colsynth.model import Kind, Topology
from colsynth.synthesis.forest.routes import Arc, Bundle, Supply, bundled
from colsynth.synthesis.forest.spread import ArcLike, Pairing, proposals
from colsynth.synthesis.network import Ints, Network


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
        ``tail`` and ``head`` are node indices of GPUs; sorted by them.
    deficit : int
        0 when the arcs hold the trees; positive when unbalanced switches lost capacity.
    """
    bundles = bundled(
        Arc(int(a), int(b), int(c), (i,))
        for i, (a, b, c) in enumerate(zip(network.tail, network.head, units, strict=True))
    )
    certify = _Certifier(network, trees)
    turns: Counter[frozenset[int]] = Counter()
    for node in _removal_order(topology):
        bundles = _remove(topology, node, bundles, certify, turns)
    return tuple(arc for bundle in bundles for arc in bundle.arcs), certify(bundles)


class _Certifier:
    """Largest deficit of any GPU when roots feed `trees` trees each into given arcs."""

    def __init__(self, network: Network, trees: int) -> None:
        self._network = network
        self._roots = network.roots
        self._supply = network.weight[self._roots] * trees
        self._demand = int(self._supply.sum())

    def __call__(self, arcs: Sequence[ArcLike]) -> int:
        source = self._network.size
        ends = np.array([(a.tail, a.head, a.units) for a in arcs], np.int64).reshape(-1, 3)
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


def _remove(
    topology: Topology,
    node: int,
    bundles: list[Bundle],
    certify: _Certifier,
    turns: Counter[frozenset[int]],
) -> list[Bundle]:
    """Return the bundles without `node`, its ingress paired with its egress.

    `turns` counts the rounds dealt by switches between the same neighbours.
    """
    into = [bundle for bundle in bundles if bundle.head == node]
    out = [bundle for bundle in bundles if bundle.tail == node]
    rest = [bundle for bundle in bundles if node not in (bundle.tail, bundle.head)]
    neighbours = frozenset(b.tail for b in into) | frozenset(b.head for b in out)
    offers = proposals(topology, node, into, out, turns[neighbours])
    turns[neighbours] += max((bundle.units for bundle in into), default=0)
    pairing = _proposed(topology, offers, rest, into, out, certify)
    if pairing is None:
        pairing = _split_off(rest, into, out, certify)
    kept = (arc for bundle in rest for arc in bundle.arcs)
    return bundled((*kept, *_joined(into, out, pairing)))


def _proposed(
    topology: Topology,
    offers: Iterator[Pairing],
    rest: list[Bundle],
    into: list[Bundle],
    out: list[Bundle],
    certify: _Certifier,
) -> Pairing | None:
    """Return the first proposal that loses nothing, None where each does."""
    for pairing in offers:
        if _unbalances(topology, into, out, pairing):
            continue
        if certify([*rest, *_pairs(into, out, pairing)]) == 0:
            return pairing
    return None


def _unbalances(
    topology: Topology, into: list[Bundle], out: list[Bundle], pairing: Pairing
) -> bool:
    """Whether what a pairing leaves over costs a switch more one way than the other.

    Such a switch could not forward all it receives when its own turn comes.
    """
    left: Counter[int] = Counter()
    for bundle in into:
        left[bundle.tail] += bundle.units
    for bundle in out:
        left[bundle.head] -= bundle.units
    for (i, j), units in pairing.items():
        left[into[i].tail] -= units
        left[out[j].head] += units
    return any(lost and topology.nodes[node].kind is not Kind.GPU for node, lost in left.items())


class _Pair(NamedTuple):
    """What a pairing makes of an ingress and an egress bundle, whatever its routes."""

    tail: int
    head: int
    units: int


def _pairs(into: list[Bundle], out: list[Bundle], pairing: Pairing) -> list[_Pair]:
    return [_Pair(into[i].tail, out[j].head, units) for (i, j), units in pairing.items()]


def _joined(into: list[Bundle], out: list[Bundle], pairing: Pairing) -> Iterator[Arc]:
    """Yield the arcs of a pairing {(index into `into`, index into `out`): units}."""
    arriving = [Supply(bundle) for bundle in into]
    leaving = [Supply(bundle) for bundle in out]
    for (i, j), wanted in sorted(pairing.items()):
        left = wanted
        while left:
            units = min(left, arriving[i].room, leaving[j].room)
            route = arriving[i].take(units) + leaving[j].take(units)
            yield Arc(into[i].tail, out[j].head, units, route)
            left -= units


def _split_off(
    rest: list[Bundle], into: list[Bundle], out: list[Bundle], certify: _Certifier
) -> Pairing:
    """Pair ingress with egress exactly, one pair of bundles at a time."""
    base = certify([*rest, *into, *out])
    ingress, egress = list(into), list(out)
    pairing: Pairing = {}
    for i, j in product(range(len(into)), range(len(out))):
        most = min(ingress[i].units, egress[j].units)
        if most == 0 or into[i].tail == out[j].head:
            continue
        tentative = _Pair(into[i].tail, out[j].head, most)
        first, second = _less(ingress, i, most), _less(egress, j, most)
        made = _pairs(into, out, pairing)
        lost = certify([*rest, *first, *second, *made, tentative]) - base
        taken = most - max(0, lost)
        if taken > 0:
            pairing[i, j] = taken
            ingress, egress = _less(ingress, i, taken), _less(egress, j, taken)
    return pairing


def _less(bundles: list[Bundle], index: int, units: int) -> list[Bundle]:
    """Return the bundles with `units` less in one of them."""
    smaller = bundles[index]._replace(units=bundles[index].units - units)
    return [*bundles[:index], smaller, *bundles[index + 1 :]]
