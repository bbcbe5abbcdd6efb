"""List scheduling of tasks on groups of threadblocks, the most urgent first.

A task occupies one threadblock of its group for a time; what it gives is there somewhat later. It
begins when everything that it needs is there and a threadblock is free. Of the tasks that wait for
a threadblock, the one that is due first begins. Tasks of a chain share a threadblock, so that none
of them has to wait for a flag of the one before; room for all of a chain is set aside when its
first task begins. This is greedy list scheduling (Graham 1969) with due times as priorities.
Times are exact in int64 ticks. O(N log N + N B), B the threadblocks of the largest group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.events import EVENTS, pop, push

_NONE = -1


class Tasks(NamedTuple):
    """N tasks, each behind what it needs.

    Parameters
    ----------
    group, chain : int64 (N,)
        Number of the threadblocks that it may take; first task of its chain, or itself.
    duration, late : int64 (N,)
        Ticks that it occupies its threadblock, at least one, and then until its result is there.
    steps : int64 (N,)
        Steps of the whole chain that it begins.
    first, other : int64 (N + 1,), int64
        What each needs.
    """

    group: np.ndarray
    chain: np.ndarray
    duration: np.ndarray
    late: np.ndarray
    steps: np.ndarray
    first: np.ndarray
    other: np.ndarray


class _Queues(NamedTuple):
    """Tasks that may begin.

    Those that begin chains wait in a heap for each group, others in a sorted list for each
    threadblock.

    Parameters
    ----------
    place, length : int64 (G + 1,), int64 (G, EVENTS + 1)
        Where the heap of each group lies, and in the last column how long it is.
    due, task : int64 (N,), int64 (N,)
        The heaps.
    head, following : int64 (B,), int64 (N,)
        First of the list of each threadblock, and who comes behind each task.
    """

    place: np.ndarray
    length: np.ndarray
    due: np.ndarray
    task: np.ndarray
    head: np.ndarray
    following: np.ndarray


@njit(cache=True, nogil=True)
def due_times(tasks, last):
    """Return when each task has to begin at the latest, int64 (N,).

    Parameters
    ----------
    tasks : Tasks
    last : int64 (N,)
        When each is to be done that no other task needs.
    """
    due = last.copy()
    needed = np.zeros(due.size, np.bool_)
    for task in range(due.size - 1, -1, -1):
        due[task] -= tasks.duration[task] + tasks.late[task]
        for k in range(tasks.first[task], tasks.first[task + 1]):
            other = tasks.other[k]
            if not needed[other] or due[task] < due[other]:
                due[other] = due[task]
            needed[other] = True
    return due


@njit(cache=True, nogil=True)
def timetable(tasks, due, blocks, room):
    """Return where and when each task is done, and whether all of them found room.

    Parameters
    ----------
    tasks : Tasks
    due : int64 (N,)
    blocks : int64 (G + 1,)
        Threadblocks of group g are ``blocks[g]`` to ``blocks[g + 1]``.
    room : int
        Steps that a threadblock has.

    Returns
    -------
    block, begin : int64 (N,), int64 (N,)
    fits : bool
    """
    count, size = tasks.group.size, blocks[-1]
    missing = np.diff(tasks.first)
    begins, followers = _followers(tasks)
    queues = _no_queues(tasks, blocks.size - 1, size)
    block, begin = np.full(count, _NONE), np.zeros(count, np.int64)
    left, free = np.full(size, room), np.ones(size, np.bool_)
    times, whats = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    events = np.zeros(EVENTS + 1, np.int64)
    touched = np.empty(count + 1, np.int64)  # groups
    now, done, many = 0, 0, 0
    for task in range(count):
        if missing[task] == 0:
            touched[many] = _wait(queues, tasks, due, block, task)
            many += 1
    while True:
        for k in range(many):
            while True:
                task, where = _next(queues, tasks, due, blocks, left, free, touched[k])
                if task == _NONE:
                    break
                if tasks.chain[task] == task:
                    left[where] -= tasks.steps[task]
                block[task], begin[task], free[where] = where, now, False
                ends = now + tasks.duration[task]
                push(times, whats, events, ends, task)
                push(times, whats, events, ends + tasks.late[task], count + task)
        many = 0
        if events[EVENTS] == 0:
            break
        now = times[0]
        what = pop(times, whats, events)
        if what < count:
            free[block[what]] = True
            touched[0], many = tasks.group[what], 1
            continue
        done += 1
        for k in range(begins[what - count], begins[what - count + 1]):
            task = followers[k]
            missing[task] -= 1
            if missing[task] == 0:
                touched[many] = _wait(queues, tasks, due, block, task)
                many += 1
    return block, begin, done == count


@njit(cache=True, nogil=True, allocates=True)
def _followers(tasks):
    """Return who needs each task, one after the other, as (where they begin, tasks)."""
    count = tasks.group.size
    begins = np.zeros(count + 1, np.int64)
    for k in range(tasks.other.size):
        begins[tasks.other[k] + 1] += 1
    begins = np.cumsum(begins)
    at = begins[:-1].copy()
    found = np.empty(tasks.other.size, np.int64)
    for task in range(count):
        for k in range(tasks.first[task], tasks.first[task + 1]):
            other = tasks.other[k]
            found[at[other]] = task
            at[other] += 1
    return begins, found


@njit(cache=True, nogil=True, allocates=True)
def _no_queues(tasks, groups, size):
    """Return empty queues with room for all tasks."""
    count = tasks.group.size
    place = np.zeros(groups + 1, np.int64)
    for task in range(count):
        place[tasks.group[task] + 1] += 1
    return _Queues(
        np.cumsum(place),
        np.zeros((groups, EVENTS + 1), np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.full(size, _NONE),
        np.full(count, _NONE),
    )


@njit(cache=True, nogil=True)
def _wait(queues, tasks, due, block, task):
    """Put a task into its queue; return its group."""
    group = tasks.group[task]
    if tasks.chain[task] == task:
        begin, end = queues.place[group], queues.place[group + 1]
        push(queues.due[begin:end], queues.task[begin:end], queues.length[group], due[task], task)
        return group
    where = block[tasks.chain[task]]
    before, after = _NONE, queues.head[where]
    while after != _NONE and (due[after], after) < (due[task], task):
        before, after = after, queues.following[after]
    queues.following[task] = after
    if before == _NONE:
        queues.head[where] = task
    else:
        queues.following[before] = task
    return group


@njit(cache=True, nogil=True)
def _next(queues, tasks, due, blocks, left, free, group):
    """Take the task that begins next on a group out of its queue; return it and its threadblock.

    A task that goes on with a chain goes first where it is due no later than the first of those
    that begin chains, or where that one finds no room.
    """
    begin, end = queues.place[group], queues.place[group + 1]
    first = queues.task[begin] if queues.length[group, EVENTS] else _NONE
    best, later = _NONE, _NONE
    for other in range(blocks[group], blocks[group + 1]):
        if not free[other]:
            continue
        own = queues.head[other]
        if own != _NONE:
            if first == _NONE or due[own] <= due[first]:
                queues.head[other] = queues.following[own]
                return own, other
            later = other if later == _NONE else later
        roomier = best == _NONE or left[other] > left[best]
        if first != _NONE and roomier and left[other] >= tasks.steps[first]:
            best = other
    if best != _NONE:
        pop(queues.due[begin:end], queues.task[begin:end], queues.length[group])
        return first, best
    if later != _NONE:
        own = queues.head[later]
        queues.head[later] = queues.following[own]
        return own, later
    return _NONE, _NONE
