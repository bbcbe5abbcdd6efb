"""Pack capacitated spanning arborescences: Edmonds' theorem made constructive.

Input is a digraph over GPUs 0..n-1 with integer arc capacities and, per root, a number of
trees, such that every set U of GPUs satisfies c(entering U) >= trees of roots outside U.
Batches of equal trees grow one arc at a time, level by level, which keeps every tree low,
under the invariant

    c(entering U) >= sum of the sizes of the batches that have no GPU in U.

A maximum flow into GPU y witnesses it for all U that hold y: every batch that lacks y
supplies its size, from the GPUs it has reached. A batch may take the arc (x, y) to the
extent to which x alone can supply in its place (Frank's condition; Schrijver,
Combinatorial Optimization, section 53.3; batches as in ForestColl, arXiv 2402.06787,
appendix). So GPUs are served in turn: one flow into y is found once, and each batch that
asks for an arc into y only moves its own supply within that flow, which mostly costs a
few steps. An arc that a batch may not take stays refused, whatever is taken later. A
batch that can take no arc as a whole is split.

About one flow per GPU and level, each on the remaining arcs and the GPUs reached by
unfinished batches. Twin of the result: the certificate check in colsynth.verify.forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import index_by_head, max_flow, reset, residual_index

WHOLE, REFUSED = 1, 2
"""Marks of an arc in `Batches.short`: not by the whole batch, not at all."""


class Arcs(NamedTuple):
    """The digraph: int64 arrays over arcs, and a CSR of arcs by the GPU they enter."""

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
    depth: np.ndarray  # (rows, gpus), -1 where a GPU is not reached
    short: np.ndarray  # (rows, arcs) int8 marks


class Flow(NamedTuple):
    """A maximum flow into one GPU; nodes are the GPUs, then batches, then the source."""

    first: np.ndarray  # CSR of residual arcs, as kernels.maxflow has them
    order: np.ndarray
    to: np.ndarray
    residual: np.ndarray
    place: np.ndarray  # (arcs,) number of an arc in the flow, -1 where it is left out
    node: np.ndarray  # (rows,) node of each batch, -1 where it does not lack the GPU
    supply: np.ndarray  # (rows,) number of the arc from the source to the batch's node
    whole: bool  # whether every batch that lacks the GPU can be supplied


@njit(cache=True, nogil=True)
def _flow_into(arcs, batches, count, y):
    """Return the flow into y in which every batch that lacks y supplies its size."""
    gpus, m = arcs.gpus, arcs.tail.size
    place = np.full(m, -1, np.int64)
    node = np.full(batches.size.size, -1, np.int64)
    supply = np.full(batches.size.size, -1, np.int64)
    nodes, extra = gpus, 0
    for b in range(count):
        if batches.size[b] > 0 and batches.depth[b, y] < 0:
            node[b] = nodes
            nodes += 1
            extra += 1 + batches.reached[b]
    tail = np.empty(m + extra, np.int64)
    head = np.empty(m + extra, np.int64)
    capacity = np.empty(m + extra, np.int64)
    k, total = 0, np.int64(0)
    for i in range(m):
        if arcs.left[i] > 0 and arcs.tail[i] != y:
            tail[k], head[k], capacity[k] = arcs.tail[i], arcs.head[i], arcs.left[i]
            place[i] = k
            k += 1
    for b in range(count):
        if node[b] < 0:
            continue
        tail[k], head[k], capacity[k] = nodes, node[b], batches.size[b]
        supply[b] = k
        total += batches.size[b]
        k += 1
        for j in range(batches.reached[b]):
            tail[k], head[k], capacity[k] = node[b], batches.reach[b, j], batches.size[b]
            k += 1
    first, index, to = residual_index(nodes + 1, tail[:k], head[:k])
    residual = np.empty(2 * k, np.int64)
    reset(residual, capacity[:k])
    whole = max_flow(first, index, to, residual, nodes, y, total) == total
    return Flow(first, index, to, residual, place, node, supply, whole)


@njit(cache=True, nogil=True)
def _push(flow, start, end, most):
    return max_flow(flow.first, flow.order, flow.to, flow.residual, start, end, most)


@njit(cache=True, nogil=True)
def _supplied(flow, x, batch, want):
    """Move up to `want` of a batch's supply to the GPU x; return how much moved."""
    return _push(flow, x, flow.node[batch], want)


