"""Max-min fair rates of flows on links they share, kept up to date as flows come and go.

Every link has a level: what a flow may take of it. Flows that are limited to less by their
own cap or by the level of another link take that, and the level is what the others share
equally; it is infinite where all of them are limited to less. A flow's rate is the least of
its cap and of the levels on its route. Levels that agree with each other are the max-min
fair allocation (Bertsekas and Gallager, Data Networks, 6.5.2; local updates of levels as in
Charny, Clark and Jain 1995).

An arrival or departure puts the links of its route into a queue; a level that changes puts
those links into it whose flows it limits. Changes within `TOLERANCE` are let be, upwards by
keeping the lower level and downwards by not telling other links, so what a link carries
never exceeds its capacity, and flows get at least 1 - `TOLERANCE` of their share wherever
levels settle. A link that was visited `MOST_VISITS` times in one moment shares equally among
all its flows until it is next touched, which is safe whatever the other levels are.

Flows of a link are a swap-removal list: flow i of link l is ``member[base[l] + i]``, an index
into the concatenated routes, for i below ``load[l]``.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

TOLERANCE = 1e-3
MOST_VISITS = 8


@njit(cache=True, nogil=True)
def enter(first, route, place, base, load, member, c):
    """Add the flow on connection c to the links of its route."""
    for h in range(first[c], first[c + 1]):
        link = route[h]
        at = base[link] + load[link]
        member[at] = h
        place[h] = at
        load[link] += 1


@njit(cache=True, nogil=True)
def leave(first, route, place, base, load, member, c):
    """Remove the flow on connection c from the links of its route."""
    for h in range(first[c], first[c + 1]):
        link = route[h]
        load[link] -= 1
        last = member[base[link] + load[link]]
        member[place[h]] = last
        place[last] = place[h]


@njit(cache=True, nogil=True)
def _fair_level(link, capacity, first, route, owner, base, load, member, level, most, limits):
    """Return the level of a link, given the caps of its flows and the other levels."""
    # Without `min` and with no count of zero nothing can raise: numba counts no references.
    count = load[link]
    total = 0.0
    for i in range(count):
        h = member[base[link] + i]
        c = owner[h]
        limit = most[c]
        for k in range(first[c], first[c + 1]):
            if route[k] != link and level[route[k]] < limit:
                limit = level[route[k]]
        limits[i] = limit
        total += limit
    room = capacity[link]
    if count == 0 or total <= room:
        return np.inf
    share = room / count
    while True:
        taken, free = 0.0, 0
        for i in range(count):
            if limits[i] <= share:
                taken += limits[i]
            else:
                free += 1
        if free == 0:
            break
        grown = (room - taken) / free
        if grown <= share * (1.0 + 1e-12):
            break
        share = grown
    return share


@njit(cache=True, nogil=True)
def settle(
    queue, count, queued, visits, touched,
    capacity, first, route, owner, base, load, member, level, most, limits,
    stale, stale_list, found,
):  # fmt: skip
    """Bring the levels up to date, given the links in the queue.

    Parameters
    ----------
    queue : int32 (L,)
        Ring of links to look at, `count` of them from the front; `queued` marks them.
    visits, touched : int32 (L,), int32 (L,)
        All zero; scratch.
    capacity, level : float64 (L,)
    first, route, owner : int64 (C + 1,), int32, int32
        Links of each connection, and the connection of each such entry.
    base, load, member : int64 (L,), int32 (L,), int32
        Flows of each link.
    most : float64 (C,)
        Cap of each flow.
    limits : float64
        Scratch, as long as the longest list of flows.
    stale, stale_list, found : bool (C,), int32 (C,), int
        Flows whose rate may have changed: marks, and a list of `found` to begin with.

    Returns
    -------
    int
        How many flows are in the list.
    """
    head, changed, room = 0, 0, queue.size
    while count > 0:
        link = queue[head]
        head = (head + 1) % room
        count -= 1
        queued[link] = False
        if visits[link] == 0:
            touched[changed] = link
            changed += 1
        visits[link] += 1
        old = level[link]
        if load[link] == 0:
            level[link] = np.inf
            continue
        if visits[link] > MOST_VISITS:
            new = capacity[link] / load[link]
        else:
            new = _fair_level(
                link, capacity, first, route, owner, base, load, member, level, most, limits
            )
            if old < new <= old * (1.0 + TOLERANCE):
                new = old
        level[link] = new
        if new != old:
            for i in range(load[link]):
                c = owner[member[base[link] + i]]
                if not stale[c]:
                    stale[c] = True
                    stale_list[found] = c
                    found += 1
        if new == old or (new < old and new >= old * (1.0 - TOLERANCE)):
            continue
        least = min(new, old)
        for i in range(load[link]):
            c = owner[member[base[link] + i]]
            if most[c] <= least:
                continue
            for k in range(first[c], first[c + 1]):
                other = route[k]
                if other == link or queued[other] or visits[other] > MOST_VISITS:
                    continue
                if least < level[other] and (new > old or level[other] < np.inf):
                    queue[(head + count) % room] = other
                    queued[other] = True
                    count += 1
    for i in range(changed):
        visits[touched[i]] = 0
    return found


@njit(cache=True, nogil=True)
def rate_of(c, first, route, level, most):
    """Return the rate of the flow on connection c, and the link that limits it (-1: none)."""
    rate, limiting = most[c], -1
    for k in range(first[c], first[c + 1]):
        if level[route[k]] < rate:
            rate, limiting = level[route[k]], route[k]
    return rate, limiting
