"""Replace switches and NICs by logical arcs between GPUs, keeping the rate.

A switch only forwards, so each unit that enters it leaves on one link: removing it means
pairing ingress with egress. Relays between two neighbours leave no choice. For the others
whole pairings are proposed, of many switches at once, and certified with one maximum flow
per GPU; proposals that spread bandwidth over other boxes, or over the GPU in the same
place of every other box, almost always pass on real clusters. Where some do not, bisection
finds the switches, and where no proposal passes, pairs are split off one by one: pairing
(u, w) with (w, t) lowers exactly the cuts that separate w from both, each by one per unit,
so the largest deficit after a tentative pairing is what must be taken back, and one round
of flows settles each pair exactly (edge splitting: Bang-Jensen, Frank, Jackson 1995;
ForestColl, arXiv 2402.06787). For switches with as much ingress as egress the theorem
promises that nothing is lost; for others the caller measures what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from colsynth.bounds.network import Ints, Network
from colsynth.kernels.maxflow import largest_deficit
from colsynth.model import Kind, Topology
from colsynth.synthesis.forest.grid import Grid
from colsynth.synthesis.forest.routes import Arc, ArcLike, Bundle, Logical, Supply, ends_of
from colsynth.synthesis.forest.spread import Pairing, proposals


def remove_switches(
    topology: Topology, network: Network, units: Ints, trees: int, grid: Grid = ()
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
    grid : tuple of int
        How the ports of switches are paired, where it fits (`colsynth.synthesis.forest.grid`).

    Returns
    -------
    arcs : tuple of Arc
        ``tail`` and ``head`` are node indices of GPUs; sorted by them.
    deficit : int
        0 when the arcs hold the trees; positive when unbalanced switches lost capacity.
    """
    graph = Logical(
        Arc(int(a), int(b), int(c), (i,))
        for i, (a, b, c) in enumerate(zip(network.tail, network.head, units, strict=True))
    )
    relays, switches = _removal_order(topology)
    for node in relays:
        _bypass(graph, node)
    # What cuts hold loses nothing with relays, so the deficit is 0 before switches go.
    state = _State(topology, graph, _Certifier(network, trees), Counter(), 0, grid)
    state = _without(state, switches)
    bundles = state.graph.bundles()
    return tuple(arc for bundle in bundles for arc in bundle.arcs), state.deficit


class _Certifier:
    """Largest deficit of any GPU when roots feed `trees` trees each into given arcs."""

    def __init__(self, network: Network, trees: int) -> None:
        self._network = network
        self._roots = network.roots
        self._supply = network.weight[self._roots] * trees
        self._demand = int(self._supply.sum())

    def __call__(self, arcs: Sequence[ArcLike], known: Ints | None = None) -> int:
        """Return the deficit of `arcs`, and of rows (tail, head, units) in `known`."""
        source = self._network.size
        ends = ends_of(arcs)
        if known is not None:
            ends = np.concatenate((known, ends))
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


class _State(NamedTuple):
    """What removing switches has come to.

    Parameters
    ----------
    turns : Counter
        Rounds dealt by switches between the same neighbours.
    deficit : int
        What has been lost so far.
    grid : tuple of int
        As of `remove_switches`.
    """

    topology: Topology
    graph: Logical
    certify: _Certifier
    turns: Counter[frozenset[int]]
    deficit: int
    grid: Grid


def _removal_order(topology: Topology) -> tuple[list[int], list[int]]:
    """Return mere relays, and other nodes: NICs, then the fabric, then switches inside boxes."""
    neighbours: dict[int, set[int]] = {}
    for link in topology.links:
        neighbours.setdefault(link.source, set()).add(link.target)
        neighbours.setdefault(link.target, set()).add(link.source)

    def key(index: int) -> tuple[bool, bool, int]:
        node = topology.nodes[index]
        return node.kind is not Kind.NIC, node.box is not None, index

    others = [i for i, node in enumerate(topology.nodes) if node.kind is not Kind.GPU]
    relays = [index for index in others if len(neighbours.get(index, ())) <= 2]
    return relays, sorted(set(others) - set(relays), key=key)


