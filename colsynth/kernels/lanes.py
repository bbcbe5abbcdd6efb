"""Lanes, the threadblocks of every rank while they are being filled, as arrays.

A lane is a rank, a channel, at most one pair of ranks that it receives from and one that it
sends to. A pair on a channel is a connection and belongs to one lane at each end. Hops, the
steps of a chain, are rows of numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

RANK, INTO, OUT, WAY, WEIGHT, CHUNKS, FIRST, SECOND = range(8)
"""Columns of a hop: its rank; the pairs it receives from and sends to; the way of the latter;
the steps it needs, the chunks it moves; the operations it performs. -1 stands for none."""

AT, CHANNEL, FROM, TO, LOAD, MOVED, COPIED, NEXT, NEXT_LOCAL = range(9)
"""Columns of a lane: its rank and channel, the pairs it receives from and sends to, its steps,
the chunks it moves and those it copies on its rank alone, the lane opened next on the same rank
and channel, the next one without peers on the same rank."""

FIRST_OPEN, LAST_OPEN, OPENED = range(3)
"""Columns of a rank's channel, and of a rank's lanes without peers: first and last of them, and
how many there are (of a rank: of all kinds)."""

NONE, CONFLICT = -1, -2
"""No lane yet, and none possible."""

FEWEST, EVEN, PAIRED = range(3)
"""How lanes are chosen: as few as suffice, as many as each way needs, or in pairs too."""

THREADBLOCKS, STEPS, MOST, CHANNELS, PER_CHANNEL, STRIDE, SHARE = range(7)
"""Places of `Rules.limits`."""


class Rules(NamedTuple):
    """What lanes must respect.

    Parameters
    ----------
    limits : int64 (7,)
        `THREADBLOCKS` of a rank, `STEPS` and `MOST` chunks of a lane, `CHANNELS`, lanes
        `PER_CHANNEL` of a rank; a chain takes every `STRIDE`-th channel from its first; a lane
        may `SHARE`, serve two unrelated connections, or not (0).
    mode : int
    needs : int64 (W,)
        Lanes that each way needs, where they share its chunks evenly.
    partner : int64 (P,)
        The pair that is received from where a lane sends to a pair, -1 for none.
    """

    limits: np.ndarray
    mode: int
    needs: np.ndarray
    partner: np.ndarray


class Lanes(NamedTuple):
    """All lanes of a program, numbered as they were opened.

    Parameters
    ----------
    size : int64 (2,)
        Lanes so far, and hops so far.
    lane : int64 (L, 9)
    seats : int64 (R, C, 3)
        Lanes by rank and channel.
    local : int64 (R, 3)
        Lanes by rank.
    ends : int32 (P, C, 2)
        The lanes that receive and send on each connection.
    carried : int64 (W, C)
        Chunks of each way by channel, -1 where the channel does not serve it.
    served : int64 (W,)
        Channels that serve each way.
    hops : int64 (N, 3)
        Lane and operations of each hop.
    holder : int64 (N,)
        The lane of each operation.
    """

    size: np.ndarray
    lane: np.ndarray
    seats: np.ndarray
    local: np.ndarray
    ends: np.ndarray
    carried: np.ndarray
    served: np.ndarray
    hops: np.ndarray
    holder: np.ndarray


@njit(cache=True, nogil=True)
def no_lanes(ops, ranks, channels, pairs, ways):
    """Return lanes with room for so many operations, ranks, channels, pairs and ways."""
    lane = np.zeros((ops, 9), np.int64)
    lane[:, FROM], lane[:, TO], lane[:, NEXT], lane[:, NEXT_LOCAL] = NONE, NONE, NONE, NONE
    seats = np.full((ranks, channels, 3), NONE)
    local = np.full((ranks, 3), NONE)
    seats[:, :, OPENED] = 0
    local[:, OPENED] = 0
    return Lanes(
        np.zeros(2, np.int64),
        lane,
        seats,
        local,
        np.full((pairs, channels, 2), np.int32(NONE)),
        np.full((ways, channels), NONE),
        np.zeros(ways, np.int64),
        np.empty((ops, 3), np.int64),
        np.full(ops, NONE),
    )


@njit(cache=True, nogil=True)
def weigh(lanes, rules, chain, channel):
    """Return how many lanes a chain opens on a channel, and the most chunks of those it joins.

    `CONFLICT` stands for the former where it cannot go there.
    """
    new = peak = 0
    limits = rules.limits
    for k in range(chain.shape[0]):
        found = _find(lanes.lane, lanes.seats, lanes.ends, rules, chain, k, channel)
        if found == CONFLICT:
            return CONFLICT, 0
        if found >= 0:
            if not _has_room(lanes.lane, limits, found, chain, k):
                return CONFLICT, 0
            peak = max(peak, lanes.lane[found, MOVED])
            continue
        new += 1
        rank = chain[k, RANK]
        if lanes.seats[rank, channel, OPENED] >= limits[PER_CHANNEL]:
            return CONFLICT, 0
        if lanes.local[rank, OPENED] >= limits[THREADBLOCKS]:
            return CONFLICT, 0
    return new, peak


@njit(cache=True, nogil=True)
def _has_room(lane, limits, number, chain, k):
    """Return whether a lane has room for a hop that moves something."""
    moved = lane[number, MOVED]
    if moved > 0 and moved + chain[k, CHUNKS] > limits[MOST]:
        return False
    return lane[number, LOAD] + chain[k, WEIGHT] <= limits[STEPS]


@njit(cache=True, nogil=True)
def _find(lane, seats, ends, rules, chain, k, channel):
    """Return the lane a hop must use, `NONE` for a new one, `CONFLICT` where peers conflict."""
    into, out = chain[k, INTO], chain[k, OUT]
    receiver = ends[into, channel, 0] if into >= 0 else NONE
    sender = ends[out, channel, 1] if out >= 0 else NONE
    if into < 0 or out < 0 or receiver == sender:
        found = receiver if sender == NONE else sender
        if found == NONE and rules.limits[SHARE]:
            return _spare(lane, seats, rules, chain, k, channel)
        return found
    if receiver == NONE:
        return sender if lane[sender, FROM] == NONE else CONFLICT
    return receiver if sender == NONE and lane[receiver, TO] == NONE else CONFLICT


@njit(cache=True, nogil=True)
def _spare(lane, seats, rules, chain, k, channel):
    """Return a lane of the channel that may serve a hop's connection beside another one."""
    number = seats[chain[k, RANK], channel, FIRST_OPEN]
    while number != NONE:
        into, out = chain[k, INTO], chain[k, OUT]
        if rules.mode == PAIRED:
            into = lane[number, FROM] if into < 0 else into
            out = lane[number, TO] if out < 0 else out
            free = into >= 0 and out >= 0 and rules.partner[out] == into
        else:
            free = (into < 0 or lane[number, FROM] == NONE) and (
                out < 0 or lane[number, TO] == NONE
            )
        if free and _has_room(lane, rules.limits, number, chain, k):
            return number
        number = lane[number, NEXT]
    return NONE


