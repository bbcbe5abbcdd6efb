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

One flow is kept from beginning to end. GPUs are served in turn, and what has arrived at
one of them is sent on to the next; a batch that asks for an arc into y moves its own
supply within the flow. Both mostly take a few short paths. A flow from nothing for every
GPU and level takes longer paths the farther away its roots are, which on a ring is nearly
all the time. Twin of the result: the certificate check in colsynth.verify.forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import index_by_end, join, max_flow

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
    out_first: np.ndarray  # (gpus + 1,) a CSR of arcs by the GPU they leave
    out: np.ndarray


class Batches(NamedTuple):
    """Equal trees that grow together, one batch per row."""

    size: np.ndarray  # (rows,) trees in the batch, 0 once it is given up
    reached: np.ndarray  # (rows,) number of GPUs
    reach: np.ndarray  # (rows, gpus) GPUs in the order they were reached
    edges: np.ndarray  # (rows, gpus) the arc that reached each of them; first the root
    depth: np.ndarray  # (rows, gpus), -1 where a GPU is not reached
    short: np.ndarray  # (rows, arcs) int8 marks


class Flow(NamedTuple):
    """A flow into one GPU, supplied by every batch that lacks it.

    Nodes are the GPUs, then batches, and last a source. Arcs are those of the digraph by
    their numbers, then from the source to each other node, then from a batch to every GPU
    that it has reached.
    """

    first: np.ndarray  # lists of residual arcs, as kernels.maxflow has them
    after: np.ndarray
    to: np.ndarray
    residual: np.ndarray
    node: np.ndarray  # (rows,) node of each batch
    supplies: np.ndarray  # (rows,) whether a batch takes part
    state: np.ndarray  # (4,) by the places below


PLACE, TOTAL, NODES, ARCS = 0, 1, 2, 3
"""Of `Flow.state`: where all has arrived, how much, and how many nodes and arcs are in use."""


