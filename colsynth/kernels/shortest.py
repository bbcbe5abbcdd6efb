"""Shortest paths from all nodes to all: distances, loads of eager broadcast, whole chunks.

Arcs are those that enter each node, in CSR form: arcs ``first[u]:first[u + 1]`` enter u from
``tail`` (int64) with ``capacity`` (int64, one or more). Distances count arcs; ``distance[u, v]``
(int16) leads from v to u. All functions need at most `MOST_LINKS` arcs into a node.

In eager broadcast, u receives everything of v in step distance[u, v], from any in-neighbours that
are one step nearer to v. So the least load of a step at u is the maximum over sets W of its in-arcs
of (weight that only W can bring) / capacity(W): Hall's theorem for jobs that can be split. Exact in
int64 while total weight times total capacity stays below 2**62, which callers check.

Source: Zhao et al., Efficient Direct-Connect Topologies, arXiv 2202.03356; Hoffman and Kuhn (1956)
for the subsets. Twin: tests/reference/steps_of.py. O(n m) for distances, O(n m + n steps 2^d d)
for loads, where d is the degree; beyond `_WIDE` arcs, sets are found by flows.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

MOST_LINKS = 62
"""Arcs into a node, as bits of an int64."""

UNREACHED = np.int16(-1)
_WIDE = 12


@njit(cache=True, nogil=True)
def distances(first, tail, targets):
    """Return (k, n) distances from every node to each target; `UNREACHED` where no path leads."""
    n = first.size - 1
    found = np.full((targets.size, n), UNREACHED, np.int16)
    queue = np.empty(n, np.int64)
    for k in range(targets.size):
        row = found[k]
        row[targets[k]] = 0
        queue[0] = targets[k]
        filled, done = 1, 0
        while done < filled:
            u = queue[done]
            done += 1
            for j in range(first[u], first[u + 1]):
                w = tail[j]
                if row[w] < 0:
                    row[w] = row[u] + 1
                    queue[filled] = w
                    filled += 1
    return found


@njit(cache=True, nogil=True)
def _last_hops(u, first, tail, distance, row, mask):
    """Set ``mask[v]`` to the in-arcs of u, as bits, on shortest paths from v."""
    mask[:] = 0
    own = distance[row[u]]
    for j in range(first[u], first[u + 1]):
        other = distance[row[tail[j]]]
        bit = np.int64(1) << np.int64(j - first[u])
        for v in range(mask.size):
            if other[v] + 1 == own[v]:
                mask[v] |= bit


@njit(cache=True, nogil=True, allocates=True)
def _grouped(mask, weight, chosen):
    """Return (masks, weights): the distinct masks of the chosen nodes, ascending, and sums."""
    total = 0
    for v in range(mask.size):
        if chosen[v] and weight[v] > 0 and mask[v] != 0:
            total += 1
    picked = np.empty(total, np.int64)
    at = 0
    for v in range(mask.size):
        if chosen[v] and weight[v] > 0 and mask[v] != 0:
            picked[at] = mask[v]
            at += 1
    masks = np.unique(picked)
    sums = np.zeros(masks.size, np.int64)
    for v in range(mask.size):
        if chosen[v] and weight[v] > 0 and mask[v] != 0:
            sums[np.searchsorted(masks, mask[v])] += weight[v]
    return masks, sums


@njit(cache=True, nogil=True, allocates=True)
def _flow(masks, supply, limit):
    """Send supplies to allowed arcs within limits: (flow (g, d), arcs that hold too little).

    The second is 0 where all is sent; else the arcs W whose limits fall short of what only W can
    take.
    """
    groups, d = masks.size, limit.size
    flow = np.zeros((groups, d), np.int64)
    left = limit.copy()
    parent_arc = np.empty(groups, np.int64)
    parent_group = np.empty(d, np.int64)
    queue = np.empty(groups, np.int64)
    for g in range(groups):
        rest = supply[g]
        for j in range(d):
            if masks[g] >> j & 1:
                sent = min(rest, left[j])
                flow[g, j] += sent
                left[j] -= sent
                rest -= sent
        while rest > 0:
            parent_arc[:] = -1
            parent_group[:] = -1
            parent_arc[g] = d
            queue[0] = g
            filled, done, goal = 1, 0, -1
            while done < filled and goal < 0:
                h = queue[done]
                done += 1
                for j in range(d):
                    if masks[h] >> j & 1 and parent_group[j] < 0:
                        parent_group[j] = h
                        if left[j] > 0:
                            goal = j
                            break
                        for k in range(groups):
                            if flow[k, j] > 0 and parent_arc[k] < 0:
                                parent_arc[k] = j
                                queue[filled] = k
                                filled += 1
            if goal < 0:
                short = np.int64(0)
                for j in range(d):
                    if parent_group[j] >= 0:
                        short |= np.int64(1) << np.int64(j)
                return flow, short
            amount, j = min(rest, left[goal]), goal
            while True:
                h = parent_group[j]
                if h == g:
                    break
                j = parent_arc[h]
                amount = min(amount, flow[h, j])
            j = goal
            while True:
                h = parent_group[j]
                flow[h, j] += amount
                if h == g:
                    break
                j = parent_arc[h]
                flow[h, j] -= amount
            left[goal] -= amount
            rest -= amount
    return flow, np.int64(0)


@njit(cache=True, nogil=True)
def _within(masks, sums, capacity, arcs):
    """Return (weight that only these arcs can bring, their capacity)."""
    p, q = np.int64(0), np.int64(0)
    for g in range(masks.size):
        if masks[g] & ~arcs == 0:
            p += sums[g]
    for j in range(capacity.size):
        if arcs >> j & 1:
            q += capacity[j]
    return p, q


@njit(cache=True, nogil=True, allocates=True)
def _worst_by_flow(masks, sums, capacity):
    """Return (p, q, arcs) of the largest ratio, by Newton's method on violated sets."""
    arcs = np.int64(0)
    for g in range(masks.size):
        arcs |= masks[g]
    p, q = _within(masks, sums, capacity, arcs)
    while True:
        short = _flow(masks, sums * q, capacity * p)[1]
        if short == 0:
            return p, q, arcs
        arcs = short
        p, q = _within(masks, sums, capacity, arcs)


