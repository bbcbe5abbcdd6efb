"""Pack capacitated spanning arborescences: Edmonds' theorem made constructive.

Input is a digraph over GPUs 0..n-1 with integer arc capacities and, per root, a number of
trees, such that every set U of GPUs satisfies c(entering U) >= trees of roots outside U.
Batches of equal trees grow one arc at a time, level by level, which keeps every tree low,
under the invariant

    c(entering U) >= sum of the sizes of the batches that have no GPU in U.

A maximum flow into GPU y witnesses it for all U that hold y: every batch supplies its
size, from the GPUs it has reached. A batch may take the arc (x, y) to the extent to which
x alone can supply in its place (Frank's condition; Schrijver, Combinatorial Optimization,
section 53.3; batches as in ForestColl, arXiv 2402.06787, appendix). An arc that a batch
may not take stays refused, whatever is taken later. A batch that can take no arc as a
whole is split.

One flow is kept from beginning to end (`supply`). Twin of the result: the certificate check
in colsynth.verify.forest.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import index_by_end
from colsynth.kernels.supply import (
    Arcs,
    Batches,
    add_batch,
    flow_of,
    moved_back,
    prune,
    sent_on,
    supplied,
    take,
)

WHOLE, REFUSED = 1, 2
"""Marks of an arc in `Batches.short`: not by the whole batch, not at all."""


@njit(cache=True, nogil=True)
def _may(arcs, batches, batch, arc, level):
    """Whether to ask for a whole batch to take an arc from a GPU `level` deep."""
    return (
        batches.depth[batch, arcs.tail[arc]] == level
        and arcs.left[arc] >= batches.size[batch]
        and batches.short[batch, arc] == 0
    )


@njit(cache=True, nogil=True)
def _asked(arcs, batches, active, y, level):
    """Whether a batch may ask for an arc into y."""
    for batch in active:
        if batches.size[batch] == 0 or batches.depth[batch, y] >= 0:
            continue
        for i in range(arcs.first[y], arcs.first[y + 1]):
            if _may(arcs, batches, batch, arcs.order[i], level):
                return True
    return False


@njit(cache=True, nogil=True)
def _serve(arcs, batches, flow, count, active, y, level):
    """Let active batches take arcs into y, as a whole, from GPUs `level` deep."""
    if not sent_on(arcs, batches, flow, count, y):
        return False
    for batch in active:
        size = batches.size[batch]
        if size == 0 or batches.depth[batch, y] >= 0:
            continue
        for i in range(arcs.first[y], arcs.first[y + 1]):
            arc = arcs.order[i]
            if not _may(arcs, batches, batch, arc, level):
                continue
            x = arcs.tail[arc]
            moved = supplied(flow, x, batch, size)
            if moved == size:
                take(arcs, batches, flow, batch, arc)
                break
            moved_back(flow, x, batch, moved)
            batches.short[batch, arc] = WHOLE if moved > 0 else REFUSED
    return True


@njit(cache=True, nogil=True, allocates=True)
def _grow(arcs, batches, flow, count, active):
    """Let active batches take whatever they may take whole, the lowest level first."""
    level = 0
    while level <= _deepest(batches, active):
        prune(arcs, batches, flow, count)
        for y in range(arcs.gpus):
            asked = _asked(arcs, batches, active, y, level)
            if asked and not _serve(arcs, batches, flow, count, active, y, level):
                return False
        level += 1
    return True


@njit(cache=True, nogil=True)
def _deepest(batches, active):
    """Return the depth of the deepest GPU of unfinished batches, -1 without such."""
    deepest = -1
    for b in active:
        if batches.size[b] > 0 and batches.reached[b] < batches.depth.shape[1]:
            for y in range(batches.depth.shape[1]):
                deepest = max(deepest, batches.depth[b, y])
    return deepest


@njit(cache=True, nogil=True)
def _part(arcs, batches, flow, count, batch):
    """Return (arc, amount): the most a stuck batch may take of arcs into one GPU."""
    size = batches.size[batch]
    for y in range(arcs.gpus):
        open_arcs = 0
        for i in range(arcs.first[y], arcs.first[y + 1]):
            arc = arcs.order[i]
            within = batches.depth[batch, y] < 0 <= batches.depth[batch, arcs.tail[arc]]
            if within and arcs.left[arc] > 0 and batches.short[batch, arc] != REFUSED:
                open_arcs += 1
        if open_arcs == 0:
            continue
        sent_on(arcs, batches, flow, count, y)
        best, most = -1, np.int64(0)
        for i in range(arcs.first[y], arcs.first[y + 1]):
            arc = arcs.order[i]
            x = arcs.tail[arc]
            closed = batches.short[batch, arc] == REFUSED or batches.depth[batch, x] < 0
            if closed or arcs.left[arc] <= most:
                continue
            moved = supplied(flow, x, batch, min(size, arcs.left[arc]))
            moved_back(flow, x, batch, moved)
            if moved > most:
                best, most = arc, moved
            elif moved == 0:
                batches.short[batch, arc] = REFUSED
        if best >= 0:
            return best, most
    return -1, np.int64(0)


@njit(cache=True, nogil=True)
def _split(arcs, batches, flow, batch, new, amount):
    """Keep `amount` trees in a batch and put the others into row `new`.

    The supply of those that are kept was moved elsewhere; the others take over the rest.
    """
    for i in range(batches.short.shape[1]):
        batches.short[batch, i] &= REFUSED
    for j in range(batches.depth.shape[1]):
        batches.reach[new, j] = batches.reach[batch, j]
        batches.edges[new, j] = batches.edges[batch, j]
        batches.depth[new, j] = batches.depth[batch, j]
    for i in range(batches.short.shape[1]):
        batches.short[new, i] = batches.short[batch, i]
    batches.reached[new] = batches.reached[batch]
    batches.size[new] = batches.size[batch] - amount
    batches.size[batch] = amount
    flow.node[new], flow.supplies[new] = flow.node[batch], True
    add_batch(arcs, batches, flow, batch)


@njit(cache=True, nogil=True, allocates=True)
def _rows(array, rows):
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    for i in range(array.size):
        longer.flat[i] = array.flat[i]
    return longer


@njit(cache=True, nogil=True, allocates=True)
def _grown(batches, rows):
    return Batches(
        _rows(batches.size, rows),
        _rows(batches.reached, rows),
        _rows(batches.reach, rows),
        _rows(batches.edges, rows),
        _rows(batches.depth, rows),
        _rows(batches.short, rows),
    )


@njit(cache=True, nogil=True)
def _first_stuck(batches, count):
    """Return the first unfinished batch, -1 when there is none."""
    for b in range(count):
        if batches.size[b] > 0 and batches.reached[b] < batches.reach.shape[1]:
            return b
    return -1


@njit(cache=True, nogil=True, allocates=True)
def _seeds(gpus, arcs, roots, trees):
    """Return one batch per root, and rows for those that splits will make."""
    rows = 2 * roots.size + 16
    batches = Batches(
        np.zeros(rows, np.int64),
        np.ones(rows, np.int64),
        np.zeros((rows, gpus), np.int64),
        np.zeros((rows, gpus), np.int64),
        np.full((rows, gpus), -1, np.int64),
        np.zeros((rows, arcs), np.int8),
    )
    for b in range(roots.size):
        batches.size[b] = trees[b]
        batches.reach[b, 0] = batches.edges[b, 0] = roots[b]
        batches.depth[b, roots[b]] = 0
    return batches


@njit(cache=True, nogil=True)
def pack_arborescences(gpus, tail, head, capacity, roots, trees):
    """Pack `trees[i]` spanning arborescences rooted at `roots[i]`.

    Parameters
    ----------
    gpus : int
        Number of GPUs.
    tail, head, capacity : int64 (m,)
        Arcs in order of preference.
    roots, trees : int64 (r,)
        A root may come more than once.

    Returns
    -------
    size : int64 (b,)
        Number of equal trees in each batch; 0 marks a batch that could not be finished,
        which the theorem excludes when the input satisfies the cut condition.
    edges : int64 (b, gpus)
        ``edges[i, 0]`` is the root; ``edges[i, j]`` the arc that reached the j-th GPU.
    """
    first, order = index_by_end(gpus, head)
    arcs = Arcs(gpus, tail, head, capacity.copy(), first, order, *index_by_end(gpus, tail))
    batches = _seeds(gpus, tail.size, roots, trees)
    count = roots.size
    active = np.arange(count)
    flow = flow_of(arcs, batches, count)
    while _grow(arcs, batches, flow, count, active):
        batch = _first_stuck(batches, count)
        if batch < 0:
            return batches.size[:count], batches.edges[:count]
        arc, amount = _part(arcs, batches, flow, count, batch)
        if arc < 0:
            break
        if count == batches.size.size:
            batches = _grown(batches, 2 * count)
            flow = flow_of(arcs, batches, count)
            sent_on(arcs, batches, flow, count, head[arc])
        supplied(flow, tail[arc], batch, amount)
        active = np.array([batch])
        if amount < batches.size[batch]:
            _split(arcs, batches, flow, batch, count, amount)
            active = np.array([batch, count])
            count += 1
        take(arcs, batches, flow, batch, arc)
    for b in range(count):
        if batches.reached[b] < gpus:
            batches.size[b] = 0
    return batches.size[:count], batches.edges[:count]
