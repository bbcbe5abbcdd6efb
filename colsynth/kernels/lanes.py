"""Lanes, the threadblocks of every rank while they are being filled, as arrays.

A lane is a rank, a channel, at most one pair of ranks that it receives from and one that it
sends to. A pair on a channel is a connection and belongs to one lane at each end. Hops, the
steps of a chain, are rows of numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

RANK, INTO, OUT, WAY, WEIGHT, CHUNKS, FIRST, SECOND = range(8)
"""Columns of a hop: its rank; the pairs it receives from and sends to; the way of the latter;
the steps it needs, the chunks it moves; the operations it performs. -1 stands for none."""

NONE, CONFLICT = -1, -2
"""No lane yet, and none possible."""

FEWEST, EVEN, PAIRED = range(3)
"""How lanes are chosen: as few as suffice, as many as each way needs, or in pairs too."""


class Rules(NamedTuple):
    """What lanes must respect.

    Parameters
    ----------
    threadblocks, steps, channels, per_channel, chunks : int
        As in `colsynth.lowering.lanes.Limits`.
    stride : int
        A chain takes every so many-th channel from its first.
    share : bool
        Whether a lane may serve two unrelated connections.
    mode : int
    needs : int64 (W,)
        Lanes that each way needs, where they share its chunks evenly.
    partner : int64 (P,)
        The pair that is received from where a lane sends to a pair, -1 for none.
    """

    threadblocks: int
    steps: int
    channels: int
    per_channel: int
    chunks: int
    stride: int
    share: bool
    mode: int
    needs: np.ndarray
    partner: np.ndarray


class Lanes(NamedTuple):
    """All lanes of a program, numbered as they were opened.

    Parameters
    ----------
    size : int64 (2,)
        Lanes so far, and hops so far.
    rank, channel, into, out : int64 (L,)
    load, chunks, copied : int64 (L,)
        Steps, chunks moved, chunks copied without a connection.
    next_open, next_local : int64 (L,)
        The next lane of the same rank and channel, and of the same rank without peers.
    first_open, last_open, on_channel : int64 (R, C)
    first_local, last_local, on_rank : int64 (R,)
    receiver, sender : int32 (P, C)
        The lane of each connection at either end.
    carried : int64 (W, C)
        Chunks of each way by channel, -1 where the channel does not serve it.
    served : int64 (W,)
        Channels that serve each way.
    hop_lane, hop_first, hop_second : int64 (N,)
        Lane and operations of each hop.
    holder : int64 (N,)
        The lane of each operation.
    """

    size: np.ndarray
    rank: np.ndarray
    channel: np.ndarray
    into: np.ndarray
    out: np.ndarray
    load: np.ndarray
    chunks: np.ndarray
    copied: np.ndarray
    next_open: np.ndarray
    next_local: np.ndarray
    first_open: np.ndarray
    last_open: np.ndarray
    on_channel: np.ndarray
    first_local: np.ndarray
    last_local: np.ndarray
    on_rank: np.ndarray
    receiver: np.ndarray
    sender: np.ndarray
    carried: np.ndarray
    served: np.ndarray
    hop_lane: np.ndarray
    hop_first: np.ndarray
    hop_second: np.ndarray
    holder: np.ndarray


@njit(cache=True, nogil=True)
def no_lanes(ops, ranks, channels, pairs, ways):
    """Return lanes with room for so many operations, ranks, channels, pairs and ways."""
    return Lanes(
        size=np.zeros(2, np.int64),
        rank=np.empty(ops, np.int64),
        channel=np.empty(ops, np.int64),
        into=np.full(ops, NONE),
        out=np.full(ops, NONE),
        load=np.zeros(ops, np.int64),
        chunks=np.zeros(ops, np.int64),
        copied=np.zeros(ops, np.int64),
        next_open=np.full(ops, NONE),
        next_local=np.full(ops, NONE),
        first_open=np.full((ranks, channels), NONE),
        last_open=np.full((ranks, channels), NONE),
        on_channel=np.zeros((ranks, channels), np.int64),
        first_local=np.full(ranks, NONE),
        last_local=np.full(ranks, NONE),
        on_rank=np.zeros(ranks, np.int64),
        receiver=np.full((pairs, channels), np.int32(NONE)),
        sender=np.full((pairs, channels), np.int32(NONE)),
        carried=np.full((ways, channels), NONE),
        served=np.zeros(ways, np.int64),
        hop_lane=np.empty(ops, np.int64),
        hop_first=np.empty(ops, np.int64),
        hop_second=np.empty(ops, np.int64),
        holder=np.full(ops, NONE),
    )


@njit(cache=True, nogil=True)
def new_lanes(lanes, rules, chain, channel):
    """Return how many lanes a chain would open on a channel, `CONFLICT` where it cannot go."""
    new = 0
    for k in range(chain.shape[0]):
        hop = chain[k]
        found = _find(lanes, rules, hop, channel)
        if found == CONFLICT:
            return CONFLICT
        if found == NONE:
            new += 1
            if lanes.on_channel[hop[RANK], channel] >= rules.per_channel:
                return CONFLICT
            if lanes.on_rank[hop[RANK]] >= rules.threadblocks:
                return CONFLICT
        elif not _has_room(lanes, rules, found, hop):
            return CONFLICT
    return new


@njit(cache=True, nogil=True)
def peak(lanes, rules, chain, channel):
    """Return the most chunks that a lane of a chain has before it is there."""
    most = 0
    for k in range(chain.shape[0]):
        found = _find(lanes, rules, chain[k], channel)
        if found >= 0:
            most = max(most, lanes.chunks[found])
    return most


@njit(cache=True, nogil=True)
def _has_room(lanes, rules, lane, hop):
    """Return whether a lane has room for a hop that moves something."""
    moved = lanes.chunks[lane]
    if moved > 0 and moved + hop[CHUNKS] > rules.chunks:
        return False
    return lanes.load[lane] + hop[WEIGHT] <= rules.steps


@njit(cache=True, nogil=True)
def _find(lanes, rules, hop, channel):
    """Return the lane a hop must use, `NONE` for a new one, `CONFLICT` where peers conflict."""
    receiver = sender = NONE
    if hop[INTO] >= 0:
        receiver = lanes.receiver[hop[INTO], channel]
    if hop[OUT] >= 0:
        sender = lanes.sender[hop[OUT], channel]
    if hop[INTO] < 0 or hop[OUT] < 0 or receiver == sender:
        found = receiver if sender == NONE else sender
        return _spare(lanes, rules, hop, channel) if found == NONE else found
    if receiver == NONE:
        return sender if lanes.into[sender] == NONE else CONFLICT
    return receiver if sender == NONE and lanes.out[receiver] == NONE else CONFLICT


@njit(cache=True, nogil=True)
def _spare(lanes, rules, hop, channel):
    """Return a lane of the channel that may serve a hop's connection beside another one."""
    if not rules.share:
        return NONE
    lane = lanes.first_open[hop[RANK], channel]
    while lane != NONE:
        into, out = lanes.into[lane], lanes.out[lane]
        if rules.mode == PAIRED:
            into = into if hop[INTO] < 0 else hop[INTO]
            out = out if hop[OUT] < 0 else hop[OUT]
            free = into >= 0 and out >= 0 and rules.partner[out] == into
        else:
            free = (hop[INTO] < 0 or into == NONE) and (hop[OUT] < 0 or out == NONE)
        if free and _has_room(lanes, rules, lane, hop):
            return lane
        lane = lanes.next_open[lane]
    return NONE