def _bypass(graph: Logical, node: int) -> None:
    """Join what a relay between two neighbours receives from one with what the other gets.

    Nothing is lost: a cut may put the relay on the side where it costs less.
    """
    into, out = graph.into(node), graph.out(node)
    pairing = {
        (i, j): min(into[i].units, out[j].units)
        for i, j in product(range(len(into)), range(len(out)))
        if into[i].tail != out[j].head
    }
    graph.replace(node, _joined(into, out, pairing))


def _without(state: _State, switches: Sequence[int]) -> _State:
    """Remove switches: the first proposal for each of them, where that loses nothing.

    One certificate covers them all. Where it does not hold, halves are tried in their
    turn, down to single switches, for which every proposal is tried.
    """
    if len(switches) < 2:
        return _without_one(state, switches[0]) if switches else state
    trial = state._replace(graph=state.graph.copy(), turns=state.turns.copy())
    if all(_trusted(trial, node) for node in switches):
        deficit = state.certify(trial.graph.bundles())
        if deficit <= state.deficit:
            return trial._replace(deficit=deficit)
    middle = len(switches) // 2
    return _without(_without(state, switches[:middle]), switches[middle:])


def _offers(state: _State, node: int, into: list[Bundle], out: list[Bundle]) -> Iterator[Pairing]:
    """Yield proposals that leave no other switch unbalanced, and count them as dealt."""
    neighbours = frozenset(b.tail for b in into) | frozenset(b.head for b in out)
    offers = proposals(state.topology, node, into, out, state.grid, state.turns[neighbours])
    state.turns[neighbours] += max((bundle.units for bundle in into), default=0)
    return (p for p in offers if not _unbalances(state.topology, into, out, p))


def _trusted(state: _State, node: int) -> bool:
    """Pair a switch's ingress with its egress as first proposed; False without a proposal."""
    into, out = state.graph.into(node), state.graph.out(node)
    pairing = next(_offers(state, node, into, out), None)
    if pairing is None:
        return False
    state.graph.replace(node, _joined(into, out, pairing))
    return True


def _without_one(state: _State, node: int) -> _State:
    """Pair a switch's ingress with its egress so that nothing is lost, or as little as may be."""
    into, out = state.graph.into(node), state.graph.out(node)
    rest = ends_of(state.graph.bundles(without=node))
    deficit = state.deficit
    for pairing in _offers(state, node, into, out):
        if state.certify(_pairs(into, out, pairing), rest) <= deficit:
            break
    else:
        pairing = _split_off(rest, into, out, state.certify)
        deficit = state.certify(_pairs(into, out, pairing), rest)
    state.graph.replace(node, _joined(into, out, pairing))
    return state._replace(deficit=deficit)


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
    arriving = [Supply(bundle.routes()) for bundle in into]
    leaving = [Supply(bundle.routes()) for bundle in out]
    for (i, j), wanted in sorted(pairing.items()):
        left = wanted
        while left:
            units = min(left, arriving[i].room, leaving[j].room)
            route = arriving[i].take(units) + leaving[j].take(units)
            yield Arc(into[i].tail, out[j].head, units, route)
            left -= units


def _split_off(rest: Ints, into: list[Bundle], out: list[Bundle], certify: _Certifier) -> Pairing:
    """Pair ingress with egress exactly, one pair of bundles at a time."""
    base = certify([*into, *out], rest)
    ingress, egress = list(into), list(out)
    pairing: Pairing = {}
    for i, j in product(range(len(into)), range(len(out))):
        most = min(ingress[i].units, egress[j].units)
        if most == 0 or into[i].tail == out[j].head:
            continue
        tentative = _Pair(into[i].tail, out[j].head, most)
        first, second = _less(ingress, i, most), _less(egress, j, most)
        made = _pairs(into, out, pairing)
        lost = certify([*first, *second, *made, tentative], rest) - base
        taken = most - max(0, lost)
        if taken > 0:
            pairing[i, j] = taken
            ingress, egress = _less(ingress, i, taken), _less(egress, j, taken)
    return pairing


def _less(bundles: list[Bundle], index: int, units: int) -> list[Bundle]:
    """Return the bundles with `units` less in one of them."""
    smaller = bundles[index]._replace(units=bundles[index].units - units)
    return [*bundles[:index], smaller, *bundles[index + 1 :]]