@njit(cache=True, nogil=True)
def put(lanes, rules, chain, channel):
    """Add a chain to a channel where it fits."""
    if rules.mode != FEWEST:
        _carry(lanes, chain, channel)
    for k in range(chain.shape[0]):
        number = _find(lanes.lane, lanes.seats, lanes.ends, rules, chain, k, channel)
        if number == NONE:
            number = _open(lanes, chain[k, RANK], channel)
        _add(lanes, number, chain[k])
        lanes.lane[number, MOVED] += chain[k, CHUNKS]
        into, out = chain[k, INTO], chain[k, OUT]
        if into >= 0:
            lanes.lane[number, FROM] = into
            lanes.ends[into, channel, 0] = number
        if out >= 0:
            lanes.lane[number, TO] = out
            lanes.ends[out, channel, 1] = number


@njit(cache=True, nogil=True)
def _carry(lanes, chain, channel):
    """Note that a channel carries the chunks of a chain."""
    for k in range(chain.shape[0] - 1):
        way = chain[k, WAY]
        if lanes.carried[way, channel] == NONE:
            lanes.carried[way, channel] = 0
            lanes.served[way] += 1
        lanes.carried[way, channel] += chain[k, CHUNKS]


@njit(cache=True, nogil=True)
def put_behind(lanes, rules, hop, number):
    """Add a local hop to a given lane; return whether it had room."""
    if lanes.lane[number, LOAD] + hop[WEIGHT] > rules.limits[STEPS]:
        return False
    _add(lanes, number, hop)
    return True


