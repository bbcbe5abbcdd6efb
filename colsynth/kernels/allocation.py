"""Threadblock allocation: every chain of the global order gets its threadblocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.threadblocks import (
    ANYBODY,
    BALANCED,
    CHANNEL,
    CHANNELS,
    CHUNKS,
    CLOCK,
    CONFLICT,
    COPIED,
    FEWEST,
    FIRST,
    INTO,
    LEFT,
    NONE,
    OPENED,
    OUT,
    PAIRED,
    RANK,
    SECOND,
    SHARES,
    STRIDE,
    THREADBLOCKS,
    WAY,
    WEIGHT,
    no_threadblocks,
    put,
    put_behind,
    put_local,
    put_shared,
    weigh,
)


class Work(NamedTuple):
    """What operations ask of threadblocks, in the global order: a send right before its receive.

    Parameters
    ----------
    rank, pair : int64 (N,)
        Where each is done, and number of the ranks it sends from and to; -1 for a local one.
    sends : bool (N,)
    chunks : int64 (N,)
    weight : int64 (N,)
        Steps, nops for extra dependencies included.
    departure, joint : int64 (N,)
        The send that shares the step of an arrival, -1 for none, and steps of both together.
    channel, way : int64 (N,)
        The first channel of each, and number of that and the pair.
    follows : bool (N,)
        Whether a local one waits for the operation before it.
    chained : int64 (N,)
        Steps of the chain of local ones that begins with each, 0 for none, -1 inside of one.
    first : int64 (N + 1,)
    other : int64 (W,)
        Where the waits of each begin, and what they are for.
    """

    rank: np.ndarray
    pair: np.ndarray
    sends: np.ndarray
    chunks: np.ndarray
    weight: np.ndarray
    departure: np.ndarray
    joint: np.ndarray
    channel: np.ndarray
    way: np.ndarray
    follows: np.ndarray
    chained: np.ndarray
    first: np.ndarray
    other: np.ndarray


@njit(cache=True, nogil=True)
def fill(work, rules, ranks, pairs, ways):
    """Place everything; return the threadblocks, and whether the rules allowed it.

    Parameters
    ----------
    work : Work
    rules : colsynth.kernels.threadblocks.Rules
    ranks, pairs, ways : int
        How many there are.
    """
    ops = work.rank.size
    channels = max(rules.limits[CHANNELS], rules.limits[STRIDE])
    blocks = no_threadblocks(ops, ranks, channels, pairs, ways if rules.mode != FEWEST else 0)
    shared = np.zeros(ops, np.bool_)
    for op in range(ops):
        if work.departure[op] >= 0:
            shared[work.departure[op]] = True
    chain = np.empty((ops, 8), np.int64)
    for op in range(ops):
        if work.chained[op] != 0:
            continue
        if work.pair[op] < 0:
            _set(chain[0], work, NONE, op)
            _place_local(blocks, rules, work, chain[0])
        elif work.sends[op] and not shared[op]:
            length = _follow(chain, work, op)
            if not _place(blocks, rules, work, chain[:length]) and not _place_parts(
                blocks, rules, work, chain, length
            ):
                return blocks, False
    _share(blocks, rules, work, ranks, chain[0])
    for rank in range(ranks):
        if blocks.local[rank, OPENED] > rules.limits[THREADBLOCKS]:
            return blocks, False
    return blocks, True


@njit(cache=True, nogil=True, allocates=True)
def _share(blocks, rules, work, ranks, step):
    """Place chains of local steps, now that all connections have threadblocks.

    Meanwhile a clock runs for each threadblock (`_duration`), unless they work in rounds, or those
    with peers take no such steps. What moves behind the last chain of a rank and channel waits for
    such chains in any case, so it does not count as left to do.
    """
    if not np.any(work.chained):
        return
    timed = rules.mode != PAIRED and rules.limits[SHARES] == ANYBODY
    ops, table, channel = work.rank.size, blocks.table, 0
    finish = np.zeros(ops, np.int64)
    last = np.zeros((ranks, 1 + np.max(work.channel)), np.int64)
    for op in range(ops):
        if timed and work.chained[op] > 0:
            last[work.rank[op], work.channel[op]] = op
    for op in range(ops):
        if work.pair[op] >= 0 and op < last[work.rank[op], work.channel[op]]:
            table[blocks.holder[op], LEFT] += _duration(work, op)
    for op in range(ops):
        if work.chained[op] < 0:
            _set(step, work, NONE, op)
            _place_local(blocks, rules, work, step)
            table[blocks.holder[op], COPIED] += work.chunks[op]
            finish[op] = finish[op - 1]
            continue
        ready, spent = _ready(work, finish, op, op), _duration(work, op)
        if work.chained[op] > 0:
            _set(step, work, NONE, op)
            end = op + 1
            while end < ops and work.chained[end] < 0:
                ready = max(ready, _ready(work, finish, end, op))
                spent += work.chunks[end] + 1
                end += 1
            put_shared(blocks, rules, step, channel, work.chained[op], ready)
        holder = blocks.holder[op]
        if work.pair[op] >= 0:
            channel = table[holder, CHANNEL]
        if not timed:
            continue
        finish[op] = max(table[holder, CLOCK], ready) + spent
        if work.pair[op] >= 0:
            if not work.sends[op]:  # right behind its send
                finish[op] = max(finish[op], finish[op - 1])
            if op < last[work.rank[op], work.channel[op]]:
                table[holder, LEFT] -= _duration(work, op)
        table[holder, CLOCK] = finish[op]


@njit(cache=True, nogil=True)
def _duration(work, op):
    """Return how long an operation takes, as if every chunk and every step took as long."""
    return work.chunks[op] + max(1, work.first[op + 1] - work.first[op])


@njit(cache=True, nogil=True)
def _ready(work, finish, op, begin):
    """Return when all is done that an operation waits for, but for what `begin` begins."""
    ready = 0
    for place in range(work.first[op], work.first[op + 1]):
        if work.other[place] < begin:
            ready = max(ready, finish[work.other[place]])
    return ready


@njit(cache=True, nogil=True)
def _set(step, work, arrival, departure):
    """Write a step that receives, then sends; either may be none, a local one is the latter."""
    first = departure if arrival == NONE else arrival
    step[RANK], step[CHUNKS] = work.rank[first], work.chunks[first]
    step[INTO] = NONE if arrival == NONE else work.pair[arrival]
    step[OUT] = NONE if departure == NONE else work.pair[departure]
    step[WAY] = NONE if departure == NONE else work.way[departure]
    both = arrival >= 0 and departure >= 0
    step[WEIGHT] = work.joint[first] if both else work.weight[first]
    step[FIRST], step[SECOND] = first, departure if both else NONE


@njit(cache=True, nogil=True)
def _follow(chain, work, first):
    """Write the steps of the chain that starts with a send; return how many."""
    arrival, departure, length = NONE, first, 0
    while departure != NONE:
        _set(chain[length], work, arrival, departure)
        length += 1
        arrival = departure + 1
        departure = work.departure[arrival]
    _set(chain[length], work, arrival, NONE)
    return length + 1


@njit(cache=True, nogil=True)
def _place_local(blocks, rules, work, step):
    """Put a local step behind the arrival it follows, else on a threadblock without peers.

    Behind its arrival it need not wait for it. It may follow a chain that has no threadblock yet.
    """
    op = step[FIRST]
    if work.follows[op] and blocks.holder[op - 1] != NONE:
        weight = step[WEIGHT]
        step[WEIGHT] = max(1, weight - 1)
        if put_behind(blocks, rules, step, blocks.holder[op - 1]):
            return
        step[WEIGHT] = weight
    put_local(blocks, rules, step, work.channel[op])


@njit(cache=True, nogil=True, allocates=True)
def _place_parts(blocks, rules, work, chain, length):
    """Place the transfers of a chain one by one, no longer fused; return whether all fit."""
    part = np.empty((2, 8), np.int64)
    for k in range(length - 1):
        send, receive = part[0], part[1]
        for i in range(part.shape[1]):  # numba compiles the assignment of arrays for a second
            send[i], receive[i] = chain[k, i], chain[k + 1, i]
        if send[SECOND] != NONE:
            send[FIRST] = send[SECOND]
        send[INTO], send[SECOND] = NONE, NONE
        receive[OUT], receive[SECOND] = NONE, NONE
        if not _place(blocks, rules, work, part):
            return False
    return True


@njit(cache=True, nogil=True)
def _place(blocks, rules, work, chain):
    """Place a chain on a channel; return whether one takes it."""
    first = work.channel[chain[0, FIRST]]
    if rules.mode == FEWEST:
        channel = _fewest(blocks, rules, chain, first)
    elif rules.mode == BALANCED:
        channel = _least(blocks, rules, chain, first)
    else:
        channel = _lightest(blocks, rules, chain, first)
    if channel == NONE:
        return False
    put(blocks, rules, chain, channel)
    return True


@njit(cache=True, nogil=True)
def _fewest(blocks, rules, chain, first):
    """Return the channel that takes a whole chain with the fewest new threadblocks."""
    best, least = NONE, 0
    for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
        new, _ = weigh(blocks, rules, chain, channel)
        if new != CONFLICT and (best == NONE or new < least):
            best, least = channel, new
            if new == 0:
                break
    return best


@njit(cache=True, nogil=True)
def _least(blocks, rules, chain, first):
    """Return the channel with the least on the fullest threadblock of a chain.

    It is one that serves all its ways already if each has the threadblocks that it needs.
    """
    links = chain.shape[0] - 1
    full = True
    for k in range(links):
        full &= blocks.served[chain[k, WAY]] >= rules.needs[chain[k, WAY]]
    best, key = NONE, (True, 0, 0)
    for known in (True, False):
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            serves = False
            more = False
            for k in range(links):
                way = chain[k, WAY]
                if blocks.carried[way, channel] != NONE:
                    serves = True
                elif blocks.served[way] >= rules.needs[way]:
                    more = True
            if serves != known:
                continue
            if not known and full and best != NONE and not key[0]:
                break
            new, peak = weigh(blocks, rules, chain, channel)
            if new == CONFLICT:
                continue
            mine = (more, peak, new)
            if best == NONE or mine < key or (mine == key and channel < best):
                best, key = channel, mine
            if not known:
                break
    return best


@njit(cache=True, nogil=True)
def _lightest(blocks, rules, chain, first):
    """Return the channel on which a way carries least; a new one as long as it needs more."""
    way = chain[0, WAY]
    if blocks.served[way] < rules.needs[way]:
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            unused = blocks.carried[way, channel] == NONE
            if unused and weigh(blocks, rules, chain, channel)[0] != CONFLICT:
                return channel
    after, bound = NONE, NONE  # the channel tried last, and what it carries
    while True:
        best, least = NONE, 0
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            load = blocks.carried[way, channel]
            further = load > bound or (load == bound and load != NONE and channel > after)
            if further and (best == NONE or load < least):
                best, least = channel, load
        if best == NONE or weigh(blocks, rules, chain, best)[0] != CONFLICT:
            return best
        after, bound = best, least
