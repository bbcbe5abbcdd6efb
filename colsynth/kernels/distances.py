"""Shortest distances in a digraph with non-negative integer lengths (Dijkstra's algorithm).

Arcs are in CSR form: those that leave node v are ``first[v]:first[v + 1]``, each with
``head`` (int64) and ``length`` (int64, zero or more). Distances are int64, `FAR` where
there is no path; callers keep every path below it. O((n + m) log n) per source.

Source: E. W. Dijkstra, Numerische Mathematik 1 (1959). Twin: networkx, in
tests/kernels/test_distances.py.
"""

from __future__ import annotations

import heapq

import numpy as np

from colsynth.kernels.compiled import njit

FAR = np.int64(2**62)
"""Distance of what cannot be reached."""


@njit(cache=True, nogil=True, allocates=True)
def spread(first, head, length, label):
    """Lower `label` (n,) in place to min over nodes u of label[u] + distance(u, v)."""
    heap = [(np.int64(0), np.int64(0)) for _ in range(0)]  # empty, of a known type
    for u in range(label.size):
        if label[u] < FAR:
            heap.append((label[u], np.int64(u)))  # noqa: PERF401 - extend is slow in numba
    heapq.heapify(heap)
    while heap:
        reached, v = heapq.heappop(heap)
        if reached > label[v]:
            continue
        for j in range(first[v], first[v + 1]):
            w = head[j]
            longer = reached + length[j]
            if longer < label[w]:
                label[w] = longer
                heapq.heappush(heap, (longer, w))


@njit(cache=True, nogil=True)
def farthest(first, head, length, sources, group):
    """Return (distance, node): from each source to the farthest node of its group.

    Parameters
    ----------
    sources : int64 (k,)
    group : int64 (n,)
        Nodes of the same number, zero or more, belong together; negative: to none.

    Returns
    -------
    distance, node : int64 (k,)
        The least node among equals; a source without company is its own, at distance 0.
    """
    n = first.size - 1
    label = np.empty(n, np.int64)
    distance = np.zeros(sources.size, np.int64)
    node = sources.copy()
    for k in range(sources.size):
        label[:] = FAR
        label[sources[k]] = 0
        spread(first, head, length, label)
        for v in range(n):
            if group[v] == group[sources[k]] and label[v] > distance[k]:
                distance[k] = label[v]
                node[k] = v
    return distance, node


@njit(cache=True, nogil=True)
def total_distance(first, head, length, nodes, group):
    """Return the distances of all ordered pairs of one group, added up; -1: some has no path.

    Callers keep the sum below 2**62.
    """
    label = np.empty(first.size - 1, np.int64)
    total = np.int64(0)
    for k in range(nodes.size):
        label[:] = FAR
        label[nodes[k]] = 0
        spread(first, head, length, label)
        for v in nodes:
            if group[v] == group[nodes[k]]:
                if label[v] == FAR:
                    return np.int64(-1)
                total += label[v]
    return total
