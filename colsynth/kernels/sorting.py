"""Topological order with a choice among what is ready, and pairs for steps in lockstep.

Lists are in CSR form: those of number v are ``first[v]:first[v + 1]`` of the values.
Twins: networkx and plain Python, in tests/lowering/test_sorting.py and test_lockstep.py.
"""

from __future__ import annotations

import heapq

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def sort_ready(first, feeds, missing, place):
    """Return numbers in order, int64 (n,), and how many of these there are; O(m + n log n).

    Parameters
    ----------
    first, feeds : int64 (n + 1,), int64 (m,)
        The numbers that wait for each.
    missing : int64 (n,)
        How many each waits for; used up.
    place : int64 (n,)
        Of several that may come next, the one of least place does, then of least number.
    """
    order = np.empty(place.size, np.int64)
    done = 0
    ready = [(np.int64(0), np.int64(0)) for _ in range(0)]  # empty, of a known type
    for v in range(place.size):
        if missing[v] == 0:
            ready.append((place[v], np.int64(v)))  # noqa: PERF401 - extend is slow in numba
    heapq.heapify(ready)
    while ready:
        _, least = heapq.heappop(ready)
        order[done] = least
        done += 1
        for j in range(first[least], first[least + 1]):
            w = feeds[j]
            missing[w] -= 1
            if missing[w] == 0:
                heapq.heappush(ready, (place[w], w))
    return order, done


@njit(cache=True, nogil=True)
def pair_relays(arrivals, content, first, leaving, latest, slot, sums):
    """Return for each operation the send that may share its step, -1 for none; int64 (ops,).

    Parameters
    ----------
    arrivals : int64 (a,)
        Operations, ascending.
    content : int64 (a,)
        What each brings to which rank, as a number below k.
    first, leaving : int64 (k + 1,), int64 (s,)
        The operations that send each of these on, ascending.
    latest : int64 (ops,)
        The last operation that each waits for, -1 for none.
    slot : int64 (ops,)
        What an arrival writes and a send reads, as a number.
    sums : bool (ops,)
        Whether the transfer of each adds up.
    """
    found = np.full(latest.size, -1, np.int64)
    following = first[:-1].copy()
    for i in range(arrivals.size):
        arrival, key = arrivals[i], content[i]
        while following[key] < first[key + 1] and leaving[following[key]] < arrival:
            following[key] += 1
        if following[key] == first[key + 1]:
            continue
        send = leaving[following[key]]
        copied = sums[send] and not sums[arrival]
        if slot[send] == slot[arrival] and latest[send] <= arrival and not copied:
            found[arrival] = send
            following[key] += 1
    return found