@njit(cache=True, nogil=True)
def put_local(lanes, rules, hop, channel):
    """Add a local hop to a lane that has no peers: the one with least, if there is room.

    Where a limit of chunks spreads the work, a further lane is opened beyond it as long as
    there may be more.
    """
    lane, rank = lanes.lane, hop[RANK]
    more = lanes.local[rank, OPENED] < rules.limits[THREADBLOCKS]
    number = _next_local(lane, lanes.local[rank, FIRST_OPEN], NONE)
    while number != NONE:
        full = more and lane[number, COPIED] + hop[CHUNKS] > rules.limits[MOST]
        if not full and put_behind(lanes, rules, hop, number):
            lane[number, COPIED] += hop[CHUNKS]
            return
        number = _next_local(lane, lanes.local[rank, FIRST_OPEN], number)
    number = _open(lanes, rank, _roomy(lanes, rules, rank, channel))
    _chain_up(lane, lanes.local[rank], NEXT_LOCAL, number)
    lane[number, COPIED] += hop[CHUNKS]
    _add(lanes, number, hop)


@njit(cache=True, nogil=True)
def _next_local(lane, first, tried):
    """Return the lane without peers that has copied least after one that was tried."""
    best, other = NONE, first
    while other != NONE:
        copied = lane[other, COPIED]
        new = tried == NONE or copied > lane[tried, COPIED]
        new |= tried != NONE and copied == lane[tried, COPIED] and other > tried
        if new and (best == NONE or copied < lane[best, COPIED]):
            best = other
        other = lane[other, NEXT_LOCAL]
    return best


@njit(cache=True, nogil=True)
def _roomy(lanes, rules, rank, channel):
    """Return the first channel from the given one on that takes another lane of a rank."""
    for other in range(channel, rules.limits[CHANNELS]):
        if lanes.seats[rank, other, OPENED] < rules.limits[PER_CHANNEL]:
            return other
    return channel


@njit(cache=True, nogil=True)
def _add(lanes, number, hop):
    """Append a hop to a lane."""
    lanes.lane[number, LOAD] += hop[WEIGHT]
    place = lanes.size[1]
    lanes.size[1] += 1
    lanes.hops[place, 0] = number
    lanes.hops[place, 1], lanes.hops[place, 2] = hop[FIRST], hop[SECOND]
    lanes.holder[hop[FIRST]] = number
    if hop[SECOND] >= 0:
        lanes.holder[hop[SECOND]] = number


@njit(cache=True, nogil=True)
def _open(lanes, rank, channel):
    """Open a lane and return its number."""
    number = lanes.size[0]
    lanes.size[0] += 1
    lanes.lane[number, AT], lanes.lane[number, CHANNEL] = rank, channel
    lanes.local[rank, OPENED] += 1
    lanes.seats[rank, channel, OPENED] += 1
    _chain_up(lanes.lane, lanes.seats[rank, channel], NEXT, number)
    return number


@njit(cache=True, nogil=True)
def _chain_up(lane, ends, following, number):
    """Append a lane to a list, of which the first and the last are known."""
    if ends[FIRST_OPEN] == NONE:
        ends[FIRST_OPEN] = number
    else:
        lane[ends[LAST_OPEN], following] = number
    ends[LAST_OPEN] = number
