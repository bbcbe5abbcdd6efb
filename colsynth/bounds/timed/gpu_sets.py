"""Sets of GPUs whose links may hold a collective back: candidates for cuts.

Any set gives a valid bound, so candidates may be found by rules of thumb; what a set is
worth is then worked out exactly elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.timed.wires import Wires, csr
from colsynth.kernels.distances import FAR, spread
from colsynth.kernels.maxflow import max_flow, reset, residual_index, source_side
from colsynth.model import Kind, Topology
from colsynth.units import plural

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Named = tuple[str, Flags]
"""What a set is called, and which ranks are in it."""

_MOST = 512
"""Sets tried of one kind."""

_CORNERS = 4
"""Nodes that sweeps start from."""


def partitions(topology: Topology, wires: Wires) -> Iterator[tuple[str, Ints]]:
    """Yield (word, part of each node): boxes, then what hangs together below each tier.

    Every GPU is in a part; nodes between the parts have -1. The lowest tier are switches
    next to a GPU, each further tier is one link farther from all GPUs.
    """
    boxes = np.array([-1 if x.box is None else x.box for x in topology.nodes], np.int64)
    if len(topology.boxes) > 1:
        alone = [node for node in topology.ranks if boxes[node] < 0]
        boxes[alone] = boxes.max() + 1 + np.arange(len(alone))
        yield "box", boxes
    tier = _tiers(topology, wires)
    for top in range(1, int(tier.max(where=tier < FAR, initial=0)) + 1):
        part = _pieces(wires, tier < top)
        if len(np.unique(part[list(topology.ranks)])) > 1:
            yield "", part


def _tiers(topology: Topology, wires: Wires) -> Ints:
    """Return the links between each node and the next GPU, 0 for GPUs."""
    tier = np.full(len(topology.nodes), FAR)
    tier[list(topology.ranks)] = 0
    ends = (np.concatenate((wires.tail, wires.head)), np.concatenate((wires.head, wires.tail)))
    spread(*csr(wires.nodes, *ends, np.ones(len(ends[0]), np.int64)), tier)
    return tier


def _pieces(wires: Wires, kept: Flags) -> Ints:
    """Return the connected piece of each kept node, -1 for the others."""
    part = np.where(kept, np.arange(wires.nodes), -1)
    inner = kept[wires.tail] & kept[wires.head]
    tail, head = wires.tail[inner], wires.head[inner]
    while True:
        least = part.copy()
        np.minimum.at(least, tail, part[head])
        np.minimum.at(least, head, part[tail])
        least[kept] = least[least[kept]]
        if (least == part).all():
            return part
        part = least


def sets_of(topology: Topology, wires: Wires) -> Iterator[Named]:
    """Yield the parts of all partitions, and the GPUs next to each switch."""
    ranks = np.array(topology.ranks, np.int64)
    for word, part in partitions(topology, wires):
        values, sizes = np.unique(part[ranks], return_counts=True)
        for value in values[(sizes > 1) & (sizes < len(ranks))][:_MOST]:
            inside = part[ranks] == value
            yield f"{word} {value}" if word else describe(topology, inside), inside
    switches = [v for v, node in enumerate(topology.nodes) if node.kind is Kind.SWITCH]
    for switch in switches[:_MOST]:
        touching = np.zeros(wires.nodes, np.bool_)
        touching[wires.tail[wires.head == switch]] = True
        touching[wires.head[wires.tail == switch]] = True
        inside = touching[ranks]
        if 1 < inside.sum() < len(ranks):
            gpus = plural(int(inside.sum()), "GPU")
            yield f"the {gpus} behind {topology.nodes[switch].name}", inside


def describe(topology: Topology, inside: Flags) -> str:
    """Return words for a set of ranks: its first GPU and how many more."""
    chosen = np.nonzero(inside)[0]
    name = topology.gpu_names[chosen[0]]
    rest = len(chosen) - 1
    return f"{name} and {rest} more {'GPU' if rest == 1 else 'GPUs'}" if rest else name


def tightest(wires: Wires, targets: Ints, others: Ints) -> Flags:
    """Return the nodes on the far side of the narrowest cut from `others` to `targets`."""
    scaled = np.minimum(-(-(wires.busy.max() * 1024) // wires.busy), 2**40)
    wide = int(scaled.sum()) + 1
    source, sink = wires.nodes, wires.nodes + 1
    tail = np.concatenate((wires.tail, np.full(len(others), source), targets))
    head = np.concatenate((wires.head, others, np.full(len(targets), sink)))
    capacity = np.concatenate((scaled, np.full(len(others) + len(targets), wide)))
    first, arcs, to = residual_index(wires.nodes + 2, tail, head)
    residual = np.empty(2 * len(capacity), np.int64)
    reset(residual, capacity)
    max_flow(first, arcs, to, residual, source, sink, wide)
    near: Flags = source_side(first, arcs, to, residual, source)[: wires.nodes]
    return ~near


def sweeps(topology: Topology, wires: Wires, group: Ints) -> Iterator[Named]:
    """Yield sets that split many pairs of GPUs over few links.

    Nodes are put in several orders: of rank, of distance from a corner, and of the
    difference between the distances from two corners (a straight line on a mesh); of each
    order the beginning with the most pairs per bandwidth is taken.
    """
    ranks = np.array(topology.ranks, np.int64)
    weight = np.full(wires.nodes, -1, np.int64)
    weight[ranks] = group
    for key in _orders(topology, wires):
        inside = _best_beginning(wires, weight, np.argsort(key, kind="stable"))[ranks]
        if 1 < inside.sum() < len(ranks):
            yield describe(topology, inside), inside


def _orders(topology: Topology, wires: Wires) -> Iterator[Ints]:
    graph = csr(wires.nodes, wires.tail, wires.head, np.ones(len(wires.tail), np.int64))
    ranks = np.array(topology.ranks, np.int64)
    by_rank = np.full(wires.nodes, len(ranks), np.int64)
    by_rank[ranks] = np.arange(len(ranks))
    yield by_rank
    far: list[Ints] = []
    corner = ranks[0]
    for _ in range(min(_CORNERS, len(ranks))):
        label = np.full(wires.nodes, FAR)
        label[corner] = 0
        spread(*graph, label)
        far.append(label)
        corner = ranks[np.argmax(np.min([x[ranks] for x in far], axis=0))]
    yield from far
    for i, one in enumerate(far):
        yield from (one - other for other in far[:i])


def _best_beginning(wires: Wires, group: Ints, order: Ints) -> Flags:
    """Return the nodes of the beginning of `order` that holds an all-to-all back most."""
    place = np.empty(wires.nodes, np.int64)
    place[order] = np.arange(wires.nodes)
    room = np.zeros((2, wires.nodes + 1))
    for way, (a, b) in enumerate(((wires.tail, wires.head), (wires.head, wires.tail))):
        crosses = place[a] < place[b]
        np.add.at(room[way], place[a[crosses]] + 1, 1 / wires.busy[crosses])
        np.add.at(room[way], place[b[crosses]] + 1, -1 / wires.busy[crosses])
    room = np.cumsum(room, axis=1)[:, 1:-1].min(axis=0)
    pairs = np.cumsum(_gain(group[order]))[:-1]
    ratio = pairs / np.maximum(room, 0.5 / wires.busy.max())
    return place <= np.argmax(ratio)


def _gain(group: Ints) -> Ints:
    """Return the pairs that each node adds to those split; `group` is -1 for no member."""
    order = np.argsort(group, kind="stable")
    _, start, sizes = np.unique(group[order], return_index=True, return_counts=True)
    gain = np.empty(len(group), np.int64)
    before = np.arange(len(group)) - np.repeat(start, sizes)
    gain[order] = np.repeat(sizes, sizes) - 2 * before - 1
    return np.where(group < 0, 0, gain)
