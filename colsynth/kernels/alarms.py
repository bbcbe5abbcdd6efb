"""Events of threadblocks, one at most for each: a binary heap by (time, number).

`heap` (B,) holds threadblocks, ``where[b]`` the place of one in it, -1 for none, ``key[b]`` the
time of its event, ``sizes[0]`` how many there are. Each call takes O(log B).
"""

from __future__ import annotations

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def _swap(heap, where, i, j):
    a, b = heap[i], heap[j]
    heap[i], heap[j] = b, a
    where[a], where[b] = j, i


@njit(cache=True, nogil=True)
def _above(heap, key, i, j):
    a, b = heap[i], heap[j]
    return key[a] < key[b] or (key[a] == key[b] and a < b)


@njit(cache=True, nogil=True)
def _sink(heap, where, key, size, i):
    while True:
        down = 2 * i + 1
        if down >= size:
            return
        if down + 1 < size and _above(heap, key, down + 1, down):
            down += 1
        if not _above(heap, key, down, i):
            return
        _swap(heap, where, i, down)
        i = down


@njit(cache=True, nogil=True)
def schedule(heap, where, key, sizes, b, time):
    """Give threadblock b its event, or move it."""
    key[b] = time
    i = where[b]
    if i < 0:
        i = sizes[0]
        heap[i], where[b] = b, i
        sizes[0] = i + 1
    while i > 0 and _above(heap, key, i, (i - 1) >> 1):
        _swap(heap, where, i, (i - 1) >> 1)
        i = (i - 1) >> 1
    _sink(heap, where, key, sizes[0], i)


@njit(cache=True, nogil=True)
def take_first(heap, where, key, sizes):
    """Remove the first event; return the threadblock whose it is."""
    b = heap[0]
    size = sizes[0] - 1
    _swap(heap, where, 0, size)
    where[b] = -1
    sizes[0] = size
    _sink(heap, where, key, size, 0)
    return b
