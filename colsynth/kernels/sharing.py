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

Through a switch, a link has dozens of flows, and these looks are most of a simulation. They have no
branch that depends on rates, as one guessed wrong costs more than the rest of a look: what is found
is always written, and only the end of the list moves. Indices are unsigned, so that numba
need not look at their sign. Together that halves the time of a simulation there.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

TOLERANCE = 1e-3
MOST_VISITS = 8


@njit(cache=True, nogil=True, allocates=True)
def other_links(first, route, links):
    """Return the other link on the route of each entry, uint32.

    It is `links`, whose level is infinite, on a route of one link, and `links` + 1 on a route of
    more than two.
    """
    other = np.full(route.size, links + 1, np.uint32)
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
def _fair_level(link, room, begin, end, first, route, flow, across, ceiling, level, limits):
    """Return the level of a link, given the caps of its flows and the other levels.

    `begin` and `end` bound its flows in the lists, as uint64; there is one at least. Flows are
    small if they are limited to less than the others' share.
    """
    others = level.size
    share = room / (end - begin)
    total, taken, small = 0.0, 0.0, 0.0
    for at in range(begin, end):
        limit = ceiling[at]
        if across[at] < others:
            beyond = level[across[at]]
            limit = beyond if beyond < limit else limit
        else:
            c = flow[at]
            for k in range(first[c], first[c + 1]):
                if route[k] != link and level[route[k]] < limit:
                    limit = level[route[k]]
        limits[at] = limit
        total += limit
        below = limit <= share
        taken += limit * below
        small += below
    if total <= room:
        return np.inf
    while small < end - begin:
        grown = (room - taken) / (end - begin - small)
        if grown <= share * (1.0 + 1e-12):
            break
        share, before = grown, small
        taken, small = 0.0, 0.0
        for at in range(begin, end):
            limit = limits[at]
            below = limit <= share
            taken += limit * below
            small += below
        if small == before:
            break
    return share


@njit(cache=True, nogil=True)
def _tell(
    link, old, new, begin, end, first, route, flow, across, ceiling, level,
    rate, stale, stale_list, listed, queue, queued, head, waiting,
):  # fmt: skip
    """List the flows, and queue the links, that a change of a link's level may concern.

    Returns how many are listed, and how many wait in the queue.
    """
    others, room = level.size, np.uint64(queue.size)
    rises, least = new > old, new if new < old else old
    tells = rises or new < old * (1.0 - TOLERANCE)
    for at in range(begin, end):
        c, other = flow[at], across[at]
        wanted = (least <= rate[c]) & (not stale[c])
        stale_list[listed] = c
        stale[c] |= wanted
        listed += np.uint64(wanted)
        if not tells:
            continue
        if other < others:
            theirs = level[other]
            wanted = (least < theirs) & (least < ceiling[at]) & (not queued[other])
            wanted &= rises | (theirs < np.inf)
            place = head + waiting
            queue[place if place < room else place - room] = other
            queued[other] |= wanted
            waiting += np.uint64(wanted)
            continue
        if ceiling[at] <= least:
            continue
        for k in range(first[c], first[c + 1]):
            other = route[k]
            if other == link or queued[other]:
                continue
            if least < level[other] and (rises or level[other] < np.inf):
                place = head + waiting
                queue[place if place < room else place - room] = other
                queued[other] = True
                waiting += np.uint64(1)
    return listed, waiting


@njit(cache=True, nogil=True)
def settle(
    queue, count, queued, visits, touched,
    capacity, first, route, base, load, flow, across, ceiling, level, limits,
    rate, stale, stale_list, found,
):  # fmt: skip
    """Bring the levels up to date, given the links in the queue.

    Parameters
    ----------
    queue, queued : uint32 (L + 1,), bool (L + 1,)
        Ring of links to look at, `count` of them from the front, and their marks; the last mark
        belongs to no link and is set, others are cleared.
    visits, touched : int32 (L,), int32 (L,)
        All zero; scratch.
    capacity : float64 (L,)
    first, route : int64 (C + 1,), uint32
        Links of each connection.
    base, load : int64 (L,), int32 (L,)
        Flows of each link.
    flow, across, ceiling : uint32, uint32, float64
        Connection, other link and cap of each such flow.
    level : float64 (L + 1,)
        The last one is infinite, for routes without another link.
    limits : float64
        Scratch, as long as all lists of flows together.
    rate : float64 (C,)
        Of each flow, with the levels before; 0 for a new one.
    stale, stale_list, found : bool (C,), uint32 (C + 1,), int
        Flows whose rate may have changed: marks, and a list of `found` to begin with.

    Returns
    -------
    int
        How many flows are in the list.
    """
    changed, room = 0, np.uint64(queue.size)
    head, waiting, listed = np.uint64(0), np.uint64(count), np.uint64(found)
    while waiting > 0:
        link = queue[head]
        head = head + np.uint64(1) if head + np.uint64(1) < room else np.uint64(0)
        waiting -= np.uint64(1)
        queued[link] = False
        if visits[link] == 0:
            touched[changed] = link
            changed += 1
        visits[link] += 1
        old = level[link]
        if load[link] == 0:
            level[link] = np.inf
            continue
        begin, end = np.uint64(base[link]), np.uint64(base[link] + load[link])
        if visits[link] > MOST_VISITS:
            new = capacity[link] / load[link]
            queued[link] = True
        else:
            new = _fair_level(
                link, capacity[link], begin, end,
                first, route, flow, across, ceiling, level, limits,
            )  # fmt: skip
            if old < new <= old * (1.0 + TOLERANCE):
                new = old
        level[link] = new
        if new == old:
            continue
        listed, waiting = _tell(
            link, old, new, begin, end, first, route, flow, across, ceiling, level,
            rate, stale, stale_list, listed, queue, queued, head, waiting,
        )  # fmt: skip
    for i in range(changed):
        visits[touched[i]] = 0
        queued[touched[i]] = False
    return np.int64(listed)


@njit(cache=True, nogil=True)
def rate_of(c, first, route, level, most):
    """Return the rate of the flow on connection c, and the link that limits it (-1: none)."""
    rate, limiting = most[c], -1
    for k in range(first[c], first[c + 1]):
        if level[route[k]] < rate:
            rate, limiting = level[route[k]], route[k]
    return rate, limiting
