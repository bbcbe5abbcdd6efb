"""The threadblocks of every rank while they are being filled, as arrays.

A threadblock is a rank, a channel, at most one pair of ranks that it receives from and one that
it sends to. A pair on a channel is a connection and belongs to one threadblock at each end. The
steps of a chain are rows of numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

RANK, INTO, OUT, WAY, WEIGHT, CHUNKS, FIRST, SECOND = range(8)
"""Columns of a step: its rank; the pairs it receives from and sends to; the way of the latter;
the steps it needs, the chunks it moves; the operations it performs. -1 stands for none."""

AT, CHANNEL, FROM, TO, LOAD, MOVED, COPIED, NEXT, NEXT_LOCAL, CLOCK, LEFT = range(11)
"""Columns of a threadblock: its rank and channel, the pairs it receives from and sends to, its
steps, the chunks it moves and those it copies on its rank alone, the threadblock opened next on
the same rank and channel, the next one without peers on the same rank. While chains of local steps
are shared: when its steps so far are done, and how long it moves things after them."""

FIRST_OPEN, LAST_OPEN, OPENED = range(3)
"""Columns of a rank's channel, and of a rank's threadblocks without peers: first and last of them,
and how many there are (of a rank: of all kinds)."""

NONE, CONFLICT = -1, -2
"""No threadblock yet, and none possible."""

FEWEST, BALANCED, PAIRED = range(3)
"""How threadblocks are chosen: as few as suffice, as many as each way needs, or in pairs too."""

THREADBLOCKS, STEPS, MOST, CHANNELS, PER_CHANNEL, STRIDE, DUPLEX, SHARES = range(8)
"""Places of `Rules.limits`."""

NOBODY, APART, ANYBODY = range(3)
"""Who shares chains of local steps: one threadblock takes them all, as many as there may be
beside those with peers, or those with peers too."""


class Rules(NamedTuple):
    """What threadblocks must respect.

    Parameters
    ----------
    limits : int64 (8,)
        `THREADBLOCKS` of a rank, `STEPS` and `MOST` chunks of a threadblock, `CHANNELS`,
        threadblocks `PER_CHANNEL` of a rank; a chain takes every `STRIDE`-th channel from its
        first; with `DUPLEX`, a threadblock may serve two unrelated connections; who `SHARES`
        chains of local steps.
    mode : int
    needs : int64 (W,)
        Threadblocks that each way needs, where they share its chunks evenly.
    partner : int64 (P,)
        The pair that is received from where a threadblock sends to a pair, -1 for none.
    """

    limits: np.ndarray
    mode: int
    needs: np.ndarray
    partner: np.ndarray


class Threadblocks(NamedTuple):
    """All threadblocks of a program, numbered as they were opened.

    Parameters
    ----------
    size : int64 (2,)
        Threadblocks so far, and steps so far.
    table : int64 (L, 11)
    seats : int64 (R, C, 3)
        Threadblocks by rank and channel.
    local : int64 (R, 3)
        Threadblocks by rank.
    ends : int32 (P, C, 2)
        The threadblocks that receive and send on each connection.
    carried : int64 (W, C)
        Chunks of each way by channel, -1 where the channel does not serve it.
    served : int64 (W,)
        Channels that serve each way.
    steps : int64 (N, 3)
        Threadblock and operations of each step.
    holder : int64 (N,)
        The threadblock of each operation.
    """

    size: np.ndarray
    table: np.ndarray
    seats: np.ndarray
    local: np.ndarray
    ends: np.ndarray
    carried: np.ndarray
    served: np.ndarray
    steps: np.ndarray
    holder: np.ndarray


@njit(cache=True, nogil=True, allocates=True)
def no_threadblocks(ops, ranks, channels, pairs, ways):
    """Return threadblocks with room for so many operations, ranks, channels, pairs and ways."""
    table = np.zeros((ops, 11), np.int64)
    table[:, FROM], table[:, TO], table[:, NEXT], table[:, NEXT_LOCAL] = NONE, NONE, NONE, NONE
    seats = np.full((ranks, channels, 3), NONE)
    local = np.full((ranks, 3), NONE)
    seats[:, :, OPENED] = 0
    local[:, OPENED] = 0
    return Threadblocks(
        np.zeros(2, np.int64),
        table,
        seats,
        local,
        np.full((pairs, channels, 2), np.int32(NONE)),
        np.full((ways, channels), NONE),
        np.zeros(ways, np.int64),
        np.empty((ops, 3), np.int64),
        np.full(ops, NONE),
    )


@njit(cache=True, nogil=True)
def weigh(blocks, rules, chain, channel):
    """Return how many threadblocks a chain opens on a channel, and the most chunks of the others.

    `CONFLICT` stands for the former where it cannot go there.
    """
    new = peak = 0
    limits = rules.limits
    for k in range(chain.shape[0]):
        found = _find(blocks.table, blocks.seats, blocks.ends, rules, chain, k, channel)
        if found == CONFLICT:
            return CONFLICT, 0
        if found >= 0:
            if not _has_room(blocks.table, limits, found, chain, k):
                return CONFLICT, 0
            peak = max(peak, blocks.table[found, MOVED])
            continue
        new += 1
        rank = chain[k, RANK]
        if blocks.seats[rank, channel, OPENED] >= limits[PER_CHANNEL]:
            return CONFLICT, 0
        if blocks.local[rank, OPENED] >= limits[THREADBLOCKS]:
            return CONFLICT, 0
    return new, peak


@njit(cache=True, nogil=True)
def _has_room(table, limits, number, chain, k):
    """Return whether a threadblock has room for a step that moves something."""
    moved = table[number, MOVED]
    if moved > 0 and moved + chain[k, CHUNKS] > limits[MOST]:
        return False
    return table[number, LOAD] + chain[k, WEIGHT] <= limits[STEPS]


@njit(cache=True, nogil=True)
def _find(table, seats, ends, rules, chain, k, channel):
    """Return the threadblock of a step, `NONE` for a new one, `CONFLICT` where peers conflict."""
    into, out = chain[k, INTO], chain[k, OUT]
    receiver = ends[into, channel, 0] if into >= 0 else NONE
    sender = ends[out, channel, 1] if out >= 0 else NONE
    if into < 0 or out < 0 or receiver == sender:
        found = receiver if sender == NONE else sender
        if found == NONE and rules.limits[DUPLEX]:
            return _spare(table, seats, rules, chain, k, channel)
        return found
    if receiver == NONE:
        return sender if table[sender, FROM] == NONE else CONFLICT
    return receiver if sender == NONE and table[receiver, TO] == NONE else CONFLICT


@njit(cache=True, nogil=True)
def _spare(table, seats, rules, chain, k, channel):
    """Return a threadblock that may serve a step's connection beside another one."""
    number = seats[chain[k, RANK], channel, FIRST_OPEN]
    while number != NONE:
        into, out = chain[k, INTO], chain[k, OUT]
        if rules.mode == PAIRED:
            into = table[number, FROM] if into < 0 else into
            out = table[number, TO] if out < 0 else out
            free = into >= 0 and out >= 0 and rules.partner[out] == into
        else:
            free = (into < 0 or table[number, FROM] == NONE) and (
                out < 0 or table[number, TO] == NONE
            )
        if free and _has_room(table, rules.limits, number, chain, k):
            return number
        number = table[number, NEXT]
    return NONE


