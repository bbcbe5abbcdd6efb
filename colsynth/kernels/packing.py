"""Pack capacitated spanning arborescences: Edmonds' theorem made constructive.

Input is a digraph over GPUs 0..n-1 with integer arc capacities and, per root, a number of
trees, such that every set U of GPUs satisfies c(entering U) >= trees of roots outside U.
Batches of equal trees grow one arc at a time, level by level and all in turn, which keeps
every tree low, under the invariant

    c(entering U) >= sum of the sizes of the batches that have no GPU in U.

How much of a batch may take arc (x, y) is min(capacity, size, f - others) with f the
maximum flow from x to y in the remaining network plus, for every other unfinished batch
i, a node entered from x with its size and left with as much to every GPU of the batch
(Frank's condition; Schrijver, Combinatorial Optimization, section 53.3; batches as in
ForestColl, arXiv 2402.06787, appendix). An arc that a batch may not take stays refused,
whatever is taken later, so each is asked for once: about one flow per tree edge, plus one
per refusal. A batch that can take no arc as a whole is split.

Twin of the result: the certificate check in colsynth.verify.forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from colsynth.kernels.maxflow import max_flow, reset, residual_index

WHOLE, REFUSED = 1, 2
"""Marks of an arc in `Batches.short`: not by the whole batch, not at all."""


class Arcs(NamedTuple):
    """The digraph: int64 arrays over arcs, and a CSR of arcs by the GPU they leave."""

    gpus: int
    tail: np.ndarray
    head: np.ndarray
    left: np.ndarray  # capacity not taken yet
    first: np.ndarray  # (gpus + 1,)
    order: np.ndarray  # arcs in order of preference, GPU by GPU


class Batches(NamedTuple):
    """Equal trees that grow together, one batch per row."""

    size: np.ndarray  # (rows,) trees in the batch, 0 once it is given up
    reached: np.ndarray  # (rows,) number of GPUs
    reach: np.ndarray  # (rows, gpus) GPUs in the order they were reached
    edges: np.ndarray  # (rows, gpus) the arc that reached each of them; first the root
    within: np.ndarray  # (rows, gpus) bool
    depth: np.ndarray  # (rows, gpus)
    short: np.ndarray  # (rows, arcs) int8 marks


@njit(cache=True, nogil=True)
def _room(arcs, batches, batch, unfinished, arc, want):
    """Return how much, up to `want`, a batch may take of an arc."""
    x, y = arcs.tail[arc], arcs.head[arc]
    others = np.int64(0)
    extra = 0
    for b in unfinished:
        if b != batch:
            others += batches.size[b]
            extra += 1 + batches.reached[b]
    m = arcs.tail.size
    tail = np.empty(m + extra, np.int64)
    head = np.empty(m + extra, np.int64)
    capacity = np.empty(m + extra, np.int64)
    tail[:m], head[:m], capacity[:m] = arcs.tail, arcs.head, arcs.left
    node, k = arcs.gpus, m
    for b in unfinished:
        if b == batch:
            continue
        size = batches.size[b]
        if batches.reached[b] == 1:
            tail[k], head[k], capacity[k] = x, batches.reach[b, 0], size
            k += 1
            continue
        tail[k], head[k], capacity[k] = x, node, size
        k += 1
        for j in range(batches.reached[b]):
            # No more than the batch's size ever enters its node.
            tail[k], head[k], capacity[k] = node, batches.reach[b, j], size
            k += 1
        node += 1
    first, index, to = residual_index(node, tail[:k], head[:k])
    residual = np.empty(2 * k, np.int64)
    reset(residual, capacity[:k])
    return max_flow(first, index, to, residual, x, y, others + want) - others


@njit(cache=True, nogil=True)
def _next_arc(arcs, batches, batch, unfinished, level):
    """Return (arc, amount) of the first arc that a batch may take, -1 when there is none.

    GPUs are asked in the order they were reached. At a `level` of 0 or more only those so
    deep, and only for arcs that the whole batch may take; at -1 all, for any part of it.
    """
    size = batches.size[batch]
    for j in range(batches.reached[batch]):
        x = batches.reach[batch, j]
        if level >= 0 and batches.depth[batch, x] != level:
            continue
        for i in range(arcs.first[x], arcs.first[x + 1]):
            arc = arcs.order[i]
            mark = batches.short[batch, arc]
            if batches.within[batch, arcs.head[arc]] or arcs.left[arc] == 0 or mark == REFUSED:
                continue
            if level >= 0 and (mark == WHOLE or arcs.left[arc] < size):
                continue
            amount = _room(arcs, batches, batch, unfinished, arc, min(arcs.left[arc], size))
            if amount <= 0:
                batches.short[batch, arc] = REFUSED
            elif level >= 0 and amount < size:
                batches.short[batch, arc] = WHOLE
            else:
                return arc, amount
    return -1, 0


@njit(cache=True, nogil=True)
def _take(arcs, batches, batch, arc):
    """Let a whole batch take an arc."""
    x, y = arcs.tail[arc], arcs.head[arc]
    arcs.left[arc] -= batches.size[batch]
    place = batches.reached[batch]
    batches.reach[batch, place], batches.edges[batch, place] = y, arc
    batches.within[batch, y] = True
    batches.depth[batch, y] = batches.depth[batch, x] + 1
    batches.reached[batch] += 1


@njit(cache=True, nogil=True)
def _split(batches, batch, new, amount):
    """Keep `amount` trees in a batch and put the others into row `new`."""
    for i in range(batches.short.shape[1]):
        batches.short[batch, i] &= REFUSED
    for array in (batches.reach, batches.edges, batches.depth):
        array[new] = array[batch]
    batches.within[new] = batches.within[batch]
    batches.short[new] = batches.short[batch]
    batches.reached[new] = batches.reached[batch]
    batches.size[new] = batches.size[batch] - amount
    batches.size[batch] = amount


@njit(cache=True, nogil=True)
def _rows(array, rows):
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: array.shape[0]] = array
    return longer


@njit(cache=True, nogil=True)
def _grown(batches, rows):
    return Batches(
        _rows(batches.size, rows),
        _rows(batches.reached, rows),
        _rows(batches.reach, rows),
        _rows(batches.edges, rows),
        _rows(batches.within, rows),
        _rows(batches.depth, rows),
        _rows(batches.short, rows),
    )


@njit(cache=True, nogil=True)
def _unfinished(batches, count):
    return np.nonzero(
        (batches.reached[:count] < batches.reach.shape[1]) & (batches.size[:count] > 0)
    )[0]


@njit(cache=True, nogil=True)
def _grow_level(arcs, batches, count, level):
    """Let every batch take all arcs it may take whole from GPUs `level` deep."""
    for batch in range(count):
        unfinished = _unfinished(batches, count)
        while batches.size[batch] > 0 and batches.reached[batch] < arcs.gpus:
            arc, _ = _next_arc(arcs, batches, batch, unfinished, level)
            if arc < 0:
                break
            _take(arcs, batches, batch, arc)


@njit(cache=True, nogil=True)
def _by_tail(gpus, tail):
    """Return (first, order): CSR of arcs by tail, their order kept."""
    first = np.zeros(gpus + 1, np.int64)
    for x in tail:
        first[x + 1] += 1
    return np.cumsum(first), np.argsort(tail, kind="mergesort")


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

    Returns
    -------
    size : int64 (b,)
        Number of equal trees in each batch; 0 marks a batch that could not be finished,
        which the theorem excludes when the input satisfies the cut condition.
    edges : int64 (b, gpus)
        ``edges[i, 0]`` is the root; ``edges[i, j]`` the arc that reached the j-th GPU.
    """
    first, order = _by_tail(gpus, tail)
    arcs = Arcs(gpus, tail, head, capacity.copy(), first, order)
    count = roots.size
    rows = 2 * count + 16
    batches = Batches(
        np.zeros(rows, np.int64),
        np.ones(rows, np.int64),
        np.zeros((rows, gpus), np.int64),
        np.zeros((rows, gpus), np.int64),
        np.zeros((rows, gpus), np.bool_),
        np.zeros((rows, gpus), np.int64),
        np.zeros((rows, tail.size), np.int8),
    )
    for b in range(count):
        batches.size[b] = trees[b]
        batches.reach[b, 0] = batches.edges[b, 0] = roots[b]
        batches.within[b, roots[b]] = True
    while True:
        for level in range(gpus - 1):
            _grow_level(arcs, batches, count, level)
        unfinished = _unfinished(batches, count)
        if unfinished.size == 0:
            return batches.size[:count], batches.edges[:count]
        # The first batch that is stuck takes an arc with a part of its trees.
        batch = unfinished[0]
        arc, amount = _next_arc(arcs, batches, batch, unfinished, -1)
        if arc < 0:
            batches.size[batch] = 0
            continue
        if amount < batches.size[batch]:
            if count == batches.size.size:
                batches = _grown(batches, 2 * count)
            _split(batches, batch, count, amount)
            count += 1
        _take(arcs, batches, batch, arc)
