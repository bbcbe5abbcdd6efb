"""Pack capacitated spanning arborescences: Edmonds' theorem made constructive.

Input is a digraph over GPUs 0..n-1 with integer arc capacities and, per root, a number of
trees, such that every set U of GPUs satisfies c(entering U) >= trees of roots outside U.
Batches of equal trees grow one arc at a time, keeping the invariant

    c(entering U) >= sum of the sizes of the batches that have no GPU in U.

How much of a batch may take arc (x, y) is min(capacity, size, f - others) with f the
maximum flow from x to y in the remaining network plus, for every other unfinished batch
i, a node entered from x with its size and left with as much to every GPU of the batch
(Frank's condition; Schrijver, Combinatorial Optimization, section 53.3; batches as in
ForestColl, arXiv 2402.06787, appendix). An arc that a batch may not take stays refused
while that batch grows, so one breadth-first scan per batch is enough, which also keeps
trees low. About one flow per tree edge, plus one per refusal.

Twin of the result: the certificate check in colsynth.verify.forest.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from colsynth.kernels.maxflow import max_flow, reset, residual_index


@njit(cache=True, nogil=True)
def _room(n, tail, head, left, x, y, want, batch, size, reach, reached, open_batches):
    """Return how much, up to `want`, batch `batch` may take of an arc x -> y."""
    others = np.int64(0)
    extra = 0
    for b in open_batches:
        if b != batch:
            others += size[b]
            extra += 1 + reached[b]
    m = tail.size
    all_tail = np.empty(m + extra, np.int64)
    all_head = np.empty(m + extra, np.int64)
    capacity = np.empty(m + extra, np.int64)
    all_tail[:m] = tail
    all_head[:m] = head
    capacity[:m] = left
    node, k = n, m
    for b in open_batches:
        if b == batch:
            continue
        if reached[b] == 1:
            all_tail[k], all_head[k], capacity[k] = x, reach[b, 0], size[b]
            k += 1
            continue
        all_tail[k], all_head[k], capacity[k] = x, node, size[b]
        k += 1
        for j in range(reached[b]):
            all_tail[k], all_head[k], capacity[k] = node, reach[b, j], size[b]
            k += 1
        node += 1
    first, arcs, to = residual_index(node, all_tail[:k], all_head[:k])
    residual = np.empty(2 * k, np.int64)
    reset(residual, capacity[:k])
    return max_flow(first, arcs, to, residual, x, y, others + want) - others


@njit(cache=True, nogil=True)
def _arc_for(
    n,
    tail,
    head,
    left,
    first,
    order,
    b,
    depth_from,
    size,
    reach,
    reached,
    within,
    depth,
    refused,
    open_batches,
    whole,
):
    """Return (arc, amount) of the first arc that batch `b` may take, -1 when there is none.

    Arcs leave GPUs of the batch in the order they were reached; with `whole` only those
    exactly `depth_from` deep, and only arcs that the whole batch may take. Arcs found
    short are marked in ``refused[b]`` (1: not by the whole batch, 2: not at all).
    """
    for j in range(reached[b]):
        x = reach[b, j]
        if whole and depth[b, x] != depth_from:
            continue
        for i in range(first[x], first[x + 1]):
            arc = order[i]
            y = head[arc]
            if within[b, y] or left[arc] == 0 or refused[b, arc] == 2:
                continue
            if whole and (refused[b, arc] == 1 or left[arc] < size[b]):
                continue
            want = min(left[arc], size[b])
            amount = _room(n, tail, head, left, x, y, want, b, size, reach, reached, open_batches)
            if amount <= 0:
                refused[b, arc] = 2
            elif whole and amount < size[b]:
                refused[b, arc] = 1
            else:
                return arc, amount
    return -1, 0


@njit(cache=True, nogil=True)
def _grown(array, rows):
    bigger = np.zeros((rows, *array.shape[1:]), array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(cache=True, nogil=True)
def pack_arborescences(n, tail, head, capacity, roots, trees):
    """Pack `trees[i]` spanning arborescences rooted at `roots[i]`.

    Parameters
    ----------
    n : int
        Number of GPUs.
    tail, head, capacity : int64 (m,)
        Arcs in order of preference.
    roots, trees : int64 (r,)

    Returns
    -------
    size : int64 (b,)
        Number of equal trees in each batch; 0 marks a batch that could not be finished,
        which the theorem excludes when the input satisfies the cut condition.
    edges : int64 (b, n)
        ``edges[i, 0]`` is the root; ``edges[i, j]`` the arc that reached the j-th GPU.
    """
    order = np.argsort(tail, kind="mergesort")
    first = np.zeros(n + 1, np.int64)
    for i in range(tail.size):
        first[tail[i] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    left = capacity.copy()
    count = roots.size
    rows = 4 * count + 16
    size = np.zeros(rows, np.int64)
    reach = np.zeros((rows, n), np.int64)
    edges = np.zeros((rows, n), np.int64)
    reached = np.zeros(rows, np.int64)
    within = np.zeros((rows, n), np.bool_)
    depth = np.zeros((rows, n), np.int64)
    refused = np.zeros((rows, tail.size), np.int8)
    for b in range(count):
        size[b], reach[b, 0], edges[b, 0] = trees[b], roots[b], roots[b]
        reached[b] = 1
        within[b, roots[b]] = True
    while True:
        # All batches grow level by level through arcs that need no split.
        for level in range(n - 1):
            for b in range(count):
                open_batches = np.nonzero((reached[:count] < n) & (size[:count] > 0))[0]
                while reached[b] < n and size[b] > 0:
                    arc, _ = _arc_for(
                        n,
                        tail,
                        head,
                        left,
                        first,
                        order,
                        b,
                        level,
                        size,
                        reach,
                        reached,
                        within,
                        depth,
                        refused,
                        open_batches,
                        True,
                    )
                    if arc < 0:
                        break
                    left[arc] -= size[b]
                    y = head[arc]
                    reach[b, reached[b]], edges[b, reached[b]] = y, arc
                    within[b, y] = True
                    depth[b, y] = level + 1
                    reached[b] += 1
        open_batches = np.nonzero((reached[:count] < n) & (size[:count] > 0))[0]
        if open_batches.size == 0:
            return size[:count], edges[:count]
        # The first batch that is stuck takes an arc with a part of its trees.
        b = open_batches[0]
        arc, amount = _arc_for(
            n,
            tail,
            head,
            left,
            first,
            order,
            b,
            0,
            size,
            reach,
            reached,
            within,
            depth,
            refused,
            open_batches,
            False,
        )
        if arc < 0:
            size[b] = 0
            continue
        if count == size.size:
            grow = 2 * count
            size, reached, depth = _grown(size, grow), _grown(reached, grow), _grown(depth, grow)
            reach, edges = _grown(reach, grow), _grown(edges, grow)
            within, refused = _grown(within, grow), _grown(refused, grow)
        if amount < size[b]:
            size[count] = size[b] - amount
            size[b] = amount
            reach[count], edges[count], depth[count] = reach[b], edges[b], depth[b]
            within[count], reached[count] = within[b], reached[b]
            for i in range(tail.size):
                refused[b, i] = refused[b, i] & 2
            refused[count] = refused[b]
            count += 1
        left[arc] -= amount
        y = head[arc]
        reach[b, reached[b]], edges[b, reached[b]] = y, arc
        within[b, y] = True
        depth[b, y] = depth[b, tail[arc]] + 1
        reached[b] += 1
