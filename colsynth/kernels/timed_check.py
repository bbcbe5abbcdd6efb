"""What every GPU holds when, replayed from a timed schedule, a block of chunks at a time.

A `Flow` is one phase: its hops grouped by target, their transfers as runs that follow
each other by the hop's stride. For the chunks lo <= c < hi, `table[v, c - lo]` says when
GPU v has chunk c. Each pass reads all transfers once and touches one row per hop, so a
block of rows stays in cache; transfers are never expanded into arrays of starts.

- Copies: `receive_copies` enters arrivals, `send_copies` looks senders up, `missing_copy`
  looks for chunks that did not come. An empty place holds the greatest integer.
- Sums: `receive_sums` enters the last arrival, `send_sums` marks what was sent on,
  `unsent_sums` looks for what stayed behind. An empty place is -1, a sent one -2.

Rows are written by one thread each, so results do not depend on the number of threads.
Faults are rows (start, transfer, kind), one per GPU, the earliest of each. Time
O(transfers * blocks + GPUs * chunks). Twin: tests/reference/timed.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from colsynth.kernels.compiled import njit

AGAIN, ABSENT = 1, 2
"""Faults of copies: received though held, sent before held."""

OWNED, TWICE, NOTHING, EARLY = 3, 4, 5, 6
"""Faults of sums: sent by the final GPU, a second time, without data, before all came."""

EMPTY, SENT = -1, -2
"""Places of the table of sums that hold no time."""


class Flow(NamedTuple):
    """Transfers of one phase; int64 arrays but for `chunk`."""

    source: np.ndarray  # (H,)
    target_first: np.ndarray  # (N + 1,) hops by target
    by_source: np.ndarray  # (H,) hops in order of their source
    source_first: np.ndarray  # (N + 1,) into by_source
    stride: np.ndarray  # (H,)
    duration: np.ndarray  # (H,)
    first: np.ndarray  # (H + 1,) transfers
    chunk: np.ndarray  # (M,) uint16 or uint32
    run_first: np.ndarray  # (H + 1,)
    run_start: np.ndarray  # (R,)
    run_length: np.ndarray  # (R,)


@njit(cache=True, nogil=True)
def _blame(fault, start, transfer, kind):
    """Keep the earliest fault of a GPU."""
    if start < fault[0] or (start == fault[0] and transfer < fault[1]):
        fault[0], fault[1], fault[2] = start, transfer, kind


@njit(cache=True, nogil=True, parallel=True)
def clear(table, empty):
    """Set every place of a table."""
    for v in prange(table.shape[0]):
        table[v, :] = empty


@njit(cache=True, nogil=True)
def place(table, lo, hi, chosen, first, members, ready):
    """Enter chunk c at ``ready[c]`` for all members of the set ``chosen[c]``."""
    c = lo
    while c < hi:
        end = c + 1
        while end < hi and chosen[end] == chosen[c]:
            end += 1
        for i in range(first[chosen[c]], first[chosen[c] + 1]):
            for k in range(c, end):
                table[members[i], k - lo] = ready[k]
        c = end


@njit(cache=True, nogil=True, parallel=True)
def receive_copies(flow, table, lo, hi, empty, fault):
    """Enter arrivals; blame a GPU that receives what it has."""
    for v in prange(table.shape[0]):
        row = table[v]
        for h in range(flow.target_first[v], flow.target_first[v + 1]):
            i = flow.first[h]
            for r in range(flow.run_first[h], flow.run_first[h + 1]):
                for k in range(flow.run_length[r]):
                    c = np.int64(flow.chunk[i])
                    if lo <= c < hi:
                        start = flow.run_start[r] + k * flow.stride[h]
                        if row[c - lo] != empty:
                            _blame(fault[v], start, i, AGAIN)
                        row[c - lo] = min(row[c - lo], start + flow.duration[h])
                    i += 1


@njit(cache=True, nogil=True, parallel=True)
def send_copies(flow, table, lo, hi, fault):
    """Blame the receiver of what its sender does not hold when the transfer starts."""
    for v in prange(table.shape[0]):
        for h in range(flow.target_first[v], flow.target_first[v + 1]):
            row = table[flow.source[h]]
            i = flow.first[h]
            for r in range(flow.run_first[h], flow.run_first[h + 1]):
                for k in range(flow.run_length[r]):
                    c = np.int64(flow.chunk[i])
                    if lo <= c < hi:
                        start = flow.run_start[r] + k * flow.stride[h]
                        if row[c - lo] > start:
                            _blame(fault[v], start, i, ABSENT)
                    i += 1


@njit(cache=True, nogil=True)
def missing_copy(table, lo, hi, empty, chosen, first, members):
    """Return (GPU, chunk) of a chunk that a member of ``chosen[c]`` lacks, or (-1, -1)."""
    c = lo
    while c < hi:
        end = c + 1
        while end < hi and chosen[end] == chosen[c]:
            end += 1
        for i in range(first[chosen[c]], first[chosen[c] + 1]):
            for k in range(c, end):
                if table[members[i], k - lo] == empty:
                    return np.int64(members[i]), np.int64(k)
        c = end
    return np.int64(-1), np.int64(-1)


@njit(cache=True, nogil=True, parallel=True)
def receive_sums(flow, table, lo, hi):
    """Enter the last arrival of every chunk at every GPU."""
    for v in prange(table.shape[0]):
        row = table[v]
        for h in range(flow.target_first[v], flow.target_first[v + 1]):
            i = flow.first[h]
            for r in range(flow.run_first[h], flow.run_first[h + 1]):
                for k in range(flow.run_length[r]):
                    c = np.int64(flow.chunk[i])
                    if lo <= c < hi:
                        end = flow.run_start[r] + k * flow.stride[h] + flow.duration[h]
                        row[c - lo] = max(row[c - lo], end)
                    i += 1


@njit(cache=True, nogil=True)
def _send_sum(row, column, mine, start, transfer, fault):
    """Mark one place of a sender's row as sent, or blame the sender."""
    have = row[column]
    if mine:
        _blame(fault, start, transfer, OWNED)
        return
    if have == SENT:
        _blame(fault, start, transfer, TWICE)
    elif have == EMPTY:
        _blame(fault, start, transfer, NOTHING)
    elif have > start:
        _blame(fault, start, transfer, EARLY)
    row[column] = SENT


@njit(cache=True, nogil=True, parallel=True)
def send_sums(flow, table, lo, hi, final, fault):
    """Mark what GPUs send on; blame a GPU that sends what it must not, or too early."""
    for v in prange(table.shape[0]):
        row = table[v]
        for j in range(flow.source_first[v], flow.source_first[v + 1]):
            h = flow.by_source[j]
            i = flow.first[h]
            for r in range(flow.run_first[h], flow.run_first[h + 1]):
                for k in range(flow.run_length[r]):
                    c = np.int64(flow.chunk[i])
                    if lo <= c < hi:
                        start = flow.run_start[r] + k * flow.stride[h]
                        _send_sum(row, c - lo, final[c] == v, start, i, fault[v])
                    i += 1


@njit(cache=True, nogil=True, parallel=True)
def unsent_sums(table, lo, hi, final, left):
    """Set ``left[v]`` to the first chunk that GPU v had and did not send, where -1 before."""
    for v in prange(table.shape[0]):
        for c in range(lo, hi):
            if table[v, c - lo] >= 0 and final[c] != v and left[v] < 0:
                left[v] = c
