"""Matching on any network: shared links, unequal times, switches; event by event.

Every GPU of a group wants every chunk of it. As in `rounds`, each GPU keeps a log of the
chunks it holds in order of arrival and each hop cursors into its sender's log; a hop that
can start is offered the first chunk that its target lacks (see `events` for who chooses
when). Regions are sets of GPUs that every chunk should enter once: a hop into a region
first looks for a chunk new to all of it, each level with a cursor of its own.

Time O(transfers * (log events + hops per GPU) + hops * chunks).
Method: TACOS (arXiv 2304.05301), with switches. Twin: tests/reference/matching.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.events import (
    EVENTS,
    NOW,
    SENT,
    in_turn,
    pop,
    ready,
    send,
    touch,
)

OLDEST, RAREST, EARLIEST = 0, 1, 2
"""Policies: which of the chunks that a hop may send it sends."""


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
    missing : int64 (N,)
        Chunks that each GPU wants and is not being sent.
    asleep : bool (H,)
        Hops that `EARLIEST` left waiting.
    """

    has: np.ndarray
    holders: np.ndarray
    log: np.ndarray
    held: np.ndarray
    first: np.ndarray
    cursor: np.ndarray
    missing: np.ndarray
    asleep: np.ndarray


@njit(cache=True, nogil=True)
def hold(levels, logs, v, chunk):
    """Note that a GPU, and the regions around it, hold or will hold a chunk."""
    for i in range(levels.member_first[v], levels.member_first[v + 1]):
        logs.has[levels.member[i], chunk >> 6] |= np.uint64(1) << np.uint64(chunk & 63)
    logs.holders[chunk] += 1
    logs.missing[v] -= 1


@njit(cache=True, nogil=True)
def hold_born(levels, logs):
    """Note who holds what at the beginning."""
    for i in range(levels.born.size):
        hold(levels, logs, levels.born_gpu[i], levels.born[i])


@njit(cache=True, nogil=True)
def _first_new(has, row, log, i, end):
    """Return the place in a log of the first chunk that a row lacks, `end` for none."""
    while i < end:
        chunk = log[i]
        if (has[row, chunk >> 6] >> np.uint64(chunk & 63)) & np.uint64(1) == 0:
            break
        i += 1
    return i


@njit(cache=True, nogil=True)
def _is_late(fabric, busy, h, missing, now):
    """Whether the other hops into a target could bring all it lacks before this one ends."""
    v = fabric.target[h]
    most = fabric.duration[h]
    brought = 0
    for g in range(fabric.into[v], fabric.into[v + 1]):
        if g != h:
            wait = ready(fabric.first, fabric.links, fabric.begin, busy, g, now) - now
            brought += max(0, (most - 1 - wait) // fabric.duration[g])
    return brought >= missing


@njit(cache=True, nogil=True)
def _rarest(has, row, log, holders, i, end):
    """Return the lacking chunk with the fewest holders, the first of equals."""
    best = log[i]
    while i < end:
        chunk = log[i]
        if holders[chunk] < holders[best]:
            best = chunk
        i = _first_new(has, row, log, i + 1, end)
    return best


@njit(cache=True, nogil=True)
def _offer(fabric, agenda, levels, logs, order, widest, policy):
    """Let the hops send that can, in order; with `widest`, only what is new to a region."""
    first, links, at, busy = fabric.first, fabric.links, fabric.begin, agenda.busy
    now = agenda.scalars[NOW]
    has, log, cursor, holders = logs.has, logs.log, logs.cursor, logs.holders
    for h in order:
        begin, stop = levels.first[h], levels.first[h + 1]
        if widest and stop - begin == 1:
            continue
        if ready(first, links, at, busy, h, now) > now:
            continue
        u = fabric.source[h]
        base = logs.first[u]
        end = base + logs.held[u]
        for level in range(begin, begin + 1 if widest else stop):
            row = levels.row[level]
            i = _first_new(has, row, log, base + cursor[level], end)
            cursor[level] = i - base
            if i == end:
                continue
            if policy == OLDEST:
                chunk = log[i]
            elif policy == RAREST:
                chunk = _rarest(has, row, log, holders, i, end)
            else:
                chunk = log[i]
                if _is_late(fabric, busy, h, logs.missing[fabric.target[h]], now):
                    logs.asleep[h] = True
                    break
            hold(levels, logs, fabric.target[h], chunk)
            send(fabric, agenda, h, chunk, now)
            break


@njit(cache=True, nogil=True)
def _arrive(fabric, agenda, levels, logs, what, count):
    """Put a chunk into its GPU's log; return the number of hops in the queue."""
    room = agenda.start.size
    if what < room:
        h = agenda.hop[what]
        v, chunk = fabric.target[h], agenda.chunk[what]
        count = touch(fabric, agenda, agenda.hop, what, what + 1, count)
    else:
        v, chunk = levels.born_gpu[what - room], levels.born[what - room]
    logs.log[logs.first[v] + logs.held[v]] = chunk
    logs.held[v] += 1
    return touch(fabric, agenda, fabric.out, fabric.out_first[v], fabric.out_first[v + 1], count)


@njit(cache=True, nogil=True)
def _collect(fabric, agenda, levels, logs, policy):
    """Take all events of the next moment; return the number of hops in the queue."""
    times, whats, scalars = agenda.heap_time, agenda.heap_what, agenda.scalars
    now = times[0]
    scalars[NOW] = now
    count = 0
    while scalars[EVENTS] > 0 and times[0] == now:
        what = pop(times, whats, scalars)
        if what < 0:
            begin, end = fabric.user_first[-1 - what], fabric.user_first[-what]
            count = touch(fabric, agenda, fabric.user, begin, end, count)
        else:
            count = _arrive(fabric, agenda, levels, logs, what, count)
    return count if policy != EARLIEST else _wake(fabric, agenda, logs, count)


@njit(cache=True, nogil=True, allocates=True)
def _wake(fabric, agenda, logs, count):
    """Put the hops that were left waiting into the queue; return how many there are."""
    hops = np.nonzero(logs.asleep)[0]
    logs.asleep[:] = False
    return touch(fabric, agenda, hops, 0, hops.size, count)


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
        order = in_turn(fabric, agenda, count)
        if regions:
            _offer(fabric, agenda, levels, logs, order, True, policy)
        _offer(fabric, agenda, levels, logs, order, False, policy)
        if agenda.scalars[EVENTS] == 0:
            # Whoever waits for others now waits in vain.
            order = in_turn(fabric, agenda, _wake(fabric, agenda, logs, 0))
            _offer(fabric, agenda, levels, logs, order, False, OLDEST)