@njit(cache=True, nogil=True)
def _flow_of(arcs, batches, count):
    """Return the flow before any batch takes part."""
    gpus, m, rows = arcs.gpus, arcs.tail.size, batches.size.size
    source = gpus + rows
    room = 2 * (m + source + rows * gpus)
    flow = Flow(
        np.full(source + 1, -1, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.full(rows, -1, np.int64),
        np.zeros(rows, np.bool_),
        np.array([0, 0, 0, 0]),
    )
    for i in range(m):
        _add(flow, arcs.tail[i], arcs.head[i], arcs.left[i])
    flow.state[ARCS] += source
    for _ in range(gpus):
        _add_node(flow, m)
    for b in range(count):
        _add_batch(arcs, batches, flow, b)
    return flow


@njit(cache=True, nogil=True)
def _add(flow, tail, head, capacity):
    """Add an arc without flow."""
    _join(flow, flow.state[ARCS], tail, head, capacity)
    flow.state[ARCS] += 1


@njit(cache=True, nogil=True)
def _join(flow, i, tail, head, capacity):
    """Add an arc of a given number."""
    join(flow.first, flow.after, flow.to, i, tail, head)
    flow.residual[2 * i], flow.residual[2 * i + 1] = capacity, 0


@njit(cache=True, nogil=True)
def _add_node(flow, m):
    """Add a node, and an arc to it from the source."""
    node = flow.state[NODES]
    flow.state[NODES] += 1
    _join(flow, m + node, flow.first.size - 1, node, 0)
    return node


@njit(cache=True, nogil=True)
def _add_batch(arcs, batches, flow, b):
    """Give a batch a node of its own."""
    flow.node[b] = _add_node(flow, arcs.tail.size)
    for j in range(batches.reached[b]):
        _add(flow, flow.node[b], batches.reach[b, j], batches.size[b])


@njit(cache=True, nogil=True)
def _push(flow, start, end, most):
    return max_flow(flow.first, flow.after, flow.to, flow.residual, start, end, most)


@njit(cache=True, nogil=True)
def _sent_on(arcs, batches, flow, count, y):
    """Send on to y what has arrived elsewhere; return whether all that lack y can supply it."""
    state, m = flow.state, arcs.tail.size
    if state[PLACE] == y and state[TOTAL] > 0:
        return True
    for b in range(count):
        if flow.supplies[b] and batches.depth[b, y] >= 0:
            flow.supplies[b] = False
            state[TOTAL] -= _push(flow, state[PLACE], flow.node[b], batches.size[b])
    _feed(flow, m + state[PLACE], state[TOTAL])
    for b in range(count):
        if not flow.supplies[b] and batches.depth[b, y] < 0:
            flow.supplies[b] = True
            _feed(flow, m + flow.node[b], batches.size[b])
            state[TOTAL] += batches.size[b]
    state[PLACE] = y
    return _push(flow, flow.first.size - 1, y, state[TOTAL]) == state[TOTAL]


@njit(cache=True, nogil=True)
def _feed(flow, i, amount):
    """Let the source give an amount along its arc i."""
    flow.residual[2 * i], flow.residual[2 * i + 1] = amount, 0


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
def _take(arcs, batches, flow, batch, arc):
    """Let a whole batch, whose supply was moved to the arc's tail, take the arc.

    The supply leaves the flow, with the part of the arc that the flow used.
    """
    x, y, size = arcs.tail[arc], arcs.head[arc], batches.size[batch]
    arcs.left[arc] -= size
    along = min(size, flow.residual[2 * arc + 1])
    flow.residual[2 * arc + 1] -= along
    flow.residual[2 * arc] -= size - along
    if along < size:
        _push(flow, y, x, size - along)
    flow.supplies[batch] = False
    flow.state[TOTAL] -= size
    _add(flow, flow.node[batch], y, size)
    place = batches.reached[batch]
    batches.reach[batch, place], batches.edges[batch, place] = y, arc
    batches.depth[batch, y] = batches.depth[batch, x] + 1
    batches.reached[batch] += 1


@njit(cache=True, nogil=True)
def _prune(arcs, batches, flow, count):
    """Forget arcs that no flow needs any more.

    A batch supplies the GPUs it has reached without using up arcs, so all it supplies may
    start where an arc leads to a GPU it lacks.
    """
    source = flow.first.size - 1
    for b in range(count):
        arc = flow.first[flow.node[b]]
        while arc >= 0:
            v = flow.to[arc]
            if v != source and not _leads_on(arcs, batches.depth[b], v):
                flow.residual[arc] = 0
            arc = flow.after[arc]
    for v in range(flow.state[NODES]):
        kept = np.int64(-1)
        arc = flow.first[v]
        while arc >= 0:
            used = flow.residual[arc] > 0 or flow.residual[arc ^ 1] > 0
            if used or flow.to[arc] == source:
                if kept < 0:
                    flow.first[v] = arc
                else:
                    flow.after[kept] = arc
                kept = arc
            arc = flow.after[arc]
        if kept < 0:
            flow.first[v] = -1
        else:
            flow.after[kept] = -1


@njit(cache=True, nogil=True)
def _leads_on(arcs, depth, v):
    """Whether an arc that has something left leads from v to a GPU without a depth."""
    for i in range(arcs.out_first[v], arcs.out_first[v + 1]):
        if arcs.left[arcs.out[i]] > 0 and depth[arcs.head[arcs.out[i]]] < 0:
            return True
    return False


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
    if not _sent_on(arcs, batches, flow, count, y):
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
            moved = _supplied(flow, x, batch, size)
            if moved == size:
                _take(arcs, batches, flow, batch, arc)
                break
            _moved_back(flow, x, batch, moved)
            batches.short[batch, arc] = WHOLE if moved > 0 else REFUSED
    return True


@njit(cache=True, nogil=True)
def _grow(arcs, batches, flow, count, active):
    """Let active batches take whatever they may take whole, the lowest level first."""
    level = 0
    while level <= _deepest(batches, active):
        _prune(arcs, batches, flow, count)
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
        _sent_on(arcs, batches, flow, count, y)
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
    _add_batch(arcs, batches, flow, batch)


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
    first, order = index_by_end(gpus, head)
    arcs = Arcs(gpus, tail, head, capacity.copy(), first, order, *index_by_end(gpus, tail))
    batches = _seeds(gpus, tail.size, roots, trees)
    count = roots.size
    active = np.arange(count)
    flow = _flow_of(arcs, batches, count)
    while _grow(arcs, batches, flow, count, active):
        batch = _first_stuck(batches, count)
        if batch < 0:
            return batches.size[:count], batches.edges[:count]
        arc, amount = _part(arcs, batches, flow, count, batch)
        if arc < 0:
            break
        if count == batches.size.size:
            batches = _grown(batches, 2 * count)
            flow = _flow_of(arcs, batches, count)
            _sent_on(arcs, batches, flow, count, head[arc])
        _supplied(flow, tail[arc], batch, amount)
        active = np.array([batch])
        if amount < batches.size[batch]:
            _split(arcs, batches, flow, batch, count, amount)
            active = np.array([batch, count])
            count += 1
        _take(arcs, batches, flow, batch, arc)
    for b in range(count):
        if batches.reached[b] < gpus:
            batches.size[b] = 0
    return batches.size[:count], batches.edges[:count]