@njit(cache=True, nogil=True)
def _moved_back(flow, x, batch, amount):
    """Undo `_supplied`."""
    if amount > 0:
        _push(flow, flow.node[batch], x, amount)


@njit(cache=True, nogil=True)
def _take_out(flow, batch, arc, x, y, size):
    """Take a batch, supplied by x alone, and the part of the arc it uses, out of the flow."""
    node, k = flow.node[batch], 2 * flow.supply[batch]
    flow.residual[k] = flow.residual[k + 1] = 0
    for j in range(flow.first[node], flow.first[node + 1]):
        flow.residual[flow.order[j]] = 0
    forward = 2 * flow.place[arc]
    along = min(size, flow.residual[forward + 1])
    flow.residual[forward + 1] -= along
    flow.residual[forward] -= size - along
    if along < size:
        _push(flow, y, x, size - along)


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
def _serve(arcs, batches, count, active, y, level):
    """Let active batches take arcs into y, as a whole, from GPUs `level` deep."""
    flow = _flow_into(arcs, batches, count, y)
    if not flow.whole:
        return False
    for batch in active:
        if flow.node[batch] < 0:
            continue
        size = batches.size[batch]
        for i in range(arcs.first[y], arcs.first[y + 1]):
            arc = arcs.order[i]
            if not _may(arcs, batches, batch, arc, level):
                continue
            x = arcs.tail[arc]
            moved = _supplied(flow, x, batch, size)
            if moved == size:
                _take_out(flow, batch, arc, x, y, size)
                _take(arcs, batches, batch, arc)
                break
            _moved_back(flow, x, batch, moved)
            batches.short[batch, arc] = WHOLE if moved > 0 else REFUSED
    return True


@njit(cache=True, nogil=True)
def _take(arcs, batches, batch, arc):
    """Let a whole batch take an arc."""
    x, y = arcs.tail[arc], arcs.head[arc]
    arcs.left[arc] -= batches.size[batch]
    place = batches.reached[batch]
    batches.reach[batch, place], batches.edges[batch, place] = y, arc
    batches.depth[batch, y] = batches.depth[batch, x] + 1
    batches.reached[batch] += 1


@njit(cache=True, nogil=True)
def _grow(arcs, batches, count, active):
    """Let active batches take whatever they may take whole, the lowest level first."""
    level = 0
    while level <= _deepest(batches, active):
        for y in range(arcs.gpus):
            asked = _asked(arcs, batches, active, y, level)
            if asked and not _serve(arcs, batches, count, active, y, level):
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
def _part(arcs, batches, count, batch):
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
        flow = _flow_into(arcs, batches, count, y)
        best, most = -1, np.int64(0)
        for i in range(arcs.first[y], arcs.first[y + 1]):
            arc = arcs.order[i]
            x = arcs.tail[arc]
            closed = batches.short[batch, arc] == REFUSED or batches.depth[batch, x] < 0
            if closed or arcs.left[arc] <= most:
                continue
            moved = _supplied(flow, x, batch, min(size, arcs.left[arc]))
            _moved_back(flow, x, batch, moved)
            if moved > most:
                best, most = arc, moved
            elif moved == 0:
                batches.short[batch, arc] = REFUSED
        if best >= 0:
            return best, most
    return -1, np.int64(0)


@njit(cache=True, nogil=True)
def _split(batches, batch, new, amount):
    """Keep `amount` trees in a batch and put the others into row `new`."""
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


@njit(cache=True, nogil=True)
def _rows(array, rows):
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    for i in range(array.size):
        longer.flat[i] = array.flat[i]
    return longer


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
    first, order = index_by_head(gpus, head)
    arcs = Arcs(gpus, tail, head, capacity.copy(), first, order)
    batches = _seeds(gpus, tail.size, roots, trees)
    count = roots.size
    active = np.arange(count)
    while _grow(arcs, batches, count, active):
        batch = _first_stuck(batches, count)
        if batch < 0:
            return batches.size[:count], batches.edges[:count]
        arc, amount = _part(arcs, batches, count, batch)
        if arc < 0:
            break
        active = np.array([batch])
        if amount < batches.size[batch]:
            if count == batches.size.size:
                batches = _grown(batches, 2 * count)
            _split(batches, batch, count, amount)
            active = np.array([batch, count])
            count += 1
        _take(arcs, batches, batch, arc)
    for b in range(count):
        if batches.reached[b] < gpus:
            batches.size[b] = 0
    return batches.size[:count], batches.edges[:count]
