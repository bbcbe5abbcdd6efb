"""Matching on any network: shared links, unequal times, switches; event by event.

Every GPU of a group wants every chunk of it. As in `rounds`, each GPU keeps a log of the
chunks it holds in order of arrival and each hop cursors into its sender's log; a hop that
can start is offered the first chunk that its target lacks (see `events` for who chooses
when). Regions are sets of GPUs that every chunk should enter once: a hop into a region
first looks for a chunk new to all of it, each level with a cursor of its own.

Time O(transfers * (log events + hops per GPU) + hops * chunks).
Method: TACOS (arXiv 2304.05301), with switches. Twin: tests/reference/ten.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from colsynth.kernels.events import (
    EVENTS,
    NOW,
    SENT,
    in_turn,
    pop,
    ready,
    send,
    touch,
    touch_leaving,
    touch_users,
)

OLDEST, RAREST, EARLIEST = 0, 1, 2
"""Policies: which of the chunks that a hop may send it sends."""

_AHEAD = 16
"""Chunks that the policy `EARLIEST` looks at before a hop is left waiting."""


class Levels(NamedTuple):
    """Who wants what; constant.

    Parameters
    ----------
    first, row : int64 (H + 1,), int32
        Rows of `Logs.has` that a hop looks at in turn: regions it leads into, widest
        first, then its target.
    member_first, member : int64 (N + 1,), int32
        Rows of `Logs.has` that a GPU counts for: itself, and the regions around it.
    born_gpu, born : int32
        GPU and number of each chunk that is there from the beginning.
    """

    first: np.ndarray
    row: np.ndarray
    member_first: np.ndarray
    member: np.ndarray
    born_gpu: np.ndarray
    born: np.ndarray


class Logs(NamedTuple):
    """Who holds what; rows are GPUs first, then regions.

    Parameters
    ----------
    has : uint64 (rows, words)
        Bits of the chunks that are held, on their way, or not wanted.
    holders : int32 (chunks,)
        GPUs that hold or are being sent each chunk.
    log, held, first : int32, int64 (N,), int64 (N + 1,)
        Logs, their lengths, and where each begins.
    cursor : int32
        Per hop and level, aligned with `Levels.row`.
    asleep : bool (H,)
        Hops that `EARLIEST` left waiting.
    """

    has: np.ndarray
    holders: np.ndarray
    log: np.ndarray
    held: np.ndarray
    first: np.ndarray
    cursor: np.ndarray
    asleep: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def _lacks(row, chunk):
    return (row[chunk >> 6] >> np.uint64(chunk & 63)) & np.uint64(1) == 0


@njit(cache=True, nogil=True)
def hold(levels, logs, v, chunk):
    """Note that a GPU, and the regions around it, hold or will hold a chunk."""
    for i in range(levels.member_first[v], levels.member_first[v + 1]):
        logs.has[levels.member[i], chunk >> 6] |= np.uint64(1) << np.uint64(chunk & 63)
    logs.holders[chunk] += 1


@njit(cache=True, nogil=True)
def hold_born(levels, logs):
    """Note who holds what at the beginning."""
    for i in range(levels.born.size):
        hold(levels, logs, levels.born_gpu[i], levels.born[i])


@njit(cache=True, nogil=True)
def _is_late(fabric, agenda, logs, h, chunk, now):
    """Whether another holder of the chunk could bring it to the target sooner."""
    v = fabric.target[h]
    most = fabric.end[fabric.first[h + 1] - 1]
    for g in range(fabric.into[v], fabric.into[v + 1]):
        last = fabric.end[fabric.first[g + 1] - 1]
        if (
            last < most
            and not _lacks(logs.has[fabric.source[g]], chunk)
            and ready(fabric, agenda, g, now) + last < now + most
        ):
            return True
    return False


@njit(cache=True, nogil=True)
def _first_new(fabric, levels, logs, h, level):
    """Advance a cursor to the first chunk that its row lacks; return its place or -1."""
    u = fabric.source[h]
    row = logs.has[levels.row[level]]
    base, held = logs.first[u], logs.held[u]
    i = logs.cursor[level]
    while i < held and not _lacks(row, logs.log[base + i]):
        i += 1
    logs.cursor[level] = i
    return i if i < held else -1


@njit(cache=True, nogil=True)
def _rarest(logs, row, begin, end):
    """Return the lacking chunk with the fewest holders, the first of equals."""
    best = -1
    for k in range(begin, end):
        chunk = logs.log[k]
        if _lacks(row, chunk) and (best < 0 or logs.holders[chunk] < logs.holders[best]):
            best = chunk
    return best


@njit(cache=True, nogil=True)
def _in_time(fabric, agenda, logs, h, row, begin, end, now):
    """Return the first lacking chunk that nobody brings sooner; else put the hop to sleep."""
    looked = 0
    for k in range(begin, end):
        chunk = logs.log[k]
        if _lacks(row, chunk):
            if not _is_late(fabric, agenda, logs, h, chunk, now):
                return chunk
            looked += 1
            if looked == _AHEAD:
                break
    logs.asleep[h] = True
    return -1


@njit(cache=True, nogil=True)
def _choose(fabric, agenda, levels, logs, h, level, policy, now):
    """Return the chunk that a hop sends at one level, -1 for none."""
    i = _first_new(fabric, levels, logs, h, level)
    if i < 0:
        return np.int32(-1)
    u = fabric.source[h]
    base = logs.first[u]
    if policy == OLDEST:
        return logs.log[base + i]
    row, end = logs.has[levels.row[level]], base + logs.held[u]
    if policy == RAREST:
        return _rarest(logs, row, base + i, end)
    return _in_time(fabric, agenda, logs, h, row, base + i, end, now)


@njit(cache=True, nogil=True)
def _offer(fabric, agenda, levels, logs, h, widest, policy, now):
    """Let a hop send if it can; with `widest`, only what is new to a region."""
    begin, end = levels.first[h], levels.first[h + 1]
    if widest and end - begin == 1:
        return
    if ready(fabric, agenda, h, now) > now:
        return
    for level in range(begin, begin + 1 if widest else end):
        chunk = _choose(fabric, agenda, levels, logs, h, level, policy, now)
        if chunk >= 0:
            hold(levels, logs, fabric.target[h], chunk)
            send(fabric, agenda, h, chunk, now)
            return


@njit(cache=True, nogil=True)
def _arrive(fabric, agenda, levels, logs, what, count):
    """Put a chunk into its GPU's log; return the number of hops in the queue."""
    room = agenda.start.size
    if what < room:
        h = agenda.hop[what]
        count = touch(agenda, h, count)
        v, chunk = fabric.target[h], agenda.chunk[what]
    else:
        v, chunk = levels.born_gpu[what - room], levels.born[what - room]
    logs.log[logs.first[v] + logs.held[v]] = chunk
    logs.held[v] += 1
    return touch_leaving(fabric, agenda, v, count)


