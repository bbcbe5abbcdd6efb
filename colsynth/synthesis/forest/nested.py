"""Pack trees between clusters first, then inside each of them.

A tree that visits every cluster once is a tree of clusters, and one tree inside each from
the GPU where it enters. So two small packings replace a large one. The outer one exists
whenever the whole does, since contraction only removes cuts. The inner ones need what
their clusters can hold for the entries that the outer one chose: a violated cut says
which GPUs of a cluster to treat as a cluster of their own, and the outer packing is done
again. Where that does not end, all is packed as one.

Clusters that look alike share one inner packing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from colsynth.bounds.network import Ints
from colsynth.synthesis.forest.clusters import partitions_of
from colsynth.synthesis.forest.digraph import Digraph, Packed, missing, pack_flat

_ROUNDS = 12
"""How often clusters are split before all is packed as one."""

_SPLITS = 1 / 8
"""Splits per root up to which roots of a cluster share trees of clusters."""


def packings(graph: Digraph, roots: Ints, trees: Ints) -> Iterator[list[Packed]]:
    """Yield packings of ``trees[i]`` trees of root ``roots[i]``: by partitions, then as one.

    The partition that is least work comes first. None where cuts forbid them.
    """
    ways: list[Ints | None] = [*partitions_of(graph), None]
    tries = (_by_clusters(graph, cluster, roots, trees) for cluster in ways)
    yield from (found for found in tries if found is not None)


def _by_clusters(
    graph: Digraph, cluster: Ints | None, roots: Ints, trees: Ints
) -> list[Packed] | None:
    """Return trees by way of clusters, or of finer ones; None where none of them serve."""
    if cluster is None:
        return pack_flat(graph, roots, trees)
    for _ in range(_ROUNDS):
        found, finer = _Nest(graph, cluster).packed(roots, trees)
        if found is not None or finer is None:
            return found
        cluster = finer
    return None


@dataclass
class _Strand:
    """Equal trees on their way through the clusters.

    Parameters
    ----------
    root, weight : int
    hops : sequence of (parent cluster, cluster)
        Every hop after the one that reaches its parent.
    entry : dict
        The node where the strand enters each cluster.
    arcs : dict
        The arc by which it does.
    inner : dict
        Arcs of its tree inside each cluster, none yet for those left out.
    """

    root: int
    weight: int
    hops: Sequence[tuple[int, int]]
    entry: dict[int, int]
    arcs: dict[int, int] = field(default_factory=dict)
    inner: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def split(self, weight: int) -> _Strand:
        """Leave `weight` here and return the rest."""
        rest = _Strand(
            self.root,
            self.weight - weight,
            self.hops,
            dict(self.entry),
            dict(self.arcs),
            dict(self.inner),
        )
        self.weight = weight
        return rest

    def packed(self) -> Packed:
        """Return the trees in one piece."""
        home = next(iter(self.entry))
        arcs = list(self.inner.get(home, ()))
        for _, cluster in self.hops:
            arcs.append(self.arcs[cluster])
            arcs.extend(self.inner.get(cluster, ()))
        return Packed(self.root, self.weight, tuple(arcs))


class _Nest:
    """A digraph and its clusters."""

    def __init__(self, graph: Digraph, cluster: Ints) -> None:
        self._graph = graph
        self._cluster = cluster
        self._count = int(cluster.max()) + 1
        self._members = [np.nonzero(cluster == c)[0] for c in range(self._count)]
        self._inside: list[list[int]] = [[] for _ in range(self._count)]
        self._between: dict[tuple[int, int], list[int]] = defaultdict(list)
        ends = zip(cluster[graph.tail].tolist(), cluster[graph.head].tolist(), strict=True)
        for arc, (a, b) in enumerate(ends):
            if a == b:
                self._inside[a].append(arc)
            else:
                self._between[a, b].append(arc)

    def packed(self, roots: Ints, trees: Ints) -> tuple[list[Packed] | None, Ints | None]:
        """Return (trees, None), or None and finer clusters, or None twice for hopeless ones."""
        strands = self._outer(roots, trees)
        if strands is None:
            return None, None
        demands = self._demands(strands)
        finer = self._finer(demands)
        if finer is not None:
            return None, finer
        known: dict[tuple[bytes, ...], list[Packed] | None] = {}
        for cluster, demand in enumerate(demands):
            inner = self._inner(cluster, demand, known)
            if inner is None:
                return None, None
            strands = list(_planted(cluster, strands, inner))
        return [strand.packed() for strand in strands], None

    def _outer(self, roots: Ints, trees: Ints) -> list[_Strand] | None:
        """Return strands that enter every cluster."""
        ends = sorted(self._between)
        units = self._graph.units
        outer = Digraph(
            self._count,
            np.array([a for a, _ in ends], np.int64),
            np.array([b for _, b in ends], np.int64),
            np.array([int(units[self._between[pair]].sum()) for pair in ends], np.int64),
        )
        found = _outer_trees(outer, self._cluster[roots], trees)
        if found is None:
            return None
        rooted = _by_root(found, roots, trees, self._cluster)
        strands = [
            _Strand(root, packed.weight, [ends[i] for i in packed.arcs], {packed.root: root})
            for root, packed in rooted
        ]
        return self._threaded(strands)

    def _threaded(self, strands: list[_Strand]) -> list[_Strand]:
        """Give every hop arcs; where strands meet in a bundle they are split."""
        left = self._graph.units.tolist()
        pieces = [[strand] for strand in strands]
        waves: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, strand in enumerate(strands):
            depth = {next(iter(strand.entry)): 0}
            for parent, child in strand.hops:
                depth[child] = depth[parent] + 1
                waves[depth[child]][parent, child].append(number)
        for wave in sorted(waves):
            for pair, takers in sorted(waves[wave].items()):
                self._share(pair, [pieces[number] for number in takers], left)
        return [piece for several in pieces for piece in several]

    def _share(self, pair: tuple[int, int], takers: list[list[_Strand]], left: list[int]) -> None:
        """Deal the arcs of a bundle: whole strands first, from where they entered if possible."""
        leaving: dict[int, list[int]] = defaultdict(list)
        for arc in self._between[pair]:
            leaving[int(self._graph.tail[arc])].append(arc)
        for straight, whole in ((True, True), (False, True), (False, False)):
            for pieces in takers:
                for piece in [p for p in pieces if pair[1] not in p.arcs]:
                    near = leaving[piece.entry[pair[0]]] if straight else self._between[pair]
                    least = piece.weight if whole else 1
                    pieces.extend(self._take(piece, pair[1], near, left, least))

    def _take(
        self, piece: _Strand, cluster: int, arcs: list[int], left: list[int], least: int
    ) -> Iterator[_Strand]:
        """Let a strand take the widest arcs of `least` or more; yield what is split from it."""
        while True:
            arc = max(arcs, key=lambda a: (left[a], -a), default=None)
            if arc is None or left[arc] < least:
                return
            rest = piece.split(left[arc]) if piece.weight > left[arc] else None
            left[arc] -= piece.weight
            piece.arcs[cluster], piece.entry[cluster] = arc, int(self._graph.head[arc])
            if rest is None:
                return
            yield rest
            piece = rest

    def _demands(self, strands: list[_Strand]) -> list[Ints]:
        """Return how much enters each cluster at each node, (size,) per cluster."""
        demands = [np.zeros(self._graph.size, np.int64) for _ in range(self._count)]
        for strand in strands:
            for cluster, node in strand.entry.items():
                demands[cluster][node] += strand.weight
        return demands

    def _part(self, cluster: int, demand: Ints) -> tuple[Digraph, Ints, Ints]:
        """Return a cluster alone: its arcs between places, the places entered, how often."""
        members = self._members[cluster]
        place = np.full(self._graph.size, -1, np.int64)
        place[members] = np.arange(members.size)
        arcs = np.array(self._inside[cluster], np.int64)
        graph = self._graph
        part = Digraph(
            members.size, place[graph.tail[arcs]], place[graph.head[arcs]], graph.units[arcs]
        )
        entered = np.nonzero(demand[members])[0]
        return part, entered, demand[members][entered]

    def _finer(self, demands: list[Ints]) -> Ints | None:
        """Return finer clusters where some cannot hold what enters them."""
        finer = self._cluster.copy()
        count = self._count
        known: dict[tuple[bytes, ...], Ints] = {}
        for cluster, demand in enumerate(demands):
            if self._members[cluster].size < 2:
                continue
            part, entered, trees = self._part(cluster, demand)
            key = _key(part, entered, trees)
            if key not in known:
                deficit, inside = missing(part, entered, trees)
                known[key] = np.nonzero(~inside)[0] if deficit else np.zeros(0, np.int64)
            if known[key].size:
                finer[self._members[cluster][known[key]]] = count
                count += 1
        return finer if count > self._count else None

    def _inner(
        self, cluster: int, demand: Ints, known: dict[tuple[bytes, ...], list[Packed] | None]
    ) -> list[Packed] | None:
        """Return trees inside a cluster, by nodes and arcs of the whole."""
        if self._members[cluster].size < 2:
            return []
        part, entered, trees = self._part(cluster, demand)
        key = _key(part, entered, trees)
        if key not in known:
            known[key] = pack_flat(part, entered, trees)
        found = known[key]
        members, arcs = self._members[cluster].tolist(), self._inside[cluster]
        return found and [
            Packed(members[p.root], p.weight, tuple(arcs[i] for i in p.arcs)) for p in found
        ]


def _key(part: Digraph, entered: Ints, trees: Ints) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for array in (part.tail, part.head, part.units, entered, trees))


def _outer_trees(outer: Digraph, roots: Ints, trees: Ints) -> list[Packed] | None:
    """Return trees of clusters; all roots of a cluster share one unless many have to be split."""
    clusters, place = np.unique(roots, return_inverse=True)
    together = np.zeros(clusters.size, np.int64)
    np.add.at(together, place, trees)
    found = pack_flat(outer, clusters, together)
    if found is None or len(found) - clusters.size <= roots.size * _SPLITS:
        return found
    return pack_flat(outer, roots, trees)


def _by_root(
    found: list[Packed], roots: Ints, trees: Ints, cluster: Ints
) -> Iterator[tuple[int, Packed]]:
    """Yield outer trees beside the root, among those of their cluster, that takes them.

    Roots of a cluster are alike to the outer packing. Its trees, widest first, are given to
    roots until each has its number.
    """
    wanting: dict[int, list[list[int]]] = defaultdict(list)
    for root, number in zip(roots.tolist(), trees.tolist(), strict=True):
        wanting[int(cluster[root])].append([root, number])
    for packed in sorted(found, key=lambda p: (p.root, -p.weight)):
        left = packed.weight
        while left:
            # The one that needs most, so that wide trees are cut least.
            taker = max(wanting[packed.root], key=lambda pair: (pair[1], -pair[0]))
            part = min(left, taker[1])
            yield taker[0], packed._replace(weight=part)
            taker[1] -= part
            left -= part


def _planted(cluster: int, strands: list[_Strand], inner: list[Packed]) -> Iterator[_Strand]:
    """Yield strands with trees inside a cluster; where the trees' weights differ, split."""
    if not inner:
        yield from strands
        return
    offers: dict[int, list[list[int]]] = defaultdict(list)
    for number, packed in enumerate(inner):
        offers[packed.root].append([packed.weight, number])
    for strand in sorted(strands, key=lambda s: -s.weight):
        rest: _Strand | None = strand
        while rest is not None:
            piece, rest = rest, None
            offer = _fitting(offers[piece.entry[cluster]], piece.weight)
            if offer[0] < piece.weight:
                rest = piece.split(offer[0])
            offer[0] -= piece.weight
            piece.inner[cluster] = inner[offer[1]].arcs
            yield piece


def _fitting(offers: list[list[int]], weight: int) -> list[int]:
    """Return the smallest offer that is enough, else the largest."""
    enough = [offer for offer in offers if offer[0] >= weight]
    return min(enough) if enough else max(offers)
