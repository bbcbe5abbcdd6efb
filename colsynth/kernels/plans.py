"""What `launches` executes, and its threadblocks: what they know, whom they wait for and wake.

A threadblock's operations are unordered between two nops: threads learn and tell for themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from colsynth.kernels.cells import ITEM
from colsynth.kernels.clocks import copied, dropped, raise_to
from colsynth.kernels.compiled import njit

AT, LAUNCH, CLOCK, TICK, PACKETS, ARRIVED, NEXT, RANK = range(8)
"""Columns of a threadblock: its item, launch and clock, ticks of what it does and of packets,
whether it came to a barrier, who waits behind it, and its rank."""
BLOCK = 8
KIND, THREADS, MOVES, MEETS, WITH, RETURNS = range(6)
"""Columns of an operation: kind, its first thread and move, the number of its barrier and how many
come there, and whether it waits until its source was read."""
OPERATION = 6
WHICH, TURN, SIZE = range(3)
"""Columns of an item: its operation, the iteration of its pipeline, and the cells that it moves in
that, -1 outside pipelines."""
SOURCES, INCOMING, TARGETS, OUTGOING = range(4)
"""Columns of a move: its first source, packet that is read, target, and packet that is sent."""
QUEUE, CHANNEL = range(2)
"""Columns of a thread: its queue and its port channel, -1 for none."""
LAUNCHES, STAMPS, FIRST_PORT, FIRST_HOST = range(4)
"""Where `sizes` has the number of launches, components of a threadblock, and the components of the
first port channel and the first host."""
TAKEN, PUT = range(2)
"""Columns of a queue: how many messages were taken and put."""
FIRST, LAST, COUNT = range(3)
"""Columns of a list of threadblocks that wait: its ends, and at a barrier how many they are."""
FIRST_READY, READY = 6, 7
"""Where `counts` has the place of the threadblock that runs next, and how many can run."""
COUNTS = 8
"""Numbers in `counts`; the others are those of `clocks` and `cells`."""
BARRIERS = 16
"""Barriers of a rank."""


class Program(NamedTuple):
    """What is executed: O operations, M moves, N operands, B threadblocks.

    Parameters
    ----------
    first, items : int64 (B + 1,), int64 (I, 3)
    op : int64 (O + 1, 6)
    threads : int64 (T, 2)
        Queue and port channel of each thread, -1 for none.
    moves : int64 (M + 1, 4)
        First source, packet that is read, target, and packet that is sent.
    length : int64 (N,)
        Cells of every operand, outside pipelines.
    start : int64 (halves, N)
    wrap, apart : int64 (N,), int64 (N,)
        Cells behind which a slot begins again, 0 for never; distance of cells.
    sizes : int64 (4,)
        Launches, components of a threadblock, first port channel, first host.
    members : int64 (R + 1,)
        First threadblock of each rank.
    call : int64 (R, 5)
        Of each rank: first cell and cells of its input and of its output; its first contribution.
    period : int
        Difference of the contributions of one launch and the next.
    """

    first: Any
    items: Any
    op: Any
    threads: Any
    moves: Any
    length: Any
    start: Any
    wrap: Any
    apart: Any
    sizes: Any
    members: Any
    call: Any
    period: Any


class State(NamedTuple):
    """The state of an execution.

    Parameters
    ----------
    block : int64 (B, 8)
    learned : int64 (B, threads + 1)
        The clock that each thread learned, -1 for none; first what packets told all of them.
    ready : int64 (B,)
        A ring of threadblocks that can run.
    waiting : int64 (Q or Q + cells, 2)
        First and last of those that wait for a queue, or for the packet of a cell.
    room, queue, messages : int64 (Q + 1,), int64 (Q, 2), int64
        Of every queue, where its messages lie, and how many were taken and put.
    meeting : int64 (R * BARRIERS, 3)
        First, last and number of those that came to a barrier.
    ticks : int64 (components,)
        Those of port channels and hosts.
    running : int64 (R,)
        Threadblocks that have not finished their launch.
    counts : int64 (8,)
    """

    block: Any
    learned: Any
    ready: Any
    waiting: Any
    room: Any
    queue: Any
    messages: Any
    meeting: Any
    ticks: Any
    running: Any
    counts: Any


@njit(cache=True, nogil=True)
def joined(program, state, clocks, b, number):
    """Raise a clock to all that a threadblock's threads did and learned, which is forgotten."""
    learned, me, row = state.learned[b], state.block[b], clocks.data[number]
    for thread in range(learned.size):
        if learned[thread] >= 0:
            raise_to(clocks, number, learned[thread])
            dropped(clocks, learned[thread])
            learned[thread] = -1
    stamps = program.sizes[STAMPS]
    row[stamps * b + stamps - 1] = me[PACKETS]
    row[stamps * b] = me[TICK]


