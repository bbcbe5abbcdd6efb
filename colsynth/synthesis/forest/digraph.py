"""Integer digraphs over ranks, and trees packed into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.network import Ints
from colsynth.kernels.heights import lower_trees
from colsynth.kernels.maxflow import largest_deficit
from colsynth.kernels.packing import pack_arborescences

_PASSES = 3
"""How often all nodes are gone through for the sake of lower trees."""


class Digraph(NamedTuple):
    """Arcs in order of preference.

    Parameters
    ----------
    size : int
        Number of nodes.
    tail, head, units : int64 (m,)
    """

    size: int
    tail: Ints
    head: Ints
    units: Ints


class Packed(NamedTuple):
    """`weight` equal trees: a root and arcs, each after the one that reaches its tail."""

    root: int
    weight: int
    arcs: tuple[int, ...]


def missing(graph: Digraph, roots: Ints, trees: Ints) -> tuple[int, NDArray[np.bool_]]:
    """Return how far the worst node falls short of all trees, and a set that lets too few out."""
    source = graph.size
    deficit, inside = largest_deficit(
        source + 1,
        np.concatenate((graph.tail, np.full(roots.size, source, np.int64))),
        np.concatenate((graph.head, roots)),
        np.concatenate((graph.units, trees)),
        source,
        np.arange(source),
        int(trees.sum()),
    )
    return int(deficit), inside[:source]


def pack_flat(graph: Digraph, roots: Ints, trees: Ints) -> list[Packed] | None:
    """Return spanning trees, ``trees[i]`` of root ``roots[i]``; None where cuts forbid them."""
    size, edges = pack_arborescences(graph.size, graph.tail, graph.head, graph.units, roots, trees)
    if not size.all():
        return None
    rows = edges.tolist()
    return [Packed(r[0], w, tuple(r[1:])) for w, r in zip(size.tolist(), rows, strict=True)]


def quality(graph: Digraph, found: Sequence[Packed]) -> tuple[int, int, int]:
    """Return (number of different trees, height of the tallest, sum of weight * height)."""
    heights = [max(_depths(graph, packed).values()) for packed in found]
    different = {(packed.root, frozenset(packed.arcs)) for packed in found}
    total = sum(h * packed.weight for h, packed in zip(heights, found, strict=True))
    return len(different), max(heights), total


def _depths(graph: Digraph, packed: Packed) -> dict[int, int]:
    """Return the depth of every node of a tree."""
    depth = {packed.root: 0}
    arcs = np.array(packed.arcs, np.int64)
    for tail, head in zip(graph.tail[arcs].tolist(), graph.head[arcs].tolist(), strict=True):
        depth[head] = depth[tail] + 1
    return depth


def by_level(graph: Digraph, packed: Packed) -> list[int]:
    """Return the arcs of a tree, those nearest to the root first, preferred ones first."""
    depth = _depths(graph, packed)
    heads = graph.head[np.array(packed.arcs, np.int64)].tolist()
    return [arc for _, arc in sorted(zip((depth[v] for v in heads), packed.arcs, strict=True))]


def lowered(graph: Digraph, found: Sequence[Packed]) -> list[Packed]:
    """Return the trees with arcs moved and exchanged so that they are lower."""
    parent = np.full((len(found), graph.size), -1, np.int64)
    arc = parent.copy()
    left = graph.units.copy()
    for row, packed in enumerate(found):
        arcs = np.array(packed.arcs, np.int64)
        left[arcs] -= packed.weight
        arc[row, graph.head[arcs]] = arcs
        parent[row, graph.head[arcs]] = graph.tail[arcs]
    weight = np.array([packed.weight for packed in found], np.int64)
    lower_trees(graph.tail, graph.head, left, weight, parent, arc, _PASSES)
    return [
        packed._replace(arcs=outwards(parents, arcs))
        for packed, parents, arcs in zip(found, parent.tolist(), arc.tolist(), strict=True)
    ]


def outwards(parents: list[int], arcs: list[int]) -> tuple[int, ...]:
    """Return the arcs of a tree, each after the one that reaches its tail.

    Parameters
    ----------
    parents, arcs : list of int
        Of every node, -1 for the root.
    """
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    reached = [parents.index(-1)]
    for node in reached:
        reached += children.get(node, ())
    return tuple(arcs[node] for node in reached[1:])