@njit(cache=True, nogil=True)
def _worst_by_subsets(count, held):
    """Return (p, q, arcs) of the largest ratio; `count` by mask becomes sums over subsets.

    `held` is the capacity of every mask. Of equal ratios, the one with the most capacity.
    """
    size = count.size
    bit = 1
    while bit < size:
        for base in range(0, size, 2 * bit):
            for i in range(base, base + bit):
                count[i + bit] += count[i]
        bit *= 2
    p, q, arcs = np.int64(0), np.int64(1), np.int64(0)
    for mask in range(1, size):
        more = count[mask] * q - p * held[mask]
        if more > 0 or (more == 0 and count[mask] > p):
            p, q, arcs = count[mask], held[mask], np.int64(mask)
    return p, q, arcs


@njit(cache=True, nogil=True, allocates=True)
def _held(capacity):
    """Return the capacity of every set of arcs."""
    found = np.zeros(1 << capacity.size, np.int64)
    for j in range(capacity.size):
        bit = 1 << j
        for i in range(bit):
            found[bit + i] = found[i] + capacity[j]
    return found


@njit(cache=True, nogil=True)
def step_loads(first, tail, capacity, distance, row, receivers, weight):
    """Return the largest load of every step, and where: (p, q, receiver, arcs).

    Parameters
    ----------
    distance : int16 (k, n)
        Rows of `distances`, of all receivers and their in-neighbours.
    row : int64 (n,)
        Row of each node in `distance`.
    receivers : int64 (r,)
    weight : int64 (n,)
        What each node sends.

    Returns
    -------
    int64 (steps + 1, 4)
        Load p / q of weight over capacity, the receiver, and the set of its in-arcs that proves
        it, as bits. Row 0 is for all steps together: the congestion of shortest paths.
    """
    n = first.size - 1
    steps = 0
    for u in receivers:
        for v in range(n):
            if weight[v] > 0:
                steps = max(steps, distance[row[u], v])
    best = np.zeros((steps + 1, 4), np.int64)
    best[:, 1] = 1
    mask = np.empty(n, np.int64)
    every = np.ones(n, np.bool_)
    for u in receivers:
        _last_hops(u, first, tail, distance, row, mask)
        own = distance[row[u]]
        links = capacity[first[u] : first[u + 1]]
        if links.size <= _WIDE:
            held = _held(links)
            count = np.zeros((steps + 1, held.size), np.int64)
            for v in range(n):
                if mask[v] != 0 and weight[v] > 0:
                    count[own[v], mask[v]] += weight[v]
                    count[0, mask[v]] += weight[v]
        for t in range(steps + 1):
            if links.size <= _WIDE:
                p, q, arcs = _worst_by_subsets(count[t], held)
            else:
                masks, sums = _grouped(mask, weight, every if t == 0 else own == t)
                if masks.size == 0:
                    continue
                p, q, arcs = _worst_by_flow(masks, sums, links)
            if p * best[t, 1] > best[t, 0] * q:
                best[t, 0], best[t, 1], best[t, 2], best[t, 3] = p, q, u, arcs
    return best