@njit(cache=True, nogil=True)
def put(blocks, rules, chain, channel):
    """Add a chain to a channel where it fits."""
    if rules.mode != FEWEST:
        _carry(blocks, chain, channel)
    for k in range(chain.shape[0]):
        number = _find(blocks.table, blocks.seats, blocks.ends, rules, chain, k, channel)
        if number == NONE:
            number = _open(blocks, chain[k, RANK], channel)
        _add(blocks, number, chain[k])
        blocks.table[number, MOVED] += chain[k, CHUNKS]
        into, out = chain[k, INTO], chain[k, OUT]
        if into >= 0:
            blocks.table[number, FROM] = into
            blocks.ends[into, channel, 0] = number
        if out >= 0:
            blocks.table[number, TO] = out
            blocks.ends[out, channel, 1] = number


@njit(cache=True, nogil=True)
def _carry(blocks, chain, channel):
    """Note that a channel carries the chunks of a chain."""
    for k in range(chain.shape[0] - 1):
        way = chain[k, WAY]
        if blocks.carried[way, channel] == NONE:
            blocks.carried[way, channel] = 0
            blocks.served[way] += 1
        blocks.carried[way, channel] += chain[k, CHUNKS]


@njit(cache=True, nogil=True)
def put_behind(blocks, rules, step, number):
    """Add a local step to a given threadblock; return whether it had room."""
    if blocks.table[number, LOAD] + step[WEIGHT] > rules.limits[STEPS]:
        return False
    _add(blocks, number, step)
    return True