@njit(cache=True, nogil=True)
def _collect(fabric, agenda, levels, logs, policy):
    """Take all events of the next moment; return the number of hops in the queue."""
    now = agenda.heap_time[0]
    agenda.scalars[NOW] = now
    count = 0
    while agenda.scalars[EVENTS] > 0 and agenda.heap_time[0] == now:
        what = pop(agenda)
        if what < 0:
            count = touch_users(fabric, agenda, -1 - what, count)
        else:
            count = _arrive(fabric, agenda, levels, logs, what, count)
    if policy == EARLIEST:
        for h in range(logs.asleep.size):
            if logs.asleep[h]:
                logs.asleep[h] = False
                count = touch(agenda, h, count)
    return count


@njit(cache=True, nogil=True)
def match(fabric, agenda, levels, logs, policy, most):
    """Match until no event is left or `most` more transfers have been started.

    Parameters
    ----------
    fabric, levels : Fabric, Levels
    agenda, logs : Agenda, Logs
        Updated.
    policy : int
        `OLDEST`, `RAREST` or `EARLIEST`.
    most : int
    """
    limit = agenda.scalars[SENT] + most
    regions = levels.row.size > fabric.source.size
    while agenda.scalars[EVENTS] > 0 and agenda.scalars[SENT] < limit:
        count = _collect(fabric, agenda, levels, logs, policy)
        now = agenda.scalars[NOW]
        order = in_turn(fabric, agenda, count)
        if regions:
            for h in order:
                _offer(fabric, agenda, levels, logs, h, True, policy, now)
        for h in order:
            _offer(fabric, agenda, levels, logs, h, False, policy, now)
