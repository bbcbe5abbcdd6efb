"""Rounds of transfers, as few as the longest chain allows, and links loaded evenly in them."""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True, allocates=True)
def _windows(begins, other, apart):
    """Return the earliest and the latest round of every transfer, int64 (T,) each."""
    n = begins.size - 1
    first = np.zeros(n, np.int64)
    for t in range(n):
        for k in range(begins[t], begins[t + 1]):
            first[t] = max(first[t], first[other[k]] + apart[k])
    last = np.full(n, first.max() if n else 0)
    for t in range(n - 1, -1, -1):
        for k in range(begins[t], begins[t + 1]):
            last[other[k]] = min(last[other[k]], last[t] - apart[k])
    return first, last


@njit(cache=True, nogil=True)
def least_loaded(begins, other, apart, pair, count, wire_begins, link, time, links):
    """Return the round of every transfer, int64 (T,).

    Each takes, of the rounds that its chain leaves open, that in which the busiest link gains
    least; of equals, that in which its own links carry least, then the earliest.

    Parameters
    ----------
    begins, other, apart : int64 (T + 1,), int64, int64
        For each transfer, earlier ones and the least distance from them in rounds.
    pair, count : int64 (T,), int64 (T,)
        The pair of ranks of each transfer, -1 for one that stays on its rank; its chunks.
    wire_begins, link, time : int64 (P + 1,), int64, int64
        The links of each pair, and what a chunk takes on them, in any unit.
    links : int
        More than any link's number.

    Notes
    -----
    Time O(prerequisites + rounds that are open * links of a pair).
    """
    first, last = _windows(begins, other, apart)
    rounds = 1 + (first.max() if first.size else 0)
    load, busiest = np.zeros((rounds, links), np.int64), np.zeros(rounds, np.int64)
    taken = np.zeros(first.size, np.int64)
    for t in range(first.size):
        place = np.int64(0)
        for k in range(begins[t], begins[t + 1]):
            place = max(place, taken[other[k]] + apart[k])
        if pair[t] >= 0:
            mine = range(wire_begins[pair[t]], wire_begins[pair[t] + 1])
            best, least, lowest = np.int64(place), np.int64(0), np.int64(0)
            for row in range(place, last[t] + 1):
                after = np.int64(0)
                for j in mine:
                    after = max(after, load[row, link[j]] + count[t] * time[j])
                growth = max(after - busiest[row], 0)
                if row == place or growth < least or (growth == least and after < lowest):
                    best, least, lowest = np.int64(row), growth, after
            place = best
            for j in mine:
                load[place, link[j]] += count[t] * time[j]
            busiest[place] = max(busiest[place], lowest)
        taken[t] = place
    return taken