@njit(cache=True, nogil=True)
def join(program, state, clocks, b):
    """Let all that threads did and learned have happened before what follows."""
    me, row = state.block[b], clocks.data[state.block[b, CLOCK]]
    stamps, changed = program.sizes[STAMPS], False
    for thread in range(state.learned.shape[1]):
        changed = changed or state.learned[b, thread] >= 0
    if changed or row[stamps * b] != me[TICK] or (stamps > 1 and row[2 * b + 1] != me[PACKETS]):
        new = copied(clocks, me[CLOCK])
        joined(program, state, clocks, b, new)
        dropped(clocks, me[CLOCK])
        me[CLOCK] = new


@njit(cache=True, nogil=True)
def learn(state, clocks, b, thread, number):
    """Let a thread know a clock, which is taken from the caller; thread -1 stands for all."""
    known = state.learned[b, thread + 1]
    if known < 0:
        state.learned[b, thread + 1] = number
        return
    new = copied(clocks, known)
    raise_to(clocks, new, number)
    dropped(clocks, known)
    dropped(clocks, number)
    state.learned[b, thread + 1] = new


@njit(cache=True, nogil=True)
def known_by(state, clocks, b, thread):
    """Return the clock of a thread, which the caller must drop."""
    mine, known = state.block[b, CLOCK], state.learned[b, thread + 1]
    if known < 0:
        clocks.uses[mine] += 1
        return mine
    new = copied(clocks, mine)
    raise_to(clocks, new, known)
    return new


@njit(cache=True, nogil=True)
def spoken(program, state, clocks, b, thread, port):
    """Return what a signal of a thread tells, with the puts before it on its port channel."""
    told = known_by(state, clocks, b, thread)
    if port < 0:
        return told
    new = copied(clocks, told)
    dropped(clocks, told)
    component = program.sizes[FIRST_PORT] + port
    clocks.data[new, component] = state.ticks[component]
    return new


@njit(cache=True, nogil=True)
def cells_of(program, state, n, launch):
    """Return the first cell of an operand, and how many it has."""
    item = program.items[state.counts[ITEM]]
    turn, size = item[TURN], item[SIZE]
    if program.wrap[n]:
        turn %= program.wrap[n]
    start = program.start[launch % program.start.shape[0], n]
    return start + turn * program.apart[n], program.length[n] if size < 0 else size


@njit(cache=True, nogil=True)
def put(state, queue, number):
    """Put a clock into a queue, and wake who waits there."""
    state.messages[state.room[queue] + state.queue[queue, PUT]] = number
    state.queue[queue, PUT] += 1
    wake(state, queue)


@njit(cache=True, nogil=True)
def wake(state, what):
    """Let those run that wait for something."""
    b = state.waiting[what, FIRST]
    state.waiting[what] = -1
    while b >= 0:
        ready(state, b)
        b = state.block[b, NEXT]


@njit(cache=True, nogil=True)
def ready(state, b):
    """Let a threadblock run, behind those that already can."""
    counts = state.counts
    state.ready[(counts[FIRST_READY] + counts[READY]) % state.ready.size] = b
    counts[READY] += 1


@njit(cache=True, nogil=True)
def follow(table, block, what, b):
    """Append a threadblock to a list of those that wait."""
    block[b, NEXT] = -1
    if table[what, FIRST] < 0:
        table[what, FIRST] = b
    else:
        block[table[what, LAST], NEXT] = b
    table[what, LAST] = b
