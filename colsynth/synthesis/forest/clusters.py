"""Which GPUs belong together: found from bandwidths, whatever boxes are called."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from colsynth.synthesis.forest.digraph import Digraph
from colsynth.synthesis.network import Ints


def clusters_of(graph: Digraph) -> Ints | None:
    """Return the cluster of each node, numbered by their first nodes; None for no clusters.

    Nodes joined by the widest arcs grow together. Of the partitions met on the way the
    one is taken whose number of parts is nearest to the root of the number of nodes, so
    that neither the parts nor what is between them is large.
    """
    best, distance = None, 0.0
    parent = list(range(graph.size))
    count = graph.size
    order = np.argsort(-graph.units, kind="stable").tolist()
    tail, head, units = graph.tail.tolist(), graph.head.tolist(), graph.units.tolist()
    for place, arc in enumerate(order):
        a, b = _top(parent, tail[arc]), _top(parent, head[arc])
        if a != b:
            parent[max(a, b)] = min(a, b)
            count -= 1
        last = place + 1 == len(order) or units[order[place + 1]] < units[arc]
        if last and 1 < count < graph.size:
            off = abs(log(count / sqrt(graph.size)))
            if best is None or off < distance:
                best, distance = [_top(parent, v) for v in range(graph.size)], off
    return None if best is None else np.unique(best, return_inverse=True)[1].astype(np.int64)


def _top(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