@njit(cache=True, nogil=True)
def put_shared(blocks, rules, step, channel, length, ready):
    """Add a local step, the first of a chain, to the threadblock that is done first.

    It begins when its data is there, at `ready`, and moves what it has left behind that. Among
    those done at the same time, as all are while clocks stand still, it is the one that has copied
    least; then one on the channel on which the last data arrives. If it has copied anything, or is
    on another channel, a new one takes the step, as long as there may be more. `length` is how many
    steps the chain has.
    """
    table, rank = blocks.table, step[RANK]
    best, least = NONE, (0, 0)
    for number in range(blocks.size[0]):
        if table[number, AT] != rank or table[number, LOAD] + length > rules.limits[STEPS]:
            continue
        if rules.limits[SHARES] != ANYBODY and max(table[number, FROM], table[number, TO]) >= 0:
            continue
        done = max(table[number, CLOCK], ready) + table[number, LEFT]
        key = (done, table[number, COPIED])
        if best == NONE or key < least:
            best, least = number, key
        elif key == least and table[best, CHANNEL] != channel:
            best = number if table[number, CHANNEL] == channel else best
    more = rules.limits[SHARES] != NOBODY
    more &= blocks.local[rank, OPENED] < rules.limits[THREADBLOCKS]
    if best == NONE or (more and (table[best, COPIED] > 0 or table[best, CHANNEL] != channel)):
        best = _open(blocks, rank, _roomy(blocks, rules, rank, channel))
        _chain_up(table, blocks.local[rank], NEXT_LOCAL, best)
    table[best, COPIED] += step[CHUNKS]
    _add(blocks, best, step)


@njit(cache=True, nogil=True)
def put_local(blocks, rules, step, channel):
    """Add a local step to a threadblock that has no peers: the one with least, if there is room.

    Where a limit of chunks spreads the work, a further threadblock is opened beyond it as long as
    there may be more. Where there may not, and those with peers share local steps, one of them
    takes it.
    """
    table, rank = blocks.table, step[RANK]
    more = blocks.local[rank, OPENED] < rules.limits[THREADBLOCKS]
    number = _next_local(table, blocks.local[rank, FIRST_OPEN], NONE)
    while number != NONE:
        full = more and table[number, COPIED] + step[CHUNKS] > rules.limits[MOST]
        if not full and put_behind(blocks, rules, step, number):
            table[number, COPIED] += step[CHUNKS]
            return
        number = _next_local(table, blocks.local[rank, FIRST_OPEN], number)
    if rules.mode != PAIRED and rules.limits[SHARES] == ANYBODY and not more:
        put_shared(blocks, rules, step, channel, step[WEIGHT], 0)
        return
    number = _open(blocks, rank, _roomy(blocks, rules, rank, channel))
    _chain_up(table, blocks.local[rank], NEXT_LOCAL, number)
    table[number, COPIED] += step[CHUNKS]
    _add(blocks, number, step)


@njit(cache=True, nogil=True)
def _next_local(table, first, tried):
    """Return the threadblock without peers that has copied least after one that was tried."""
    best, other = NONE, first
    while other != NONE:
        copied = table[other, COPIED]
        new = tried == NONE or copied > table[tried, COPIED]
        new |= tried != NONE and copied == table[tried, COPIED] and other > tried
        if new and (best == NONE or copied < table[best, COPIED]):
            best = other
        other = table[other, NEXT_LOCAL]
    return best


@njit(cache=True, nogil=True)
def _roomy(blocks, rules, rank, channel):
    """Return the first channel from the given one on that takes another threadblock of a rank."""
    for other in range(channel, rules.limits[CHANNELS]):
        if blocks.seats[rank, other, OPENED] < rules.limits[PER_CHANNEL]:
            return other
    return channel


@njit(cache=True, nogil=True)
def _add(blocks, number, step):
    """Append a step to a threadblock."""
    blocks.table[number, LOAD] += step[WEIGHT]
    place = blocks.size[1]
    blocks.size[1] += 1
    blocks.steps[place, 0] = number
    blocks.steps[place, 1], blocks.steps[place, 2] = step[FIRST], step[SECOND]
    blocks.holder[step[FIRST]] = number
    if step[SECOND] >= 0:
        blocks.holder[step[SECOND]] = number


@njit(cache=True, nogil=True)
def _open(blocks, rank, channel):
    """Open a threadblock and return its number."""
    number = blocks.size[0]
    blocks.size[0] += 1
    blocks.table[number, AT], blocks.table[number, CHANNEL] = rank, channel
    blocks.local[rank, OPENED] += 1
    blocks.seats[rank, channel, OPENED] += 1
    _chain_up(blocks.table, blocks.seats[rank, channel], NEXT, number)
    return number


@njit(cache=True, nogil=True)
def _chain_up(table, ends, following, number):
    """Append a threadblock to a list, of which the first and the last are known."""
    if ends[FIRST_OPEN] == NONE:
        ends[FIRST_OPEN] = number
    else:
        table[ends[LAST_OPEN], following] = number
    ends[LAST_OPEN] = number
