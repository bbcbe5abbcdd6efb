"""Execution of a threadblock program in time, event by event.

Threadblocks run their units (steps other than nops) in order, once per tile. A unit is one
or more calls, a call one or more slices. The first slice of a unit waits for its dependencies;
every slice waits for the slice it receives, and for a free slot of the connection it sends
on. The first slice of a call then keeps its threadblock busy for a fixed time, that of a unit
with dependencies for a little more. Then a slice moves its data: over the network at the
max-min fair rate of its connection (`sharing`), or within the GPU at a rate of its own. When
it is through, the slot it received from is free for the sender after the connection's return
time, and what it sent can be received after the connection's latency.

Only threadblocks have events: one at most for each (`alarms`), by (time, number). A connection
counts the slices it holds, and knows the slots of the next slice sent and of the next taken.
Events within `INSTANT` of each other happen at once, in the order of their numbers, before
any rate is worked out anew. A flow that slows down keeps its event, which is moved when it comes
too early, as most rates change dozens of times. Times are float64 nanoseconds, data is in bytes of
payload.

Time O(slices * (log B + flows on the links of a route)) where levels settle at once.
Twin: tests/reference/simulate.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.alarms import first_of, no_events, schedule
from colsynth.kernels.compiled import njit
from colsynth.kernels.sharing import enter, leave, other_links, rate_of, settle

INSTANT = 1e-3
PASS = 1 << 32
"""Flags hold tile * PASS + ordinal, which compares first by tile, as in the runtime."""

IDLE, READY, BUSY, FLOWING, COPYING = 0, 1, 2, 3, 4
"""Phases: blocked by another threadblock, about to look, in its fixed time, moving data."""

ORDER, MESSAGE, SLOT, FLAG = 0, 1, 2, 3
"""Why a slice started when it did: it was its turn, or the last thing that was missing."""

INTEGERS, TIMES = 8, 5
"""Columns of the trace: (threadblock, unit, tile, call, slice, cause, causing slice, link)
and (when its turn came, when nothing was missing any more, begin and end of moving, bytes)."""


@njit(cache=True, nogil=True)
def execute(units, network, passes, block_end, tile_end, integers, times):
    """Run a program and fill in when it ends.

    Parameters
    ----------
    units, network, passes : Units, Network, Passes
        See `colsynth.kernels.machine`.
    block_end, tile_end : float64 (B,), float64 (tiles,)
        Filled in: when each threadblock is through, and all are with a tile; -1 for never.
    integers, times : int32 (S, INTEGERS), float64 (S, TIMES)
        Filled in where S is above zero: one row per slice, in order of completion.

    Returns
    -------
    int
        Threadblocks that did not finish.
    """
    # One loop with all in local variables: functions of the loop's parts take 25 % longer.
    (
        block_first, receives, sends, pieces, signals, ordinal, busy, speed,
        wait_first, wait_block, wait_ordinal,
    ) = units  # fmt: skip
    latency, give_back, cap, route_first, route, capacity = network
    (
        group, chunk, tile_bytes, last_tile_bytes, tiles, slices, least_slice, depth, after_wait,
    ) = passes  # fmt: skip
    blocks, links, connections = block_first.size - 1, capacity.size, latency.size
    at, tile = block_first[:-1].copy(), np.zeros(blocks, np.int64)
    call, part = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    phase = np.full(blocks, READY, np.int8)
    size = np.zeros(blocks)
    events = no_events(blocks)
    event_bits = events.view(np.int64)
    alarm = events[events.size // 2 :]
    flow_end = np.zeros(blocks)
    flag = np.full(blocks + 1, -1, np.int64)
    waiter, following = np.full(blocks + 1, -1, np.int32), np.full(blocks, -1, np.int32)
    flag_slice = np.full(blocks + 1, -1, np.int64)
    held = np.zeros(connections, np.int64)
    sending, taking = np.arange(connections) * depth, np.arange(connections) * depth
    arrival, freed = np.zeros(connections * depth), np.zeros(connections * depth)
    sent_slice = np.full(connections * depth, -1, np.int64)
    freed_slice = np.full(connections * depth, -1, np.int64)
    reader, writer = np.full(connections, -1, np.int32), np.full(connections, -1, np.int32)
    flow_block = np.full(connections, -1, np.int32)
    left, rate, since = np.zeros(connections), np.zeros(connections), np.zeros(connections)
    limiting = np.full(connections, -1, np.int32)
    base, load = np.zeros(links + 1, np.int64), np.zeros(links, np.int32)
    for h in range(route.size):
        base[route[h] + 1] += 1
    for link in range(links):
        base[link + 1] += base[link]
    member, place = np.empty(route.size, np.int32), np.empty(route.size, np.int64)
    second = other_links(route_first, route, links)
    flow, across = np.empty(route.size, np.uint32), np.empty(route.size, np.uint32)
    ceiling, limits = np.empty(route.size), np.empty(route.size)
    level = np.full(links + 1, np.inf)
    queue, queued = np.empty(links + 1, np.uint32), np.zeros(links + 1, np.bool_)
    queued[links] = True
    visits, touched = np.zeros(links, np.int32), np.zeros(links, np.int32)
    stale, stale_list = np.zeros(connections, np.bool_), np.empty(connections + 1, np.uint32)
    tracing = times.shape[0] > 0
    turn, start, begin = np.zeros(blocks), np.zeros(blocks), np.zeros(blocks)
    cause, causing = np.zeros(blocks, np.int8), np.full(blocks, -1, np.int64)
    last_slice = np.full(blocks, -1, np.int64)
    done_slices = 0
    running = 0
    through = np.zeros(tiles, np.int64)
    for b in range(blocks):
        if block_first[b] < block_first[b + 1]:
            running += 1
            schedule(events, b, 0.0)
        else:
            block_end[b] = 0.0
            for t in range(tiles):
                through[t] += 1
    while events[1] < np.inf:
        now = events[1]
        dirty, found, idle = 0, 0, True
        while events[1] <= now + INSTANT:
            b = first_of(event_bits)
            if flow_end[b] > events[1]:
                schedule(events, b, flow_end[b])
                now = events[1] if idle else now
                continue
            idle = False
            schedule(events, b, np.inf)
            u = at[b]
            if phase[b] == FLOWING or phase[b] == COPYING:
                number = done_slices
                done_slices += 1
                into, out = receives[u], sends[u]
                if phase[b] == FLOWING:
                    leave(route_first, route, place, base, load, member, flow, across, ceiling, out)
                    flow_block[out], flow_end[b] = -1, 0.0
                    for k in range(route_first[out], route_first[out + 1]):
                        if not queued[route[k]]:
                            queued[route[k]] = True
                            queue[dirty] = route[k]
                            dirty += 1
                if tracing:
                    integers[number, 0], integers[number, 1] = b, u
                    integers[number, 2], integers[number, 3] = tile[b], call[b]
                    integers[number, 4], integers[number, 5] = part[b], cause[b]
                    integers[number, 6] = causing[b]
                    integers[number, 7] = limiting[out] if phase[b] == FLOWING else -1
                    times[number, 0], times[number, 1] = turn[b], start[b]
                    times[number, 2], times[number, 3] = begin[b], now
                    times[number, 4] = size[b]
                if into >= 0:
                    slot = taking[into]
                    freed[slot], freed_slice[slot] = now + give_back[into], number
                    held[into] -= 1
                    taking[into] = slot + 1 if slot + 1 < (into + 1) * depth else into * depth
                    if writer[into] >= 0:
                        schedule(events, writer[into], now + give_back[into])
                        phase[writer[into]] = READY
                        writer[into] = -1
                if out >= 0:
                    slot = sending[out]
                    arrival[slot], sent_slice[slot] = now + latency[out], number
                    held[out] += 1
                    sending[out] = slot + 1 if slot + 1 < (out + 1) * depth else out * depth
                    if reader[out] >= 0:
                        schedule(events, reader[out], now + latency[out])
                        phase[reader[out]] = READY
                        reader[out] = -1
                last_slice[b] = number
                turn[b], cause[b], causing[b] = now, ORDER, number
                part[b] += 1
                if part[b] == slices or (into < 0 and out < 0):
                    part[b] = 0
                    call[b] += 1
                    if call[b] * group >= pieces[u]:
                        call[b] = 0
                        if signals[u]:
                            flag[b], flag_slice[b] = tile[b] * PASS + ordinal[u], number
                            other = waiter[b]
                            waiter[b] = -1
                            while other >= 0:
                                schedule(events, other, now)
                                phase[other] = READY
                                other = following[other]
                        at[b] += 1
                        if at[b] == block_first[b + 1]:
                            at[b] = block_first[b]
                            through[tile[b]] += 1
                            if through[tile[b]] == blocks:
                                tile_end[tile[b]] = now
                            tile[b] += 1
                            if tile[b] == tiles:
                                block_end[b] = now
                                running -= 1
                                continue
                        u = at[b]
                phase[b] = READY
            if phase[b] == READY:
                u = at[b]
                into, out = receives[u], sends[u]
                blocked = False
                if call[b] == 0 and part[b] == 0:
                    for w in range(wait_first[u], wait_first[u + 1]):
                        other = wait_block[w]
                        if flag[other] < tile[b] * PASS + wait_ordinal[w]:
                            following[b] = waiter[other]
                            waiter[other] = b
                            cause[b] = FLAG
                            causing[b] = -2 - other
                            blocked = True
                            break
                        if causing[b] == -2 - other:
                            causing[b] = flag_slice[other]
                if not blocked and into >= 0:
                    if held[into] == 0:
                        reader[into] = b
                        blocked = True
                    else:
                        slot = taking[into]
                        if arrival[slot] >= now and arrival[slot] > turn[b]:
                            cause[b], causing[b] = MESSAGE, sent_slice[slot]
                        if arrival[slot] > now + INSTANT:
                            schedule(events, b, arrival[slot])
                            continue
                if not blocked and out >= 0:
                    if held[out] == depth:
                        writer[out] = b
                        blocked = True
                    else:
                        slot = sending[out]
                        if freed[slot] >= now and freed[slot] > turn[b]:
                            cause[b], causing[b] = SLOT, freed_slice[slot]
                        if freed[slot] > now + INSTANT:
                            schedule(events, b, freed[slot])
                            continue
                if blocked:
                    phase[b] = IDLE
                    continue
                chunks = min(group, pieces[u] - call[b] * group)
                full = last_tile_bytes if tile[b] == tiles - 1 else tile_bytes
                whole = chunks * (chunk if group > 1 else full)
                if into < 0 and out < 0:
                    size[b] = whole
                else:
                    width = max(np.ceil(whole / slices), least_slice)
                    size[b] = max(0.0, min(width, whole - part[b] * width))
                start[b] = now
                phase[b] = BUSY
                fixed = busy[u] if part[b] == 0 and whole > 0 else 0.0
                if part[b] == 0 and call[b] == 0 and wait_first[u] < wait_first[u + 1]:
                    fixed += after_wait
                if fixed > 0:
                    schedule(events, b, now + fixed)
                    continue
            if phase[b] == BUSY:
                u = at[b]
                out = sends[u]
                begin[b] = now
                if out < 0 or size[b] == 0.0:
                    phase[b] = COPYING
                    schedule(events, b, now + size[b] / speed[u])
                    continue
                phase[b] = FLOWING
                flow_block[out] = b
                left[out], since[out], rate[out] = size[b], now, 0.0
                limiting[out] = -1
                enter(
                    route_first, route, second, cap, place,
                    base, load, member, flow, across, ceiling, out,
                )  # fmt: skip
                if not stale[out]:
                    stale[out] = True
                    stale_list[found] = out
                    found += 1
                for k in range(route_first[out], route_first[out + 1]):
                    if not queued[route[k]]:
                        queued[route[k]] = True
                        queue[dirty] = route[k]
                        dirty += 1
        if dirty == 0:
            continue
        found = settle(
            queue, dirty, queued, visits, touched,
            capacity, route_first, route, base, load, flow, across, ceiling, level, limits,
            rate, stale, stale_list, found,
        )  # fmt: skip
        for i in range(found):
            c = stale_list[i]
            stale[c] = False
            b = flow_block[c]
            if b < 0:
                continue
            new, by = rate_of(c, route_first, route, level, cap)
            if new == rate[c]:
                continue
            left[c] = max(0.0, left[c] - rate[c] * (now - since[c]))
            since[c], rate[c], limiting[c] = now, new, by
            flow_end[b] = now + left[c] / new
            if flow_end[b] < alarm[b]:
                schedule(events, b, flow_end[b])
    return running