@njit(cache=True, nogil=True)
def put(lanes, rules, chain, channel):
    """Add a chain to a channel where it fits."""
    if rules.mode != FEWEST:
        for k in range(chain.shape[0] - 1):
            way = chain[k, WAY]
            if lanes.carried[way, channel] == NONE:
                lanes.carried[way, channel] = 0
                lanes.served[way] += 1
            lanes.carried[way, channel] += chain[k, CHUNKS]
    for k in range(chain.shape[0]):
        hop = chain[k]
        lane = _find(lanes, rules, hop, channel)
        if lane == NONE:
            lane = _open(lanes, hop[RANK], channel)
        _add(lanes, lane, hop)
        lanes.chunks[lane] += hop[CHUNKS]
        if hop[INTO] >= 0:
            lanes.into[lane] = hop[INTO]
            lanes.receiver[hop[INTO], channel] = lane
        if hop[OUT] >= 0:
            lanes.out[lane] = hop[OUT]
            lanes.sender[hop[OUT], channel] = lane


@njit(cache=True, nogil=True)
def put_behind(lanes, rules, hop, lane):
    """Add a local hop to a given lane; return whether it had room."""
    if lanes.load[lane] + hop[WEIGHT] > rules.steps:
        return False
    _add(lanes, lane, hop)
    return True


