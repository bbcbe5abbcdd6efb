"""Integer digraphs over ranks, and trees packed into them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.kernels.maxflow import largest_deficit
from colsynth.kernels.packing import pack_arborescences
from colsynth.synthesis.network import Ints


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


def by_level(graph: Digraph, packed: Packed) -> list[int]:
    """Return the arcs of a tree, those nearest to the root first, preferred ones first."""
    depth = {packed.root: 0}
    keys = []
    ends = zip(
        graph.tail[[*packed.arcs]].tolist(), graph.head[[*packed.arcs]].tolist(), strict=True
    )
    for arc, (tail, head) in zip(packed.arcs, ends, strict=True):
        depth[head] = depth[tail] + 1
        keys.append((depth[head], arc))
    return [arc for _, arc in sorted(keys)]
