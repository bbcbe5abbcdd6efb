"""Whether two transfers ever occupy one link.

Lane j of link l (``first[l] <= j < first[l + 1]``) is a place of that link in a hop,
occupied from `begin[j]` to `end[j]` after the start of each of the hop's transfers.
Transfers of a hop are runs that follow each other by its stride, which is at least as
long as any of its links is occupied: a run never meets itself. So a link's runs are
sorted by their first moment, and only runs that lie over each other are taken apart into
transfers, which are sorted in turn.

Time O(R log R) per link with R runs, O(M log M) where all of its M transfers lie in runs
over each other; memory of one link at a time. Twin: tests/reference/timed.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from colsynth.kernels.compiled import njit

NEVER = 2**63 - 1


class Lanes(NamedTuple):
    """Links, the hops over them, and their runs; int64 arrays."""

    first: np.ndarray  # (links + 1,) lanes by link
    hop: np.ndarray  # (lanes,)
    begin: np.ndarray  # (lanes,)
    end: np.ndarray  # (lanes,)
    stride: np.ndarray  # (H,)
    run_first: np.ndarray  # (H + 1,)
    run_start: np.ndarray  # (R,)
    run_length: np.ndarray  # (R,)
    run_place: np.ndarray  # (R,) number of each run's first transfer


@njit(cache=True, nogil=True, allocates=True)
def _meet(lanes, runs, of):
    """Return (moment, transfer, other) of the first meeting among runs of lanes `of`."""
    count = 0
    for r in runs:
        count += lanes.run_length[r]
    begin = np.empty(count, np.int64)
    end = np.empty(count, np.int64)
    number = np.empty(count, np.int64)
    n = 0
    for i in range(runs.size):
        r, j = runs[i], of[i]
        for k in range(lanes.run_length[r]):
            start = lanes.run_start[r] + k * lanes.stride[lanes.hop[j]]
            begin[n] = start + lanes.begin[j]
            end[n] = start + lanes.end[j]
            number[n] = lanes.run_place[r] + k
            n += 1
    order = np.argsort(begin, kind="mergesort")
    last = order[0]
    for i in order[1:]:
        if begin[i] < end[last]:
            return begin[i], number[last], number[i]
        last = i
    return NEVER, np.int64(-1), np.int64(-1)


@njit(cache=True, nogil=True, allocates=True)
def _first_meeting(lanes, link):
    """Return (moment, transfer, other) of the first meeting on a link."""
    count = 0
    for j in range(lanes.first[link], lanes.first[link + 1]):
        count += lanes.run_first[lanes.hop[j] + 1] - lanes.run_first[lanes.hop[j]]
    runs = np.empty(count, np.int64)
    of = np.empty(count, np.int64)
    begin = np.empty(count, np.int64)
    end = np.empty(count, np.int64)
    n = 0
    for j in range(lanes.first[link], lanes.first[link + 1]):
        h = lanes.hop[j]
        for r in range(lanes.run_first[h], lanes.run_first[h + 1]):
            runs[n], of[n] = r, j
            begin[n] = lanes.run_start[r] + lanes.begin[j]
            latest = lanes.run_start[r] + (lanes.run_length[r] - 1) * lanes.stride[h]
            end[n] = latest + lanes.end[j]
            n += 1
    order = np.argsort(begin, kind="mergesort")
    at = 0
    while at < count:
        reach = end[order[at]]
        upto = at + 1
        while upto < count and begin[order[upto]] < reach:
            reach = max(reach, end[order[upto]])
            upto += 1
        if upto - at > 1:
            found = _meet(lanes, runs[order[at:upto]], of[order[at:upto]])
            if found[0] != NEVER:
                return found
        at = upto
    return NEVER, np.int64(-1), np.int64(-1)


@njit(cache=True, nogil=True, parallel=True)
def first_meetings(lanes):
    """Return int64 (links, 3): moment, transfer and other of each link's first meeting.

    The moment is `NEVER` for a link whose transfers keep apart.
    """
    links = lanes.first.size - 1
    found = np.empty((links, 3), np.int64)
    for link in prange(links):
        found[link, 0], found[link, 1], found[link, 2] = _first_meeting(lanes, link)
    return found
