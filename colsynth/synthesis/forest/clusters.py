"""Which GPUs belong together: found from bandwidths, whatever boxes are called."""

from __future__ import annotations

import numpy as np

from colsynth.bounds.network import Ints
from colsynth.synthesis.forest.digraph import Digraph


def partitions_of(graph: Digraph) -> list[Ints]:
    """Return partitions of the nodes into clusters, those that are least work to pack first.

    Nodes joined by the widest arcs grow together; each width gives a partition, as the
    cluster of each node. Work grows about with the cube of the nodes, of the clusters
    among themselves and of each cluster alone.
    """
    found: list[tuple[int, Ints]] = []
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
            cluster, sizes = np.unique(tops, return_inverse=True, return_counts=True)[1:]
            if len(sizes) > 1:
                work = len(sizes) ** 3 + int((sizes**3).sum())
                found.append((work, cluster.astype(np.int64)))
    return [cluster for _, cluster in sorted(found, key=lambda pair: pair[0])]


def _top(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
