"""Hops as the event kernels want them, and their empty agenda."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import group_by, offsets
from colsynth.kernels.events import Agenda, Fabric, push_all
from colsynth.model import Hops

Ints = NDArray[np.int64]


def fabric_of(hops: Hops, gpus: int, links: int) -> Fabric:
    """Return the hops with their lookups by GPU and by shared link."""
    out_first, out = group_by(hops.source, gpus)
    duration = hops.duration
    # A hop of one link that nobody else uses is free when its chunk arrives.
    prompt = (np.diff(hops.first) == 1) & (hops.stride == duration)
    hops = _without_followers(hops, links)
    hop = np.repeat(np.arange(len(hops)), np.diff(hops.first))
    alone = prompt[hop] & (np.bincount(hops.links, minlength=links) == 1)[hops.links]
    user_first, order = group_by(hops.links, links)
    pairs = np.unique(np.stack((hops.links, hops.begin), axis=1)[~alone], axis=0)
    return Fabric(
        source=hops.source,
        target=hops.target,
        duration=duration,
        first=hops.first,
        links=hops.links,
        begin=hops.begin,
        end=hops.end,
        into=np.searchsorted(hops.target, np.arange(gpus + 1)).astype(np.int64),
        out_first=out_first,
        out=out.astype(np.int32),
        user_first=user_first,
        user=hop[order].astype(np.int32),
        offset_first=group_by(pairs[:, 0], links)[0],
        offset=pairs[:, 1].astype(np.int64),
    )


def _without_followers(hops: Hops, links: int) -> Hops:
    """Return the hops without links that are free whenever another one is.

    Links used by the same hops, each always equally late, fall free together but for
    a constant; the one that is occupied longest stands for all of them.
    """
    user_first, order = group_by(hops.links, links)
    hop = np.repeat(np.arange(len(hops)), np.diff(hops.first))[order]
    begin, end = hops.begin[order], hops.end[order]
    leader: dict[bytes, tuple[int, int]] = {}
    for link in range(links):
        used = slice(user_first[link], user_first[link + 1])
        if used.start < used.stop and (begin[used] == begin[used][0]).all():
            key, held = hop[used].tobytes(), int(end[used][0] - begin[used][0])
            if key not in leader or held > leader[key][0]:
                leader[key] = held, link
    leads = np.zeros(links, np.bool_)
    leads[[link for _, link in leader.values()]] = True
    uneven = np.zeros(links, np.bool_)
    np.logical_or.at(uneven, hops.links, hops.begin != _first_begin(hops, links)[hops.links])
    keep = (leads | uneven)[hops.links]
    sizes = np.add.reduceat(keep, hops.first[:-1])
    return replace(
        hops,
        first=offsets(sizes),
        links=hops.links[keep],
        begin=hops.begin[keep],
        end=hops.end[keep],
    )


def _first_begin(hops: Hops, links: int) -> Ints:
    """Return how late the first of its hops uses each link."""
    begin = np.zeros(links, np.int64)
    begin[hops.links[::-1]] = hops.begin[::-1]
    return begin


def _most_events(fabric: Fabric, links: int, room: int) -> int:
    """Return a number that events of at most `room` transfers on their way never exceed.

    Each has its arrival and, for each of its links and each way of using that, an event.
    Transfers on their way end within the longest use of a link, and apart from each other
    by as long as each occupies it; the same holds for the arrivals of a hop.
    """
    ways = np.diff(fabric.offset_first)
    held = fabric.end - fabric.begin
    stride = np.maximum.reduceat(held, fabric.first[:-1])
    arrivals = int((fabric.duration // stride + 2).sum())
    last, least = np.zeros(links, np.int64), np.full(links, np.iinfo(np.int64).max)
    np.maximum.at(last, fabric.links, fabric.end)
    np.minimum.at(least, fabric.links, held)
    freed = int(((last // least + 2) * ways).sum())
    each = int(np.add.reduceat(ways[fabric.links], fabric.first[:-1]).max())
    return min(arrivals, room) + min(freed, room * each)


def agenda_of(fabric: Fabric, busy: Ints, room: int, born: Ints, turn: int) -> Agenda:
    """Return an agenda on which only the chunks of the beginning stand.

    Parameters
    ----------
    fabric : Fabric
    busy : int64 (links,)
        When each link first falls free.
    room : int
        Most transfers.
    born : int64 (R,)
        When each chunk of the beginning is there.
    turn : int
        Which target chooses first.
    """
    hops, links = len(fabric.source), len(busy)
    begin = len(born) + links + int(fabric.offset_first[-1])
    events = begin + _most_events(fabric, links, room)
    agenda = Agenda(
        busy=busy.copy(),
        pointer=np.zeros(len(fabric.into) - 1, np.int32),
        heap_time=np.empty(events, np.int64),
        heap_what=np.empty(events, np.int64),
        start=np.empty(room, np.int64),
        hop=np.empty(room, np.int32),
        chunk=np.empty(room, np.int32),
        waiting=np.zeros(hops, np.bool_),
        queue=np.empty(hops, np.int32),
        scalars=np.array([0, 0, 0, turn]),
    )
    heap = agenda.heap_time, agenda.heap_what, agenda.scalars
    push_all(*heap, born, room + np.arange(len(born)))
    link = np.repeat(np.arange(links), np.diff(fabric.offset_first))
    alone = np.nonzero(np.diff(fabric.offset_first) == 0)[0]
    free = np.maximum(0, np.concatenate((busy[link] - fabric.offset, busy[alone])))
    link = np.concatenate((link, alone))
    push_all(*heap, free[free > 0], -1 - link[free > 0])
    return agenda
