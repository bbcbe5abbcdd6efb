"""Make packed trees lower without loading any arc beyond its capacity.

Two moves: a tree hangs a node on another parent over an arc that has room for it; two
trees exchange the arcs by which they reach the same node. A move is made when it lowers
the sum over trees and nodes of weight * depth ** 2, so high trees gain most and the search
ends. Each pass looks at every pair of trees that reach a node three or more arcs deep:
O(n T^2) for n nodes and T trees; a move costs O(n).

Twin of the result: the certificate check in colsynth.verify.forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import index_by_end

NEVER = 2**62
"""A change that no move can make."""

DEEP = 3
"""Depth from which a node looks for another tree to exchange arcs with."""


class Trees(NamedTuple):
    """Trees by rows; int64 (T, n) but for `weight` (T,)."""

    weight: np.ndarray
    parent: np.ndarray  # -1 for the root
    arc: np.ndarray  # the arc from the parent, -1 for the root
    depth: np.ndarray
    below: np.ndarray  # nodes of the subtree, the node itself among them
    depths: np.ndarray  # sum of their depths


@njit(cache=True, nogil=True, allocates=True)
def _measure(trees, t):
    """Set the depths and the sums of a tree from its parents."""
    n = trees.parent.shape[1]
    count = np.zeros(n + 1, np.int64)
    for v in range(n):
        d, w = 0, v
        while trees.parent[t, w] >= 0:
            w = trees.parent[t, w]
            d += 1
        trees.depth[t, v] = trees.depths[t, v] = d
        trees.below[t, v] = 1
        count[d + 1] += 1
    place = np.cumsum(count)
    order = np.empty(n, np.int64)
    for v in range(n):
        d = trees.depth[t, v]
        order[place[d]] = v
        place[d] += 1
    for i in range(n - 1, 0, -1):
        v = order[i]
        p = trees.parent[t, v]
        trees.below[t, p] += trees.below[t, v]
        trees.depths[t, p] += trees.depths[t, v]


@njit(cache=True, nogil=True)
def _change(trees, t, node, parent):
    """Return how the weighted sum of squares changes when a node hangs on `parent`.

    `NEVER` where the parent is in the node's own subtree.
    """
    by = trees.depth[t, parent] + 1 - trees.depth[t, node]
    v = parent
    while v >= 0:
        if v == node:
            return np.int64(NEVER)
        v = trees.parent[t, v]
    return trees.weight[t] * by * (2 * trees.depths[t, node] + by * trees.below[t, node])


@njit(cache=True, nogil=True)
def _hang(trees, left, t, node, arc, parent):
    """Hang a node on another parent."""
    left[trees.arc[t, node]] += trees.weight[t]
    left[arc] -= trees.weight[t]
    trees.parent[t, node], trees.arc[t, node] = parent, arc
    _measure(trees, t)


@njit(cache=True, nogil=True)
def _rehang(trees, left, tail, into, t, node):
    """Hang a node on the parent that gains most, over an arc with room; whether it moved."""
    best, least = -1, np.int64(0)
    for arc in into:
        x = tail[arc]
        room = left[arc] >= trees.weight[t] and arc != trees.arc[t, node]
        if room and trees.depth[t, x] + 1 < trees.depth[t, node]:
            change = _change(trees, t, node, x)
            if change < least:
                best, least = arc, change
    if best >= 0:
        _hang(trees, left, t, node, best, tail[best])
    return best >= 0


@njit(cache=True, nogil=True, allocates=True)
def _partner(trees, left, s, node, arcs, parents):
    """Return the tree whose exchange of arcs into a node gains most, -1 without any.

    `arcs` and `parents` (T,) are those of the node in all trees, side by side.
    """
    best, least = -1, np.int64(0)
    mine, x, weight = arcs[s], parents[s], trees.weight[s]
    nearer = trees.depth[s] + 1 < trees.depth[s, node]
    for t in range(arcs.size):
        theirs, y = arcs[t], parents[t]
        if theirs < 0 or not nearer[y] or theirs == mine:
            continue
        more = weight - trees.weight[t]
        if left[theirs] < more or left[mine] < -more:
            continue
        change = _change(trees, s, node, y)
        if change < least:
            other = _change(trees, t, node, x)
            if other != NEVER and change + other < least:
                best, least = t, change + other
    return best


@njit(cache=True, nogil=True, allocates=True)
def _lower_at(trees, left, tail, into, node):
    """Let all trees reach one node on shorter ways; whether any does."""
    moved = False
    for t in range(trees.weight.size):
        if trees.depth[t, node] > 1 and _rehang(trees, left, tail, into, t, node):
            moved = True
    arcs, parents = trees.arc[:, node].copy(), trees.parent[:, node].copy()
    for s in range(trees.weight.size):
        if trees.depth[s, node] < DEEP:
            continue
        t = _partner(trees, left, s, node, arcs, parents)
        if t >= 0:
            arcs[s], arcs[t] = arcs[t], arcs[s]
            parents[s], parents[t] = parents[t], parents[s]
            _hang(trees, left, s, node, arcs[s], parents[s])
            _hang(trees, left, t, node, arcs[t], parents[t])
            moved = True
    return moved


@njit(cache=True, nogil=True)
def lower_trees(tail, head, left, weight, parent, arc, passes):
    """Lower trees in place, by at most `passes` passes over all nodes.

    Parameters
    ----------
    tail, head : int64 (m,)
        Arcs.
    left : int64 (m,)
        Capacity that the trees leave; changed.
    weight : int64 (T,)
    parent, arc : int64 (T, n)
        Each node's parent and the arc from it, -1 for the root; changed.
    """
    rows, n = parent.shape
    depth, below = np.zeros((rows, n), np.int64), np.zeros((rows, n), np.int64)
    trees = Trees(weight, parent, arc, depth, below, np.zeros((rows, n), np.int64))
    for t in range(rows):
        _measure(trees, t)
    first, order = index_by_end(n, head)
    for _ in range(passes):
        moved = False
        for node in range(n):
            into = order[first[node] : first[node + 1]]
            if _lower_at(trees, left, tail, into, node):
                moved = True
        if not moved:
            break
