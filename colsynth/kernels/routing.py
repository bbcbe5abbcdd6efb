"""Trees for chunks that not everybody wants, so that no link carries much more than others.

Each chunk gets a tree from its holders to the GPUs that want it, grown path by path
(Takahashi and Matsuyama 1980): Dijkstra from the tree to the nearest GPU not yet reached.
A link's price rises with its load, so that routes avoid what is full; after a first pass
every chunk is taken out and routed again at the prices the others leave (Frank-Wolfe in
spirit, with whole chunks), pass after pass while the largest load falls.

Loads and prices are int64: a link's load is the sum of its occupied times; its price is
its own time times 1 + (load / reference)^4 * `STEEP`, in fixed point. Distances from one
source are used for up to `share` chunks that follow each other before they are computed
afresh. Time O(passes * chunks / share * hops log GPUs). Twin: tests/reference/matching.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

STEEP = 64
"""How many times its own time a link costs beyond that, when it is the fullest."""

_FAR = 2**62


class HopTable(NamedTuple):
    """Hops by source, with the links they load; constant.

    Parameters
    ----------
    out_first, out : int64 (N + 1,), int32 (H,)
    target : int32 (H,)
    first, links : int64 (H + 1,), int32 (L,)
    weight : int64 (L,)
        Time that a transfer takes each link, at most 2**20, scaled.
    """

    out_first: np.ndarray
    out: np.ndarray
    target: np.ndarray
    first: np.ndarray
    links: np.ndarray
    weight: np.ndarray


class Search(NamedTuple):
    """Working memory of Dijkstra's algorithm.

    Parameters
    ----------
    price : int64 (H,)
    distance : int64 (N,)
    via : int32 (N,)
        Hop that reaches each GPU, -1 for the start.
    heap, place : int32 (N,), int32 (N,)
        Binary heap of GPUs by distance, and where each GPU is in it: -1 never, -2 done.
    """

    price: np.ndarray
    distance: np.ndarray
    via: np.ndarray
    heap: np.ndarray
    place: np.ndarray


@njit(cache=True, nogil=True)
def set_prices(table, load, reference, search):
    """Compute the price of every hop from the loads of its links."""
    for h in range(table.target.size):
        total = np.int64(0)
        for i in range(table.first[h], table.first[h + 1]):
            full = min(load[table.links[i]] * 1024 // reference, 2048)
            square = full * full >> 10
            total += table.weight[i] * (1024 + STEEP * (square * square >> 10))
        search.price[h] = total


@njit(cache=True, nogil=True)
def _sift_up(search, node):
    heap, place, distance = search.heap, search.place, search.distance
    i = place[node]
    while i > 0:
        up = (i - 1) >> 1
        if distance[heap[up]] <= distance[node]:
            break
        heap[i] = heap[up]
        place[heap[i]] = i
        i = up
    heap[i] = node
    place[node] = i


@njit(cache=True, nogil=True)
def _sift_down(search, node, size):
    heap, place, distance = search.heap, search.place, search.distance
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and distance[heap[down + 1]] < distance[heap[down]]:
            down += 1
        if distance[node] <= distance[heap[down]]:
            break
        heap[i] = heap[down]
        place[heap[i]] = i
        i = down
    heap[i] = node
    place[node] = i


@njit(cache=True, nogil=True)
def dijkstra(table, search, starts, sought):
    """Compute distances from the GPUs `starts`; return the first of `sought` reached.

    `sought` is bool (N,). The search stops there, and returns -1 where none is reached;
    with none sought it reaches everything.
    """
    search.place[:] = -1
    search.distance[:] = _FAR
    size = 0
    for s in starts:
        search.distance[s] = 0
        search.via[s] = -1
        search.place[s] = size
        search.heap[size] = s
        size += 1
    while size > 0:
        v = search.heap[0]
        search.place[v] = -2
        if sought[v]:
            return v
        size -= 1
        if size > 0:
            _sift_down(search, search.heap[size], size)
        for k in range(table.out_first[v], table.out_first[v + 1]):
            h = table.out[k]
            w = table.target[h]
            far = search.distance[v] + search.price[h]
            if far < search.distance[w]:
                search.distance[w] = far
                search.via[w] = h
                if search.place[w] == -1:
                    search.place[w] = size
                    search.heap[size] = w
                    size += 1
                _sift_up(search, w)
    return -1


@njit(cache=True, nogil=True)
def _load(table, load, hop, sign):
    """Add a transfer on a hop to the loads of its links, or take it away."""
    for i in range(table.first[hop], table.first[hop + 1]):
        load[table.links[i]] += sign * table.weight[i]


@njit(cache=True, nogil=True)
def _path(source, search, node, path):
    """Write the hops that lead to a GPU, last first; return how many."""
    count = 0
    while search.via[node] >= 0:
        path[count] = search.via[node]
        node = source[search.via[node]]
        count += 1
    return count


@njit(cache=True, nogil=True, allocates=True)
def _grow(table, source, search, holders, wanted, edges, begin):
    """Append the tree of one chunk with several targets; return its end."""
    sought = np.zeros(table.out_first.size - 1, np.bool_)
    left = 0
    for v in wanted:
        sought[v] = True
    for v in holders:
        sought[v] = False
    for v in wanted:
        left += sought[v]
    tree = np.empty(sought.size, np.int32)
    tree[: holders.size] = holders
    size, end = holders.size, begin
    path = np.empty(sought.size, np.int32)
    while left > 0:
        v = dijkstra(table, search, tree[:size], sought)
        assert v >= 0, "a GPU that wants a chunk cannot be reached"
        count = _path(source, search, v, path)
        for i in range(count - 1, -1, -1):
            w = table.target[path[i]]
            edges[end] = path[i]
            tree[size] = w
            left -= sought[w]
            sought[w] = False
            end, size = end + 1, size + 1
    return end


@njit(cache=True, nogil=True)
def route_pass(
    table, source, holder_first, holder, wanted_first, wanted, load, reference, share, old, new
):
    """Route every chunk once; return the number of tree edges.

    Parameters
    ----------
    table : HopTable
    source : int32 (H,)
    holder_first, holder, wanted_first, wanted : int64 (C + 1,), int32
        GPUs that hold each chunk, and that want it; all can be reached.
    load : int64 (links,)
        Loads of the trees in `old`; updated to those in `new`.
    reference : int
        The load at which a link is called full.
    share : int
    old, new : (int64 (C + 1,), int32 (room,))
        Hops of each chunk's tree, each after the one that reaches its source.
    """
    old_first, old_edges = old
    new_first, new_edges = new
    gpus = table.out_first.size - 1
    search = Search(
        np.empty(source.size, np.int64),
        np.empty(gpus, np.int64),
        np.empty(gpus, np.int32),
        np.empty(gpus, np.int32),
        np.empty(gpus, np.int32),
    )
    nobody = np.zeros(gpus, np.bool_)
    path = np.empty(gpus, np.int32)
    end, known, uses = 0, -1, 0
    for c in range(holder_first.size - 1):
        for i in range(old_first[c], old_first[c + 1]):
            _load(table, load, old_edges[i], -1)
        new_first[c] = end
        holders = holder[holder_first[c] : holder_first[c + 1]]
        targets = wanted[wanted_first[c] : wanted_first[c + 1]]
        if holders.size == 1 and targets.size == 1:
            if known != holders[0] or uses == share:
                set_prices(table, load, reference, search)
                dijkstra(table, search, holders, nobody)
                known, uses = holders[0], 0
            uses += 1
            count = _path(source, search, targets[0], path)
            for i in range(count):
                new_edges[end + i] = path[count - 1 - i]
            stop = end + count
        else:
            set_prices(table, load, reference, search)
            known = -1
            stop = _grow(table, source, search, holders, targets, new_edges, end)
        for i in range(end, stop):
            _load(table, load, new_edges[i], 1)
        end = stop
    new_first[holder_first.size - 1] = end
    return end
