"""Events on links that transfers share: what `matching` and `sending` have in common.

A hop occupies each of its links for a time of its own (see `colsynth.model.Hops`); it can
start when all of them are free at the times it would occupy them. At every event, a chunk
that arrives or a link that falls free, the hops it touches are put into a queue. Targets
take turns to be served, and so do the ports of a target, as in iSLIP (McKeown 1999),
which keeps a crossbar full. Time is exact in int64 ticks; events are a binary heap of
(time, what): what < 0 is the link -1 - what that falls free, what < M transfer `what`
that arrives, and M + i chunk i that is there from the beginning (M the room for
transfers).

Handing a tuple of arrays to another function counts references to each of them, so the
loops over hops are inside the functions, and what is called for every hop takes arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

NOW, SENT, EVENTS, TURN = 0, 1, 2, 3
"""Places in `Agenda.scalars`."""


class Fabric(NamedTuple):
    """Hops and the links they share; constant.

    Parameters
    ----------
    source, target : int32 (H,)
        Hops sorted by target.
    duration : int64 (H,)
        Ticks from the start of a transfer to its arrival.
    first, links, begin, end : int64 (H + 1,), int32 (L,), int64 (L,), int64 (L,)
        Links of each hop and when it occupies them, as in `colsynth.model.Hops`; links
        that are free whenever another link of all their hops is are left out.
    into, out_first, out : int64 (N + 1,), int64 (N + 1,), int32 (H,)
        Hops into GPU v are ``into[v]`` to ``into[v + 1]``; those out of it are in `out`.
    user_first, user : int64, int32
        Hops through each link.
    offset_first, offset : int64, int64
        The distinct times after their start at which hops use each link; none where the
        link falls free when its only hop's transfer arrives.
    """

    source: np.ndarray
    target: np.ndarray
    duration: np.ndarray
    first: np.ndarray
    links: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    into: np.ndarray
    out_first: np.ndarray
    out: np.ndarray
    user_first: np.ndarray
    user: np.ndarray
    offset_first: np.ndarray
    offset: np.ndarray


class Agenda(NamedTuple):
    """What has been sent, and what happens next.

    Parameters
    ----------
    busy : int64 (links,)
        When each link falls free.
    pointer : int32 (N,)
        The port of each target that is served first.
    heap_time, heap_what : int64 (E,)
    start, hop, chunk : int64 (M,), int32 (M,), int32 (M,)
        Transfers in order of start.
    waiting, queue : bool (H,), int32 (H,)
        Hops touched by the events of this moment.
    scalars : int64 (4,)
    """

    busy: np.ndarray
    pointer: np.ndarray
    heap_time: np.ndarray
    heap_what: np.ndarray
    start: np.ndarray
    hop: np.ndarray
    chunk: np.ndarray
    waiting: np.ndarray
    queue: np.ndarray
    scalars: np.ndarray


@njit(cache=True, nogil=True)
def push(times, whats, scalars, time, what):
    """Add an event to the heap of an agenda."""
    i = scalars[EVENTS]
    assert i < times.size, "more events than there is room for"
    scalars[EVENTS] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if times[up] < time or (times[up] == time and whats[up] <= what):
            break
        times[i], whats[i] = times[up], whats[up]
        i = up
    times[i], whats[i] = time, what


@njit(cache=True, nogil=True)
def push_all(times, whats, scalars, new_times, new_whats):
    """Add events."""
    for i in range(new_times.size):
        push(times, whats, scalars, new_times[i], new_whats[i])


@njit(cache=True, nogil=True)
def pop(times, whats, scalars):
    """Remove the first event from the heap of an agenda; return what it is."""
    top = whats[0]
    count = scalars[EVENTS] - 1
    scalars[EVENTS] = count
    time, what = times[count], whats[count]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= count:
            break
        right = down + 1
        if right < count and (
            times[right] < times[down]
            or (times[right] == times[down] and whats[right] < whats[down])
        ):
            down = right
        if time < times[down] or (time == times[down] and what <= whats[down]):
            break
        times[i], whats[i] = times[down], whats[down]
        i = down
    times[i], whats[i] = time, what
    return top


@njit(cache=True, nogil=True)
def ready(first, links, begin, busy, h, now):
    """Return the earliest time, `now` or later, at which all links of a hop are free."""
    for i in range(first[h], first[h + 1]):
        now = max(now, busy[links[i]] - begin[i])
    return now


@njit(cache=True, nogil=True)
def send(fabric, agenda, h, chunk, now):
    """Start a transfer: occupy its links, note when they fall free and when it arrives."""
    times, whats, scalars = agenda.heap_time, agenda.heap_what, agenda.scalars
    number = scalars[SENT]
    scalars[SENT] = number + 1
    agenda.start[number], agenda.hop[number], agenda.chunk[number] = now, h, chunk
    for i in range(fabric.first[h], fabric.first[h + 1]):
        link, free = fabric.links[i], now + fabric.end[i]
        agenda.busy[link] = free
        for k in range(fabric.offset_first[link], fabric.offset_first[link + 1]):
            push(times, whats, scalars, max(now, free - fabric.offset[k]), -1 - link)
    push(times, whats, scalars, now + fabric.duration[h], number)
    v = fabric.target[h]
    ports = fabric.into[v + 1] - fabric.into[v]
    agenda.pointer[v] = (h - fabric.into[v] + 1) % ports


@njit(cache=True, nogil=True)
def touch(fabric, agenda, hops, begin, end, count):
    """Add those of ``hops[begin:end]`` that can start now to the queue of this moment.

    Those that cannot are touched again when the links they wait for fall free.

    Returns
    -------
    int
        How many hops are in the queue.
    """
    first, links, at, busy = fabric.first, fabric.links, fabric.begin, agenda.busy
    waiting, queue, now = agenda.waiting, agenda.queue, agenda.scalars[NOW]
    for i in range(begin, end):
        h = hops[i]
        if not waiting[h] and ready(first, links, at, busy, h, now) == now:
            waiting[h] = True
            queue[count] = h
            count += 1
    return count


@njit(cache=True, nogil=True, allocates=True)
def in_turn(fabric, agenda, count):
    """Empty the queue; return its hops in the order in which they are served."""
    gpus, hops = fabric.into.size - 1, fabric.target.size
    turn = agenda.scalars[TURN]
    agenda.scalars[TURN] = turn + 1
    keys = np.empty(count, np.int64)
    into, target, pointer = fabric.into, fabric.target, agenda.pointer
    queue, waiting = agenda.queue, agenda.waiting
    for i in range(count):
        h = queue[i]
        waiting[h] = False
        v = target[h]
        port = h - into[v] - pointer[v]
        if port < 0:
            port += into[v + 1] - into[v]
        keys[i] = (((v - turn) % gpus) * hops + port) * hops + h
    keys.sort()
    return keys % hops