@njit(cache=True, nogil=True)
def put_local(lanes, rules, hop, channel):
    """Add a local hop to a lane that has no peers: the one with least, if there is room.

    Where a limit of chunks spreads the work, a further lane is opened beyond it as long as
    there may be more.
    """
    rank = hop[RANK]
    more = lanes.on_rank[rank] < rules.threadblocks
    after, bound = NONE, NONE  # the lane tried last, and what it had copied
    while True:
        lane, least = NONE, 0
        other = lanes.first_local[rank]
        while other != NONE:
            copied = lanes.copied[other]
            further = copied > bound or (copied == bound and other > after)
            if further and (lane == NONE or copied < least):
                lane, least = other, copied
            other = lanes.next_local[other]
        if lane == NONE:
            break
        full = more and lanes.copied[lane] + hop[CHUNKS] > rules.chunks
        if not full and put_behind(lanes, rules, hop, lane):
            lanes.copied[lane] += hop[CHUNKS]
            return
        after, bound = lane, least
    lane = _open(lanes, rank, _roomy(lanes, rules, rank, channel))
    if lanes.first_local[rank] == NONE:
        lanes.first_local[rank] = lane
    else:
        lanes.next_local[lanes.last_local[rank]] = lane
    lanes.last_local[rank] = lane
    lanes.copied[lane] += hop[CHUNKS]
    _add(lanes, lane, hop)


@njit(cache=True, nogil=True)
def _roomy(lanes, rules, rank, channel):
    """Return the first channel from the given one on that takes another lane of a rank."""
    for other in range(channel, rules.channels):
        if lanes.on_channel[rank, other] < rules.per_channel:
            return other
    return channel


@njit(cache=True, nogil=True)
def _add(lanes, lane, hop):
    """Append a hop to a lane."""
    lanes.load[lane] += hop[WEIGHT]
    number = lanes.size[1]
    lanes.size[1] += 1
    lanes.hop_lane[number] = lane
    lanes.hop_first[number], lanes.hop_second[number] = hop[FIRST], hop[SECOND]
    lanes.holder[hop[FIRST]] = lane
    if hop[SECOND] >= 0:
        lanes.holder[hop[SECOND]] = lane


@njit(cache=True, nogil=True)
def _open(lanes, rank, channel):
    """Open a lane and return its number."""
    lane = lanes.size[0]
    lanes.size[0] += 1
    lanes.rank[lane], lanes.channel[lane] = rank, channel
    lanes.on_rank[rank] += 1
    lanes.on_channel[rank, channel] += 1
    if lanes.first_open[rank, channel] == NONE:
        lanes.first_open[rank, channel] = lane
    else:
        lanes.next_open[lanes.last_open[rank, channel]] = lane
    lanes.last_open[rank, channel] = lane
    return lane