@njit(cache=True, nogil=True, allocates=True)
def _limits(masks, sums, capacity, p, q):
    """Return the smallest limits floor(U capacity), U from p / q up, that hold all whole units."""
    limit = capacity * p // q
    while True:
        flow, short = _flow(masks, sums, limit)
        if short == 0:
            return flow
        # U rises to the next whole unit on any of the arcs that hold too little.
        top, bottom = np.int64(0), np.int64(1)
        for j in range(capacity.size):
            if short >> j & 1 and (top == 0 or (limit[j] + 1) * bottom < top * capacity[j]):
                top, bottom = limit[j] + 1, capacity[j]
        for j in range(capacity.size):
            limit[j] = max(limit[j], capacity[j] * top // bottom)


@njit(cache=True, nogil=True, allocates=True)
def _deal(quota, chosen, mask, masks, start, arc, at, units):
    """Give the units of every node arcs in proportion to what is left of its group's quota."""
    d = quota.shape[1]
    whole = quota.copy()
    for v in chosen:
        if mask[v] == 0:
            continue
        g = np.searchsorted(masks, mask[v])
        for unit in range(start[v], start[v + 1]):
            best = -1
            for j in range(d):
                if quota[g, j] > 0 and (
                    best < 0 or quota[g, j] * whole[g, best] > quota[g, best] * whole[g, j]
                ):
                    best = j
            quota[g, best] -= 1
            arc[unit, at] = units + best


@njit(cache=True, nogil=True)
def whole_chunks(first, tail, capacity, distance, start, by_step):
    """Return the arc by which every node receives every unit: int32 (units, n), -1 at its source.

    Parameters
    ----------
    distance : int16 (n, n)
        Between all nodes, none `UNREACHED` from a node with units.
    start : int64 (n + 1,)
        Units of node v are ``start[v]:start[v + 1]``.
    by_step : bool
        Whether the load of every step is the least for whole units; otherwise that of all steps
        together.
    """
    n = first.size - 1
    arc = np.full((start[n], n), -1, np.int32)
    mask = np.empty(n, np.int64)
    row = np.arange(n)
    weight = np.diff(start)
    for u in range(n):
        _last_hops(u, first, tail, distance, row, mask)
        own = distance[u]
        links = capacity[first[u] : first[u + 1]]
        order = np.argsort(own, kind="mergesort")
        far = own.max()
        for t in range(1, far + 1) if by_step else range(1):
            chosen = own == t if by_step else own > 0
            masks, sums = _grouped(mask, weight, chosen)
            if masks.size:
                p, q, _ = _worst_by_flow(masks, sums, links)
                quota = _limits(masks, sums, links, p, q)
                picked = order[chosen[order]]
                _deal(quota, picked, mask, masks, start, arc, u, first[u])
    return arc
