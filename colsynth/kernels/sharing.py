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
into the concatenated routes, for i below ``load[l]``. What a look at all flows of a link needs
lies beside it in the same order, since that takes most of the time: the connection (``flow``), its
cap (``ceiling``), and the other link of its route (``across``), as most routes have two.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

TOLERANCE = 1e-3
MOST_VISITS = 8


@njit(cache=True, nogil=True, allocates=True)
def other_links(first, route, links):
    """Return the other link on the route of each entry, int32.

    It is `links`, whose level is infinite, on a route of one link, and -1 on a route of more than
    two.
    """
    other = np.full(route.size, -1, np.int32)
    for c in range(first.size - 1):
        begin = first[c]
        if first[c + 1] - begin == 1:
            other[begin] = links
        elif first[c + 1] - begin == 2:
            other[begin], other[begin + 1] = route[begin + 1], route[begin]
    return other


@njit(cache=True, nogil=True)
def enter(first, route, other, most, place, base, load, member, flow, across, ceiling, c):
    """Add the flow on connection c to the links of its route."""
    for h in range(first[c], first[c + 1]):
        link = route[h]
        at = base[link] + load[link]
        member[at], flow[at], across[at], ceiling[at] = h, c, other[h], most[c]
        place[h] = at
        load[link] += 1


@njit(cache=True, nogil=True)
def leave(first, route, place, base, load, member, flow, across, ceiling, c):
    """Remove the flow on connection c from the links of its route."""
    for h in range(first[c], first[c + 1]):
        link = route[h]
        load[link] -= 1
        last, at = base[link] + load[link], place[h]
        member[at], flow[at] = member[last], flow[last]
        across[at], ceiling[at] = across[last], ceiling[last]
        place[member[at]] = at


@njit(cache=True, nogil=True)
def _fair_level(link, capacity, first, route, base, load, flow, across, ceiling, level, limits):
    """Return the level of a link, given the caps of its flows and the other levels."""
    count, start, room = load[link], base[link], capacity[link]
    total = 0.0
    for i in range(count):
        at = start + i
        limit = ceiling[at]
        if across[at] >= 0:
            beyond = level[across[at]]
            limit = beyond if beyond < limit else limit
        else:
            c = flow[at]
            for k in range(first[c], first[c + 1]):
                if route[k] != link and level[route[k]] < limit:
                    limit = level[route[k]]
        limits[i] = limit
        total += limit
    if count == 0 or total <= room:
        return np.inf
    share = room / count
    while True:
        taken, free, following = 0.0, 0, np.inf
        for i in range(count):
            limit = limits[i]
            if limit <= share:
                taken += limit
            else:
                free += 1
                following = limit if limit < following else following
        if free == 0:
            break
        grown = (room - taken) / free
        if grown <= share * (1.0 + 1e-12):
            break
        share = grown
        if share < following:
            break
    return share


@njit(cache=True, nogil=True)
def settle(
    queue, count, queued, visits, touched,
    capacity, first, route, base, load, flow, across, ceiling, level, limits,
    rate, stale, stale_list, found,
):  # fmt: skip
    """Bring the levels up to date, given the links in the queue.

    Parameters
    ----------
    queue : int32 (L,)
        Ring of links to look at, `count` of them from the front; `queued` marks them.
    visits, touched : int32 (L,), int32 (L,)
        All zero; scratch.
    capacity : float64 (L,)
    first, route : int64 (C + 1,), int32
        Links of each connection.
    base, load : int64 (L,), int32 (L,)
        Flows of each link.
    flow, across, ceiling : int32, int32, float64
        Connection, other link and cap of each such flow.
    level : float64 (L + 1,)
        The last one is infinite, for routes without another link.
    limits : float64
        Scratch, as long as the longest list of flows.
    rate : float64 (C,)
        Of each flow, with the levels before; 0 for a new one.
    stale, stale_list, found : bool (C,), int32 (C,), int
        Flows whose rate may have changed: marks, and a list of `found` to begin with.

    Returns
    -------
    int
        How many flows are in the list.
    """
    head, changed, room, links = 0, 0, queue.size, capacity.size
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
                link, capacity, first, route, base, load, flow, across, ceiling, level, limits
            )
            if old < new <= old * (1.0 + TOLERANCE):
                new = old
        level[link] = new
        if new == old:
            continue
        tells = new > old or new < old * (1.0 - TOLERANCE)
        least = new if new < old else old
        for at in range(base[link], base[link] + load[link]):
            if ceiling[at] <= least:
                continue
            c = flow[at]
            if least <= rate[c] and not stale[c]:
                stale[c] = True
                stale_list[found] = c
                found += 1
            if not tells:
                continue
            begin, end = first[c], first[c + 1]
            if across[at] >= 0:
                begin, end = 0, 1
            for k in range(begin, end):
                other = across[at] if across[at] >= 0 else route[k]
                if other == link or other >= links or queued[other] or visits[other] > MOST_VISITS:
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
