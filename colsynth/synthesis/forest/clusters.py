"""Which GPUs belong together: found from bandwidths, whatever boxes are called."""

from __future__ import annotations

from collections import Counter

import numpy as np

from colsynth.synthesis.forest.digraph import Digraph
from colsynth.synthesis.network import Ints


def clusters_of(graph: Digraph) -> Ints | None:
    """Return the cluster of each node, numbered by their first nodes; None for no clusters.

    Nodes joined by the widest arcs grow together. Of the partitions met on the way the one
    is taken that is least work to pack: work grows about with the cube of the nodes, of
    the clusters among themselves and of each cluster alone.
    """
    best, least = None, graph.size**3
    parent = list(range(graph.size))
    order = np.argsort(-graph.units, kind="stable").tolist()
    tail, head, units = graph.tail.tolist(), graph.head.tolist(), graph.units.tolist()
    merged = False
    for place, arc in enumerate(order):
        a, b = _top(parent, tail[arc]), _top(parent, head[arc])
        if a != b:
            parent[max(a, b)] = min(a, b)
            merged = True
        last = place + 1 == len(order) or units[order[place + 1]] < units[arc]
        if last and merged:
            merged = False
            tops = [_top(parent, v) for v in range(graph.size)]
            sizes = Counter(tops).values()
            work = len(sizes) ** 3 + sum(size**3 for size in sizes)
            if len(sizes) > 1 and work < least:
                best, least = tops, work
    return None if best is None else np.unique(best, return_inverse=True)[1].astype(np.int64)


def _top(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
