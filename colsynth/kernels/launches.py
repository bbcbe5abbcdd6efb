"""Launches of a plan's threadblocks on symbolic data, with clocks that tell races.

Threadblock b does ``items[first[b]:first[b + 1]]`` once per launch, ranks independent of each
other: the next launch of a rank begins when its threadblocks are done. An item is an operation,
where in its operands an iteration of a pipeline begins, and how many cells it takes (-1 for all).

Queues (of channels, then of semaphores) hold clocks, with room for all that is ever put into them.
Who woke first runs first. O(cells moved * W + messages * components). Twin:
tests/reference/launches.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.cells import (
    CALL,
    CHUNK,
    CURRENT,
    FLAG,
    ITEM,
    NOTHING,
    TOLD,
    UNDEFINED,
    read,
    write,
)
from colsynth.kernels.clocks import copied, dropped, raise_to, with_room
from colsynth.kernels.compiled import njit
from colsynth.kernels.plans import (
    ARRIVED,
    AT,
    BARRIERS,
    CHANNEL,
    CLOCK,
    COUNT,
    FIRST,
    FIRST_HOST,
    FIRST_PORT,
    FIRST_READY,
    INCOMING,
    KIND,
    LAUNCH,
    LAUNCHES,
    MEETS,
    MOVES,
    NEXT,
    OUTGOING,
    PACKETS,
    PUT,
    QUEUE,
    RANK,
    READY,
    RETURNS,
    SOURCES,
    STAMPS,
    TAKEN,
    TARGETS,
    THREADS,
    TICK,
    WHICH,
    WITH,
    cells_of,
    follow,
    join,
    joined,
    known_by,
    learn,
    put,
    ready,
    spoken,
    wake,
)

NOP, BARRIER, SIGNAL, WAIT, RELEASE, ACQUIRE, FLUSH, DATA, PORT, PACKET = range(10)
"""Kinds of operations."""
_WORD = 64


@njit(cache=True, nogil=True)
def launch_all(program, memory, state, clocks, chunks, masks):
    """Run everything that can run; fill in what the output of each launch and rank holds."""
    launches, counts, block = program.sizes[LAUNCHES], state.counts, state.block
    widest = 1
    for o in range(program.op.shape[0] - 1):
        widest = max(widest, program.op[o + 1, THREADS] - program.op[o, THREADS])
        widest = max(widest, program.op[o + 1, MOVES] - program.op[o, MOVES])
    spare = 6 * widest + 8
    for rank in range(program.call.shape[0]):
        clocks = with_room(clocks, spare)
        _launch(program, memory, state, clocks, rank, 0)
    while counts[READY]:
        b = state.ready[counts[FIRST_READY]]
        counts[FIRST_READY] = (counts[FIRST_READY] + 1) % state.ready.size
        counts[READY] -= 1
        me, last = block[b], program.first[b + 1] - program.first[b]
        while me[AT] < last:
            clocks = with_room(clocks, spare)
            counts[CURRENT], counts[ITEM] = b, program.first[b] + me[AT]
            if not _do(program, memory, state, clocks, b):
                break
            me[AT] += 1
        rank = me[RANK]
        if me[AT] < last or me[LAUNCH] >= launches:
            continue
        state.running[rank] -= 1
        if state.running[rank] == 0:
            launch = me[LAUNCH]
            _, _, begin, size, _ = program.call[rank]
            for k in range(size):
                chunks[launch, rank, k] = memory.cell[begin + k, CHUNK]
                masks[launch, rank, k] = memory.mask[begin + k]
            for other in range(program.members[rank], program.members[rank + 1]):
                block[other, LAUNCH] = launch + 1
            if launch + 1 < launches:
                _launch(program, memory, state, clocks, rank, launch + 1)


@njit(cache=True, nogil=True)
def _launch(program, memory, state, clocks, rank, launch):
    """Let the caller fill the input of a rank, and start its threadblocks."""
    begin, end = program.members[rank], program.members[rank + 1]
    clock = copied(clocks, state.block[begin, CLOCK])
    for b in range(begin, end):
        mine = state.block[b, CLOCK]
        raise_to(clocks, clock, mine)
        dropped(clocks, mine)
        joined(program, state, clocks, b, clock)
    host, row = program.sizes[FIRST_HOST] + rank, clocks.data[clock]
    state.ticks[host] += 1
    tick = state.ticks[host]
    row[host] = tick - 1
    inputs, size, outputs, many, number = program.call[rank]
    last = state.counts[CURRENT]
    if last >= 0:
        items = program.first[last + 1] - program.first[last]
        state.counts[CALL] = state.block[last, AT] >= items
    for cell in range(outputs, outputs + many):
        write(memory, cell, UNDEFINED, host, tick, row)
    memory.sum[:] = 0
    memory.sum[rank // _WORD] = np.uint64(1) << np.uint64(rank % _WORD)
    for k in range(size):
        write(memory, inputs + k, launch * program.period + number + k, host, tick, row)
    row[host], state.counts[CALL] = tick, 0
    clocks.uses[clock] = end - begin
    for b in range(begin, end):
        state.block[b, CLOCK], state.block[b, LAUNCH], state.block[b, AT] = clock, launch, 0
        ready(state, b)
    state.running[rank] = end - begin


@njit(cache=True, nogil=True)
def _do(program, memory, state, clocks, b):
    """Carry out an operation; return whether it is done."""
    o = program.items[state.counts[ITEM], WHICH]
    kind = program.op[o, KIND]
    if kind == NOP:
        join(program, state, clocks, b)
    elif kind == DATA:
        me, stamps = state.block[b], program.sizes[STAMPS]
        me[TICK] += 1
        for m in range(program.op[o, MOVES], program.op[o + 1, MOVES]):
            _move(program, memory, state, clocks, m, stamps * b, me[TICK], me[CLOCK], -1)
    elif kind in (WAIT, ACQUIRE):
        return _take(program, state, clocks, b, o)
    elif kind == BARRIER:
        return _barrier(program, state, clocks, b, o)
    elif kind == PORT:
        return _ports(program, memory, state, clocks, b, o)
    elif kind == PACKET:
        return _packets(program, memory, state, clocks, b, o)
    else:
        first = program.op[o, THREADS]
        for t in range(first, program.op[o + 1, THREADS]):
            told = spoken(program, state, clocks, b, t - first, program.threads[t, CHANNEL])
            if kind == FLUSH:
                learn(state, clocks, b, t - first, told)
            else:
                put(state, program.threads[t, QUEUE], told)
    return True


@njit(cache=True, nogil=True)
def _take(program, state, clocks, b, o):
    first, last = program.op[o, THREADS], program.op[o + 1, THREADS]
    for t in range(first, last):
        queue, wanted = program.threads[t, QUEUE], 0
        for other in range(first, t + 1):
            wanted += program.threads[other, QUEUE] == queue
        if state.queue[queue, PUT] - state.queue[queue, TAKEN] < wanted:
            follow(state.waiting, state.block, queue, b)
            return False
    for t in range(first, last):
        queue = program.threads[t, QUEUE]
        clock = state.messages[state.room[queue] + state.queue[queue, TAKEN]]
        state.queue[queue, TAKEN] += 1
        learn(state, clocks, b, t - first, clock)
    return True


@njit(cache=True, nogil=True)
def _barrier(program, state, clocks, b, o):
    me = state.block[b]
    if me[ARRIVED]:
        me[ARRIVED] = 0
        return True
    here = BARRIERS * me[RANK] + program.op[o, MEETS]
    join(program, state, clocks, b)
    follow(state.meeting, state.block, here, b)
    state.meeting[here, COUNT] += 1
    if state.meeting[here, COUNT] < program.op[o, WITH]:
        me[ARRIVED] = 1
        return False
    clock = copied(clocks, me[CLOCK])
    other = state.meeting[here, FIRST]
    while other >= 0:
        mine = state.block[other, CLOCK]
        raise_to(clocks, clock, mine)
        dropped(clocks, mine)
        state.block[other, CLOCK] = clock
        if other != b:
            ready(state, other)
        other = state.block[other, NEXT]
    clocks.uses[clock] = state.meeting[here, COUNT]
    state.meeting[here, FIRST], state.meeting[here, COUNT] = -1, 0
    return True


@njit(cache=True, nogil=True)
def _arrived(program, memory, state, b, o):
    """Whether all packets are there that an operation reads."""
    me = state.block[b]
    for m in range(program.op[o, MOVES], program.op[o + 1, MOVES]):
        for n in range(program.moves[m, INCOMING], program.moves[m, TARGETS]):
            begin, size = cells_of(program, state, n, me[LAUNCH])
            for k in range(size):
                cell = begin + k * program.apart[n]
                if memory.cell[cell, FLAG] != me[LAUNCH]:
                    follow(state.waiting, state.block, state.room.size - 1 + cell, b)
                    return False
    return True


@njit(cache=True, nogil=True)
def _ports(program, memory, state, clocks, b, o):
    if not _arrived(program, memory, state, b, o):
        return False
    first = program.op[o, THREADS]
    for t in range(first, program.op[o + 1, THREADS]):
        m, thread = program.op[o, MOVES] + t - first, t - first
        queue, port = program.threads[t]
        # Threads meet once the packets are there, before anything is put (rppkt).
        known = known_by(state, clocks, b, thread)
        clock = _told_by(program, memory, state, clocks, m, known)
        component = program.sizes[FIRST_PORT] + port
        state.ticks[component] += 1
        _stamped(program, memory, state, clocks, m, component, state.ticks[component], clock)
        dropped(clocks, clock)
        if queue >= 0:
            put(state, queue, spoken(program, state, clocks, b, thread, port))
        if program.op[o, RETURNS]:
            learn(state, clocks, b, thread, spoken(program, state, clocks, b, thread, port))
    return True


@njit(cache=True, nogil=True)
def _packets(program, memory, state, clocks, b, o):
    if not _arrived(program, memory, state, b, o):
        return False
    me = state.block[b]
    me[PACKETS] += 1
    for m in range(program.op[o, MOVES], program.op[o + 1, MOVES]):
        clocks.uses[me[CLOCK]] += 1
        known = _told_by(program, memory, state, clocks, m, me[CLOCK])
        # A thread keeps to its own packets, one after the other.
        _stamped(program, memory, state, clocks, m, 2 * b + 1, me[PACKETS], known)
        if program.moves[m, INCOMING] < program.moves[m, TARGETS]:
            learn(state, clocks, b, -1, known)
        else:
            dropped(clocks, known)
    return True


@njit(cache=True, nogil=True)
def _told_by(program, memory, state, clocks, m, known):
    """Return what is known at a clock, which is taken, and by the packets that a move reads."""
    if program.moves[m, INCOMING] == program.moves[m, TARGETS]:
        return known
    new = copied(clocks, known)
    dropped(clocks, known)
    launch = state.block[state.counts[CURRENT], LAUNCH]
    for n in range(program.moves[m, INCOMING], program.moves[m, TARGETS]):
        begin, size = cells_of(program, state, n, launch)
        for k in range(size):
            raise_to(clocks, new, memory.cell[begin + k * program.apart[n], TOLD])
    return new


@njit(cache=True, nogil=True)
def _stamped(program, memory, state, clocks, m, component, tick, known):
    """Move data; packets that are sent tell that it happened."""
    if program.moves[m, OUTGOING] == program.moves[m + 1, SOURCES]:
        _move(program, memory, state, clocks, m, component, tick, known, -1)
        return
    told = copied(clocks, known)
    clocks.data[told, component] = tick
    _move(program, memory, state, clocks, m, component, tick, known, told)
    dropped(clocks, told)


@njit(cache=True, nogil=True)
def _move(program, memory, state, clocks, m, component, tick, known, told):
    """Add up sources cell by cell, and write the sum to all targets.

    `known` is the clock before it, `told` that of the packets that are sent.
    """
    row, cell = clocks.data[known], memory.cell
    launch = state.block[state.counts[CURRENT], LAUNCH]
    sources, packets, targets, sent = program.moves[m]
    last = program.moves[m + 1, SOURCES]
    _, size = cells_of(program, state, sources, launch)
    for k in range(size):
        value = NOTHING
        for n in range(sources, targets):
            at = cells_of(program, state, n, launch)[0] + k * program.apart[n]
            value = read(memory, at, value, component, tick, row)
        for n in range(packets, targets):
            at = cells_of(program, state, n, launch)[0] + k * program.apart[n]
            read(memory, at + 1, UNDEFINED, component, tick, row)
        for n in range(targets, sent):
            at = cells_of(program, state, n, launch)[0] + k * program.apart[n]
            write(memory, at, value, component, tick, row)
        for n in range(sent, last):
            at = cells_of(program, state, n, launch)[0] + k * program.apart[n]
            write(memory, at, value, component, tick, row)
            write(memory, at + 1, value, component, tick, row)
            cell[at, FLAG] = launch
            clocks.uses[told] += 1
            if cell[at, TOLD] >= 0:
                dropped(clocks, cell[at, TOLD])
            cell[at, TOLD] = told
            wake(state, state.room.size - 1 + at)
