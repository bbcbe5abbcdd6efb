"""The flow that `packing` keeps: who supplies a GPU that not all batches of trees have reached.

GPUs are served in turn, and what has arrived at one of them is sent on to the next; a batch
that asks for an arc into y moves its own supply within the flow. Both mostly take a few
short paths. A flow from nothing for every GPU and level takes longer paths the farther away
its roots are, which on a ring is nearly all the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import join, max_flow


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
    short: np.ndarray  # (rows, arcs) int8, marks of `packing`


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


@njit(cache=True, nogil=True, allocates=True)
def flow_of(arcs, batches, count):
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
        np.zeros(4, np.int64),
    )
    for i in range(m):
        _add(flow, arcs.tail[i], arcs.head[i], arcs.left[i])
    flow.state[ARCS] += source
    for _ in range(gpus):
        _add_node(flow, m)
    for b in range(count):
        add_batch(arcs, batches, flow, b)
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
def add_batch(arcs, batches, flow, b):
    """Give a batch a node of its own."""
    flow.node[b] = _add_node(flow, arcs.tail.size)
    for j in range(batches.reached[b]):
        _add(flow, flow.node[b], batches.reach[b, j], batches.size[b])


@njit(cache=True, nogil=True)
def _push(flow, start, end, most):
    return max_flow(flow.first, flow.after, flow.to, flow.residual, start, end, most)


@njit(cache=True, nogil=True)
def sent_on(arcs, batches, flow, count, y):
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
def supplied(flow, x, batch, want):
    """Move up to `want` of a batch's supply to the GPU x; return how much moved."""
    return _push(flow, x, flow.node[batch], want)


@njit(cache=True, nogil=True)
def moved_back(flow, x, batch, amount):
    """Undo `supplied`."""
    if amount > 0:
        _push(flow, flow.node[batch], x, amount)


@njit(cache=True, nogil=True)
def take(arcs, batches, flow, batch, arc):
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
def prune(arcs, batches, flow, count):
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
