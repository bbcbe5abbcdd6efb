"""Long sequences of chunks, hop by hop: put in order, turned around.

Sequences lie one after the other; sequence h is ``[first[h], first[h + 1])``. All of it
is memory traffic, linear in the number of chunks, and shared by all cores.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True, parallel=True)
def reverse_sequences(chunk, first, now, new_first):
    """Return sequences with sequence h taken, backwards, from sequence ``now[h]``.

    Parameters
    ----------
    chunk : unsigned (M,)
    first, now, new_first : int64 (H + 1,), int64 (H,), int64 (H + 1,)
    """
    turned = np.empty_like(chunk)
    for h in prange(now.size):
        begin, end = first[now[h]], first[now[h] + 1]
        for i in range(end - begin):
            turned[new_first[h] + i] = chunk[end - 1 - i]
    return turned


@njit(cache=True, nogil=True, parallel=True)
def sort_by_port(log, port, start, first_hop, first):
    """Bring the log of every GPU into order by port, within a port by time, in place.

    Parameters
    ----------
    log, port : unsigned (M,)
    start, first_hop : int64 (N + 1,)
        Where each GPU's log begins, and its hops.
    first : int64 (H + 1,)
        Where the sequence of each hop begins in the ordered log.
    """
    for v in prange(start.size - 1):
        begin, end = start[v], start[v + 1]
        old = log[begin:end].copy()
        place = first[first_hop[v] : first_hop[v + 1]].copy()
        for i in range(end - begin):
            p = port[begin + i]
            log[place[p]] = old[i]
            place[p] += 1


@njit(cache=True, nogil=True)
def find_runs(
    turn,
    rounds,
    start,
    seen,
    port,
    sent,
    first_hop,
    last,
    count,
    run_hop,
    run_round,
    run_place,
    runs,
):
    """Note where hops resume after a pause; return the number of runs so far.

    Parameters
    ----------
    turn, rounds : int
        First of these rounds, and how many.
    start, seen : int64 (N,)
        Where each GPU's log begins, and how many of its entries were looked at; updated.
    port, sent : unsigned (M,), int32 (N, rounds)
    first_hop : int64 (N + 1,)
    last, count : int64 (H,)
        Last round each hop sent in (-2 for none) and how often it sent; updated.
    run_hop, run_round, run_place : int64 (R,)
        Hop, round and place in the hop's sequence of the first chunk of every run.
        With room for one run per transfer of these rounds.
    runs : int
        Runs so far.
    """
    for v in range(seen.size):
        i = start[v] + seen[v]
        for r in range(rounds):
            for _ in range(sent[v, r]):
                h = first_hop[v] + port[i]
                if last[h] != turn + r - 1:
                    run_hop[runs], run_round[runs], run_place[runs] = h, turn + r, count[h]
                    runs += 1
                last[h] = turn + r
                count[h] += 1
                i += 1
        seen[v] = i - start[v]
    return runs
