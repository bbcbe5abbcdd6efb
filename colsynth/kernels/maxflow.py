"""Maximum flow and minimum cut on small integer networks (Dinic's algorithm).

A network is given as arcs ``tail[i] -> head[i]`` of capacity ``capacity[i]`` (int64,
shape (m,)) over nodes ``0..n-1``. `residual_index` numbers the 2m residual arcs: 2i is
arc i, 2i + 1 its reverse. Running time O(n^2 m) at worst, near-linear on the shallow
graphs of clusters; a flow stops as soon as it reaches `limit`. Where many GPUs are served
one after the other, flow that has reached one is sent on to the next (`send_on`): on rings
and lines that takes a few searches per GPU instead of one for every distance.

Source: E. A. Dinic, Soviet Math. Dokl. 11 (1970). Twin: tests/reference/flows.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True, allocates=True)
def residual_index(n, tail, head):
    """Return (first, after, to): lists of the residual arcs that leave a node.

    ``first[v]`` is the first of node v, ``after[a]`` the one behind a, -1 behind the last.
    """
    m = tail.size
    first = np.full(n, -1, np.int64)
    after = np.empty(2 * m, np.int64)
    to = np.empty(2 * m, np.int64)
    for i in range(m - 1, -1, -1):
        join(first, after, to, i, tail[i], head[i])
    return first, after, to


@njit(cache=True, nogil=True)
def join(first, after, to, i, tail, head):
    """Put arc i before the others that leave its ends."""
    to[2 * i], after[2 * i], first[tail] = head, first[tail], 2 * i
    to[2 * i + 1], after[2 * i + 1], first[head] = tail, first[head], 2 * i + 1


@njit(cache=True, nogil=True, allocates=True)
def index_by_end(n, end):
    """Return (first, order): CSR of arcs by one of their ends, their order kept."""
    first = np.zeros(n + 1, np.int64)
    for v in end:
        first[v + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    place = first[:n].copy()
    order = np.empty(end.size, np.int64)
    for i in range(end.size):
        order[place[end[i]]] = i
        place[end[i]] += 1
    return first, order


@njit(cache=True, nogil=True)
def reset(residual, capacity):
    """Set `residual` (2m,) to the state without flow."""
    for i in range(capacity.size):
        residual[2 * i] = capacity[i]
        residual[2 * i + 1] = 0


@njit(cache=True, nogil=True)
def _levels(first, after, to, residual, source, sink, level, queue):
    """Breadth-first distances to the sink in the residual network, up to the source's.

    Searched from the sink, so that paths from the source seldom run into dead ends.
    """
    level[:] = -1
    level[sink] = 0
    queue[0] = sink
    done, filled = 0, 1
    while done < filled:
        v = queue[done]
        done += 1
        arc = first[v]
        while arc >= 0:
            w = to[arc]
            if level[w] < 0 and residual[arc ^ 1] > 0:
                level[w] = level[v] + 1
                if w == source:
                    return True
                queue[filled] = w
                filled += 1
            arc = after[arc]
    return False


@njit(cache=True, nogil=True)
def _augment(after, to, residual, source, sink, level, cursor, path, need):
    """Push one path of the level graph; return its amount, 0 when blocked."""
    v = source
    depth = 0
    while v != sink:
        advanced = False
        while cursor[v] >= 0:
            arc = cursor[v]
            if residual[arc] > 0 and level[to[arc]] == level[v] - 1:
                path[depth] = arc
                depth += 1
                v = to[arc]
                advanced = True
                break
            cursor[v] = after[arc]
        if not advanced:
            if v == source:
                return 0
            level[v] = -1
            depth -= 1
            v = to[path[depth] ^ 1]
            cursor[v] = after[path[depth]]
    amount = need
    for d in range(depth):
        amount = min(amount, residual[path[d]])
    for d in range(depth):
        residual[path[d]] -= amount
        residual[path[d] ^ 1] += amount
    return amount


@njit(cache=True, nogil=True, allocates=True)
def max_flow(first, after, to, residual, source, sink, limit):
    """Return min(maximum flow, limit); `residual` is left at that flow."""
    n = first.size
    level = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    path = np.empty(n, np.int64)
    flow = 0
    while flow < limit and _levels(first, after, to, residual, source, sink, level, queue):
        cursor = first.copy()
        while flow < limit:
            pushed = _augment(after, to, residual, source, sink, level, cursor, path, limit - flow)
            if pushed == 0:
                break
            flow += pushed
    return flow


@njit(cache=True, nogil=True, allocates=True)
def with_returns(tail, head, source, sinks):
    """Return (tail, head) with an arc from the source to each sink behind the others.

    They have no capacity until `send_on` gives them some.
    """
    back = np.full(sinks.size, source, np.int64)
    return np.concatenate((tail, back)), np.concatenate((head, sinks))


@njit(cache=True, nogil=True)
def send_on(residual, arc, flow):
    """Let a sink supply what it has received; `arc` is the number of its return arc.

    The next maximum flow then only moves what has arrived from one sink to the other, which
    mostly takes a few short paths, where a flow from nothing takes one per root. What a
    sink keeps is excess: the flow is a preflow, and like a flow it is largest when no
    path is left from the source or from excess. All cuts smaller than what arrived have
    that excess inside, so values and `source_side` are those of a flow from nothing.
    """
    residual[2 * arc] += flow


@njit(cache=True, nogil=True, allocates=True)
def source_side(first, after, to, residual, source):
    """Return the nodes (bool, (n,)) that the source still reaches: a minimum cut."""
    n = first.size
    seen = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    stack[0] = source
    seen[source] = True
    top = 1
    while top > 0:
        top -= 1
        v = stack[top]
        arc = first[v]
        while arc >= 0:
            w = to[arc]
            if residual[arc] > 0 and not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
            arc = after[arc]
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
    all_tail, all_head = with_returns(tail, head, source, sinks)
    first, after, to = residual_index(n, all_tail, all_head)
    residual = np.zeros(2 * all_tail.size, np.int64)
    reset(residual, capacity)
    worst = 0
    inside = np.zeros(n, np.bool_)
    for k in range(sinks.size):
        flow = max_flow(first, after, to, residual, source, sinks[k], demand)
        if demand - flow > worst:
            worst = demand - flow
            inside = source_side(first, after, to, residual, source)
        send_on(residual, tail.size + k, flow)
    return worst, inside
