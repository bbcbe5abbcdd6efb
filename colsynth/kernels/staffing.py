"""Staffing: every chain of the global order finds its lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.lanes import (
    CHANNELS,
    CHUNKS,
    CONFLICT,
    EVEN,
    FEWEST,
    FIRST,
    INTO,
    NONE,
    OPENED,
    OUT,
    RANK,
    SECOND,
    STRIDE,
    THREADBLOCKS,
    WAY,
    WEIGHT,
    no_lanes,
    put,
    put_behind,
    put_local,
    weigh,
)


class Work(NamedTuple):
    """What operations ask of lanes, in the global order: a send right before its receive.

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


@njit(cache=True, nogil=True)
def fill(work, rules, ranks, pairs, ways):
    """Place everything; return the lanes, and whether the rules allowed it.

    Parameters
    ----------
    work : Work
    rules : colsynth.kernels.lanes.Rules
    ranks, pairs, ways : int
        How many there are.
    """
    ops = work.rank.size
    channels = max(rules.limits[CHANNELS], rules.limits[STRIDE])
    lanes = no_lanes(ops, ranks, channels, pairs, ways if rules.mode != FEWEST else 0)
    shared = np.zeros(ops, np.bool_)
    for op in range(ops):
        if work.departure[op] >= 0:
            shared[work.departure[op]] = True
    chain = np.empty((ops, 8), np.int64)
    for op in range(ops):
        if work.pair[op] < 0:
            _set(chain[0], work, NONE, op)
            _place_local(lanes, rules, work, chain[0])
        elif work.sends[op] and not shared[op]:
            length = _follow(chain, work, op)
            if not _place(lanes, rules, work, chain[:length]) and not _place_parts(
                lanes, rules, work, chain, length
            ):
                return lanes, False
    for rank in range(ranks):
        if lanes.local[rank, OPENED] > rules.limits[THREADBLOCKS]:
            return lanes, False
    return lanes, True


@njit(cache=True, nogil=True)
def _set(hop, work, arrival, departure):
    """Write a hop that receives, then sends; either may be none, a local one is the latter."""
    first = departure if arrival == NONE else arrival
    hop[RANK], hop[CHUNKS] = work.rank[first], work.chunks[first]
    hop[INTO] = NONE if arrival == NONE else work.pair[arrival]
    hop[OUT] = NONE if departure == NONE else work.pair[departure]
    hop[WAY] = NONE if departure == NONE else work.way[departure]
    both = arrival >= 0 and departure >= 0
    hop[WEIGHT] = work.joint[first] if both else work.weight[first]
    hop[FIRST], hop[SECOND] = first, departure if both else NONE


@njit(cache=True, nogil=True)
def _follow(chain, work, first):
    """Write the hops of the chain that starts with a send; return how many."""
    arrival, departure, length = NONE, first, 0
    while departure != NONE:
        _set(chain[length], work, arrival, departure)
        length += 1
        arrival = departure + 1
        departure = work.departure[arrival]
    _set(chain[length], work, arrival, NONE)
    return length + 1


@njit(cache=True, nogil=True)
def _place_local(lanes, rules, work, hop):
    """Put a local step behind the arrival it follows, else on a lane without peers.

    Behind its arrival it need not wait for it.
    """
    op = hop[FIRST]
    if work.follows[op]:
        weight = hop[WEIGHT]
        hop[WEIGHT] = max(1, weight - 1)
        if put_behind(lanes, rules, hop, lanes.holder[op - 1]):
            return
        hop[WEIGHT] = weight
    put_local(lanes, rules, hop, work.channel[op])


@njit(cache=True, nogil=True)
def _place_parts(lanes, rules, work, chain, length):
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
        if not _place(lanes, rules, work, part):
            return False
    return True


@njit(cache=True, nogil=True)
def _place(lanes, rules, work, chain):
    """Place a chain on a channel; return whether one takes it."""
    first = work.channel[chain[0, FIRST]]
    if rules.mode == FEWEST:
        channel = _fewest(lanes, rules, chain, first)
    elif rules.mode == EVEN:
        channel = _least(lanes, rules, chain, first)
    else:
        channel = _lightest(lanes, rules, chain, first)
    if channel == NONE:
        return False
    put(lanes, rules, chain, channel)
    return True


@njit(cache=True, nogil=True)
def _fewest(lanes, rules, chain, first):
    """Return the channel that takes a whole chain with the fewest new lanes."""
    best, least = NONE, 0
    for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
        new, _ = weigh(lanes, rules, chain, channel)
        if new != CONFLICT and (best == NONE or new < least):
            best, least = channel, new
            if new == 0:
                break
    return best


@njit(cache=True, nogil=True)
def _least(lanes, rules, chain, first):
    """Return the channel with the least on the fullest lane of a chain.

    It is one that serves all its ways already if each has the lanes that it needs.
    """
    links = chain.shape[0] - 1
    full = True
    for k in range(links):
        full &= lanes.served[chain[k, WAY]] >= rules.needs[chain[k, WAY]]
    best, key = NONE, (True, 0, 0)
    for known in (True, False):
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            serves = False
            more = False
            for k in range(links):
                way = chain[k, WAY]
                if lanes.carried[way, channel] != NONE:
                    serves = True
                elif lanes.served[way] >= rules.needs[way]:
                    more = True
            if serves != known:
                continue
            if not known and full and best != NONE and not key[0]:
                break
            new, peak = weigh(lanes, rules, chain, channel)
            if new == CONFLICT:
                continue
            mine = (more, peak, new)
            if best == NONE or mine < key or (mine == key and channel < best):
                best, key = channel, mine
            if not known:
                break
    return best


@njit(cache=True, nogil=True)
def _lightest(lanes, rules, chain, first):
    """Return the channel on which a way carries least; a new one as long as it needs more."""
    way = chain[0, WAY]
    if lanes.served[way] < rules.needs[way]:
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            unused = lanes.carried[way, channel] == NONE
            if unused and weigh(lanes, rules, chain, channel)[0] != CONFLICT:
                return channel
    after, bound = NONE, NONE  # the channel tried last, and what it carries
    while True:
        best, least = NONE, 0
        for channel in range(first, rules.limits[CHANNELS], rules.limits[STRIDE]):
            load = lanes.carried[way, channel]
            further = load > bound or (load == bound and load != NONE and channel > after)
            if further and (best == NONE or load < least):
                best, least = channel, load
        if best == NONE or weigh(lanes, rules, chain, best)[0] != CONFLICT:
            return best
        after, bound = best, least
