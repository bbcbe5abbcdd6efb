"""Which of two steps is surely complete before the other acts: vector clocks, group by group.

Order comes from the order of execution within a threadblock, from causes (steps whose flags
a step waits for) and from matches (the step whose message it takes). The clock of a step
holds, per threadblock, how many of its steps are complete before the step acts (Fidge,
Mattern). Clocks change only where a threadblock learns something, and are shared between.

Clocks of all steps for all threadblocks are the cube of the ranks. Steps that belong
together are few, so each group is followed by itself: what is known within a group is true,
what is not may still follow from others. A group costs its joins times the threadblocks
whose steps are asked for.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def _find(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@njit(cache=True, nogil=True)
def together(steps, one, other):
    """Return a number for each of some steps, the same for those that pairs join, int64 (U,).

    Parameters
    ----------
    steps : int
    one, other : int64 (E,), int64 (E,)
        Pairs of steps.
    """
    parent = np.arange(steps)
    for e in range(one.size):
        parent[_find(parent, one[e])] = _find(parent, other[e])
    for u in range(steps):
        parent[u] = _find(parent, u)
    return parent


@njit(cache=True, nogil=True)
def _fill(steps, block, ordinal, weak, cause_first, cause, match, column, low, current, row, rows):
    """Compute the clocks of some steps for the columns from `low` on; row 0 knows nothing."""
    width = rows.shape[1]
    used = 0
    for u in steps:
        mine = current[block[u]]
        begin, end = cause_first[u], cause_first[u + 1]
        if begin < end or match[u] >= 0:
            used += 1
            clock = rows[used]
            for j in range(width):
                clock[j] = rows[mine, j]
            for i in range(begin, end + 1):
                other = match[u] if i == end else cause[i]
                if other < 0:
                    continue
                if row[other] > 0:
                    told = rows[row[other]]
                    for j in range(width):
                        clock[j] = max(clock[j], told[j])
                j = column[block[other]] - low
                if 0 <= j < width:
                    said = ordinal[other] + (0 if weak[other] and i < end else 1)
                    clock[j] = max(clock[j], said)
            current[block[u]] = mine = used
        row[u] = mine


@njit(cache=True, nogil=True)
def known_before(
    first, steps, pair_first, earlier, later,
    block, ordinal, weak, cause_first, cause, match, blocks, most, like,
):  # fmt: skip
    """Return, per pair, whether `earlier` is known to be complete before `later` acts.

    Parameters
    ----------
    first, steps : int64 (G + 1,), int64
        The steps of each group, in an order in which each comes after those it needs.
    pair_first, earlier, later : int64 (G + 1,), int64 (P,), int64 (P,)
        Pairs of steps by the group of `later`.
    block, ordinal : int64 (U,), int64 (U,)
        Threadblock of each step, and its place there.
    weak : bool (U,)
        Steps whose flag says nothing of themselves, only of those before them.
    cause_first, cause, match : int64 (U + 1,), int64, int64 (U,)
        Steps whose flags each step waits for, and the one whose message it takes; -1 is none.
    blocks : int
        Threadblocks.
    most : int
        Numbers held at a time; clocks of more threadblocks are computed in several rounds.
    like : int16 (0,) or int32 (0,)
        An array of the type that the clocks take; it holds every place and one more.
    """
    known = np.zeros(earlier.size, np.bool_)
    column, asked = np.full(blocks, -1, np.int64), np.empty(blocks, np.int64)
    current, row = np.zeros(blocks, np.int64), np.zeros(block.size, np.int64)
    for g in range(first.size - 1):
        low, high = pair_first[g], pair_first[g + 1]
        mine = steps[first[g] : first[g + 1]]
        columns = 0
        for p in range(low, high):
            if column[block[earlier[p]]] < 0:
                column[block[earlier[p]]] = columns
                asked[columns] = block[earlier[p]]
                columns += 1
        joins = 1
        for u in mine:
            joins += cause_first[u] < cause_first[u + 1] or match[u] >= 0
        width = max(1, most // joins)
        for left in range(0, columns, width):
            rows = np.zeros((joins, min(width, columns - left)), like.dtype)
            _fill(
                mine, block, ordinal, weak, cause_first, cause, match,
                column, left, current, row, rows,
            )  # fmt: skip
            for p in range(low, high):
                j = column[block[earlier[p]]] - left
                if 0 <= j < rows.shape[1]:
                    known[p] = rows[row[later[p]], j] > ordinal[earlier[p]]
            for u in mine:
                row[u], current[block[u]] = 0, 0
        column[asked[:columns]] = -1
    return known
