"""Maximum flow and minimum cut on small integer networks (Dinic's algorithm).

A network is given as arcs ``tail[i] -> head[i]`` of capacity ``capacity[i]`` (int64,
shape (m,)) over nodes ``0..n-1``. `residual_index` numbers the 2m residual arcs: 2i is
arc i, 2i + 1 its reverse. Running time O(n^2 m) at worst, near-linear on the shallow
graphs of clusters; a flow stops as soon as it reaches `limit`.

Source: E. A. Dinic, Soviet Math. Dokl. 11 (1970). Twin: tests/reference/flows.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def residual_index(n, tail, head):
    """Return (first, arcs, to): CSR of residual arcs by the node they leave."""
    m = tail.size
    first = np.zeros(n + 1, np.int64)
    for i in range(m):
        first[tail[i] + 1] += 1
        first[head[i] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    place = first[:n].copy()
    arcs = np.empty(2 * m, np.int64)
    to = np.empty(2 * m, np.int64)
    for i in range(m):
        arcs[place[tail[i]]] = 2 * i
        place[tail[i]] += 1
        arcs[place[head[i]]] = 2 * i + 1
        place[head[i]] += 1
        to[2 * i] = head[i]
        to[2 * i + 1] = tail[i]
    return first, arcs, to


@njit(cache=True, nogil=True)
def index_by_head(n, head):
    """Return (first, order): CSR of arcs by the node they enter, their order kept."""
    first = np.zeros(n + 1, np.int64)
    for v in head:
        first[v + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    place = first[:n].copy()
    order = np.empty(head.size, np.int64)
    for i in range(head.size):
        order[place[head[i]]] = i
        place[head[i]] += 1
    return first, order


@njit(cache=True, nogil=True)
def reset(residual, capacity):
    """Set `residual` (2m,) to the state without flow."""
    for i in range(capacity.size):
        residual[2 * i] = capacity[i]
        residual[2 * i + 1] = 0


@njit(cache=True, nogil=True)
def _levels(first, arcs, to, residual, source, sink, level, queue):
    """Breadth-first distances in the residual network; stops at the sink's level."""
    level[:] = -1
    level[source] = 0
    queue[0] = source
    done, filled = 0, 1
    while done < filled:
        v = queue[done]
        done += 1
        if level[sink] >= 0 and level[v] >= level[sink]:
            break
        for j in range(first[v], first[v + 1]):
            arc = arcs[j]
            if residual[arc] > 0 and level[to[arc]] < 0:
                level[to[arc]] = level[v] + 1
                queue[filled] = to[arc]
                filled += 1
    return level[sink] >= 0


@njit(cache=True, nogil=True)
def _augment(first, arcs, to, residual, source, sink, level, cursor, path, need):
    """Push one path of the level graph; return its amount, 0 when blocked."""
    v = source
    depth = 0
    while v != sink:
        advanced = False
        while cursor[v] < first[v + 1]:
            arc = arcs[cursor[v]]
            if residual[arc] > 0 and level[to[arc]] == level[v] + 1:
                path[depth] = arc
                depth += 1
                v = to[arc]
                advanced = True
                break
            cursor[v] += 1
        if not advanced:
            if v == source:
                return 0
            level[v] = -1
            depth -= 1
            v = to[path[depth] ^ 1]
            cursor[v] += 1
    amount = need
    for d in range(depth):
        amount = min(amount, residual[path[d]])
    for d in range(depth):
        residual[path[d]] -= amount
        residual[path[d] ^ 1] += amount
    return amount


@njit(cache=True, nogil=True)
def max_flow(first, arcs, to, residual, source, sink, limit):
    """Return min(maximum flow, limit); `residual` is left at that flow."""
    n = first.size - 1
    level = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    path = np.empty(n, np.int64)
    flow = 0
    while flow < limit and _levels(first, arcs, to, residual, source, sink, level, queue):
        cursor = first[:n].copy()
        while flow < limit:
            pushed = _augment(
                first, arcs, to, residual, source, sink, level, cursor, path, limit - flow
            )
            if pushed == 0:
                break
            flow += pushed
    return flow


@njit(cache=True, nogil=True)
def source_side(first, arcs, to, residual, source):
    """Return the nodes (bool, (n,)) that the source still reaches: a minimum cut."""
    n = first.size - 1
    seen = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    stack[0] = source
    seen[source] = True
    top = 1
    while top > 0:
        top -= 1
        v = stack[top]
        for j in range(first[v], first[v + 1]):
            w = to[arcs[j]]
            if residual[arcs[j]] > 0 and not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
    return seen


@njit(cache=True, nogil=True)
def largest_deficit(n, tail, head, capacity, source, sinks, demand):
    """Return (deficit, inside): how far the worst sink falls short of `demand`.

    Parameters
    ----------
    sinks : int64 (k,)
        Each must receive `demand` units from `source`, one sink at a time.

    Returns
    -------
    deficit : int
        Largest ``demand - maxflow(source, sink)``; 0 when all are served.
    inside : bool (n,)
        Source side of a minimum cut for the first worst sink; all False when served.
    """
    first, arcs, to = residual_index(n, tail, head)
    residual = np.empty(2 * tail.size, np.int64)
    worst = 0
    inside = np.zeros(n, np.bool_)
    for k in range(sinks.size):
        reset(residual, capacity)
        flow = max_flow(first, arcs, to, residual, source, sinks[k], demand)
        if demand - flow > worst:
            worst = demand - flow
            inside = source_side(first, arcs, to, residual, source)
    return worst, inside
