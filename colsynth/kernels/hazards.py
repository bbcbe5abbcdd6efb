"""Which operations must wait for which, from the memory they touch.

Operations stand in one global order. Two of them conflict when both touch a cell of memory
and one of them writes it; the later one then waits for the earlier one, unless something else
that it waits for comes after the earlier one already.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def conflicts(read_first, read, write_first, write, cells):
    """Return the earlier operations that each one conflicts with, as (first, other).

    Of each operation they are ``other[first[n]:first[n + 1]]``, ascending. Only the last
    writer of a cell and the readers since count: what came before is ordered already.

    Parameters
    ----------
    read_first, read : int64 (N + 1,), int64 (R,)
        Cells that each operation reads.
    write_first, write : int64 (N + 1,), int64 (W,)
        Cells that each operation writes.
    cells : int
    """
    count = read_first.size - 1
    writer = np.full(cells, -1)
    reader = np.full(cells, -1)  # the latest access that reads a cell, by place in `read`
    before = np.empty(read.size, np.int64)  # the access that read the cell before this one
    owner = np.empty(read.size, np.int64)
    seen = np.full(count, -1)
    first = np.zeros(count + 1, np.int64)
    other = np.empty(2 * read.size + write.size, np.int64)
    used = 0
    for n in range(count):
        seen[n] = n
        for i in range(read_first[n], read_first[n + 1]):
            cell = read[i]
            before[i], owner[i], reader[cell] = reader[cell], n, i
            if writer[cell] >= 0 and seen[writer[cell]] != n:
                seen[writer[cell]] = n
                other[used] = writer[cell]
                used += 1
        for i in range(write_first[n], write_first[n + 1]):
            cell = write[i]
            access = reader[cell]
            while access >= 0:
                if seen[owner[access]] != n:
                    seen[owner[access]] = n
                    other[used] = owner[access]
                    used += 1
                access = before[access]
            reader[cell] = -1
            if writer[cell] >= 0 and seen[writer[cell]] != n:
                seen[writer[cell]] = n
                other[used] = writer[cell]
                used += 1
            writer[cell] = n
        first[n + 1] = used
        _sort(other, first[n], used)
    return first, other[:used]


@njit(cache=True, nogil=True)
def _sort(values, begin, end):
    """Sort values in place: Shell's method with Knuth's gaps, O(n^1.5).

    numba takes half a second to compile numpy's.
    """
    gap = 1
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value, j = values[i], i
            while j - gap >= begin and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit(cache=True, nogil=True)
def direct(first, other, receives, home):
    """Return which conflicts need a wait, because nothing else implies them, bool (E,).

    Implied is what comes before the message that an operation receives, which is sent by the
    operation right before it in the global order, and what comes before others it waits for.
    Causes are followed only through operations of the same home.

    Parameters
    ----------
    first, other : int64 (N + 1,), int64 (E,)
        As `conflicts` returns them.
    receives : bool (N,)
    home : int64 (N,)
    """
    count = receives.size
    kept = np.zeros(other.size, np.bool_)
    mark = np.full(count, -1)
    stack = np.empty(count, np.int64)
    for n in range(count):
        begin, end = first[n], first[n + 1]
        if begin == end:
            continue
        least = other[begin]
        if receives[n]:
            _mark(n - 1, n, least, first, other, receives, home, kept, mark, stack)
        for i in range(end - 1, begin - 1, -1):
            if mark[other[i]] != n:
                kept[i] = True
                if i > begin:
                    _mark(other[i], n, least, first, other, receives, home, kept, mark, stack)
    return kept


@njit(cache=True, nogil=True)
def _mark(origin, n, least, first, other, receives, home, kept, mark, stack):
    """Mark an operation and what comes before it, back to the least that matters, with `n`."""
    if origin < least or mark[origin] == n:
        return
    mark[origin] = n
    stack[0], size = origin, 1
    while size:
        size -= 1
        op = stack[size]
        if home[op] != home[n]:
            continue
        if receives[op] and op - 1 >= least and mark[op - 1] != n:
            mark[op - 1] = n
            stack[size] = op - 1
            size += 1
        for i in range(first[op], first[op + 1]):
            cause = other[i]
            if kept[i] and cause >= least and mark[cause] != n:
                mark[cause] = n
                stack[size] = cause
                size += 1


@njit(cache=True, nogil=True)
def components(first, other, joins):
    """Return a number for every transfer, the same for those joined by prerequisites.

    Parameters
    ----------
    first, other : int64 (T + 1,), int64 (E,)
        Prerequisites of each transfer.
    joins : bool (T,)
        Whether a transfer is joined to those it is a prerequisite of.
    """
    count = joins.size
    parent = np.arange(count)
    for t in range(count):
        for i in range(first[t], first[t + 1]):
            if joins[other[i]]:
                parent[_root(parent, t)] = _root(parent, other[i])
    for t in range(count):
        parent[t] = _root(parent, t)
    return parent


@njit(cache=True, nogil=True)
def _root(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x
