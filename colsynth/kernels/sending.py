"""Sending chunks along given trees: who goes first on each hop, event by event.

Tasks are the edges of the chunks' trees, each one transfer on one hop. A task is ready
when its chunk has arrived at the hop's source. A task is as urgent as the hop, its own or
one that its chunk still has to take, whose links have most left to carry from when the
chunk reaches them: busy links are fed first (on one switch this is the longest-port-first
rule, Mekkittikul and McKeown 1998). That decides between hops that compete for a link (see
`events` for ties); on one hop the task with the longest way to go is first, of equals the
more urgent, then the one that was ready first. That is list scheduling: no link idles
while a task could use it.

Time O(T * (log T + hops per GPU)). Twin: tests/reference/matching.py.
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


class Tasks(NamedTuple):
    """Edges of the trees; constant.

    Parameters
    ----------
    hop : int32 (T,)
    tail : int64 (T,)
        Ticks from the start of a task until the last chunk below it has arrived, were
        there no waiting.
    lead, crux, urgency : int64 (T,), int32 (T,), int64 (T,)
        The hop that has most to do from when the task's chunk reaches it, and when that
        is (`trees.link_tasks`), or the whole `tail`; both together at the beginning, in ticks.
    child_first, child : int64 (T + 1,), int32
        Tasks that a task's arrival makes ready.
    root_first, root : int64 (R + 1,), int32
        Tasks that are ready when each chunk is born.
    """

    hop: np.ndarray
    tail: np.ndarray
    lead: np.ndarray
    crux: np.ndarray
    urgency: np.ndarray
    child_first: np.ndarray
    child: np.ndarray
    root_first: np.ndarray
    root: np.ndarray


class Piles(NamedTuple):
    """Ready tasks of each hop, a binary heap per hop.

    Parameters
    ----------
    first, size : int64 (H + 1,), int64 (H,)
        Where each hop's heap is, and how many tasks it holds.
    task : int32 (T,)
    place : int64 (T,)
        The how-manyth task to become ready each task was.
    made : int64 (1,)
        Tasks that have become ready.
    left : int64 (links,)
        Ticks that tasks not yet started will occupy each link.
    """

    first: np.ndarray
    size: np.ndarray
    task: np.ndarray
    place: np.ndarray
    made: np.ndarray
    left: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def _before(tasks, piles, a, b):
    if tasks.tail[a] != tasks.tail[b]:
        return tasks.tail[a] > tasks.tail[b]
    if tasks.urgency[a] != tasks.urgency[b]:
        return tasks.urgency[a] > tasks.urgency[b]
    return piles.place[a] < piles.place[b]


@njit(cache=True, nogil=True)
def _add(tasks, piles, task):
    """Put a ready task onto its hop's heap."""
    h = tasks.hop[task]
    piles.place[task] = piles.made[0]
    piles.made[0] += 1
    base, i = piles.first[h], piles.size[h]
    piles.size[h] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if _before(tasks, piles, piles.task[base + up], task):
            break
        piles.task[base + i] = piles.task[base + up]
        i = up
    piles.task[base + i] = task


@njit(cache=True, nogil=True)
def _take(tasks, piles, h):
    """Remove and return the first task of a hop's heap."""
    base = piles.first[h]
    top = piles.task[base]
    size = piles.size[h] - 1
    piles.size[h] = size
    task = piles.task[base + size]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and _before(
            tasks, piles, piles.task[base + down + 1], piles.task[base + down]
        ):
            down += 1
        if not _before(tasks, piles, piles.task[base + down], task):
            break
        piles.task[base + i] = piles.task[base + down]
        i = down
    piles.task[base + i] = task
    return top


@njit(cache=True, nogil=True)
def _collect(fabric, agenda, tasks, piles):
    """Take all events of the next moment; return the number of hops in the queue."""
    times, whats, scalars = agenda.heap_time, agenda.heap_what, agenda.scalars
    now, room = times[0], agenda.start.size
    scalars[NOW] = now
    count = 0
    while scalars[EVENTS] > 0 and times[0] == now:
        what = pop(times, whats, scalars)
        if what < 0:
            begin, end = fabric.user_first[-1 - what], fabric.user_first[-what]
            count = touch(fabric, agenda, fabric.user, begin, end, count)
            continue
        if what < room:
            count = touch(fabric, agenda, agenda.hop, what, what + 1, count)
            task = agenda.chunk[what]
            begin, end, below = tasks.child_first[task], tasks.child_first[task + 1], tasks.child
        else:
            chunk = what - room
            begin, end, below = tasks.root_first[chunk], tasks.root_first[chunk + 1], tasks.root
        for i in range(begin, end):
            _add(tasks, piles, below[i])
            count = touch(fabric, agenda, tasks.hop, below[i], below[i] + 1, count)
    return count


@njit(cache=True, nogil=True, allocates=True)
def _by_urgency(fabric, tasks, piles, order):
    """Return the hops that have a task, the most urgent first."""
    count = 0
    for h in order:
        if piles.size[h] > 0:
            order[count] = h
            count += 1
    first, links, left = fabric.first, fabric.links, piles.left
    urgency = np.empty(count, np.int64)
    for i in range(count):
        task = piles.task[piles.first[order[i]]]
        h = tasks.crux[task]
        total = np.int64(0)
        for k in range(first[h], first[h + 1]):
            total += left[links[k]]
        urgency[i] = -tasks.lead[task] - total // (first[h + 1] - first[h])
    return order[:count][np.argsort(urgency, kind="mergesort")]


@njit(cache=True, nogil=True)
def send_tasks(fabric, agenda, tasks, piles, most):
    """Send until no event is left or `most` more transfers have been started.

    `Agenda.chunk` holds the task of each transfer.
    """
    limit = agenda.scalars[SENT] + most
    while agenda.scalars[EVENTS] > 0 and agenda.scalars[SENT] < limit:
        count = _collect(fabric, agenda, tasks, piles)
        now = agenda.scalars[NOW]
        for h in _by_urgency(fabric, tasks, piles, in_turn(fabric, agenda, count)):
            if ready(fabric.first, fabric.links, fabric.begin, agenda.busy, h, now) == now:
                for i in range(fabric.first[h], fabric.first[h + 1]):
                    piles.left[fabric.links[i]] -= fabric.end[i] - fabric.begin[i]
                send(fabric, agenda, h, _take(tasks, piles, h), now)
