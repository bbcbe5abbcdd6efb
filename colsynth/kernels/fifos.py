"""Threadblocks joined by bounded FIFOs and by flags that only grow: where each of them stops.

Threadblock b does the units ``unit[first[b]:first[b + 1]]`` (CSR) once per tile. Unit u makes
``calls[u]`` calls, each of which takes from FIFO ``recv[u]`` and puts into ``send[u]``, -1 for
none. It first waits for the flags of threadblocks ``other[wait[u]:wait[u + 1]]`` to reach
`ordinal` of this tile; number B stands for one that does not exist. At the end it raises its own
flag to ``publishes[u]``, -1 for not at all. All arrays are int64.

`fifos` holds how many FIFOs there are, the calls that each holds, and the number of tiles. The
result does not depend on the order in which threadblocks run (a Kahn network); here the one that
was woken last runs first, until it has to wait. O(calls). Twin: tests/reference/circles.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

_TILE = 1 << 32
"""Flags hold tile * _TILE + ordinal: they compare first by tile, as in the runtime."""

AT, DONE, TILE, AFTER = range(4)
FILLED, READER, WRITER = range(3)
_FLAG, _FIRST, _LAST = range(3)


@njit(cache=True, nogil=True)
def execute(first, unit, calls, recv, send, wait, other, ordinal, publishes, fifos):
    """Run everything that can run; return (B, 4) states, and units in order of completion.

    A state is the place of the unit where a threadblock stopped, the calls it made there, and its
    tile. The order is that of the first tile.
    """
    links, depth, tiles = fifos
    blocks = first.size - 1
    state = np.zeros((blocks, 4), np.int64)
    fifo = np.full((links, 3), -1, np.int64)
    fifo[:, FILLED] = 0
    flags = np.full((blocks + 1, 3), -1, np.int64)  # and first and last of those that wait
    ready, waiting = np.arange(blocks)[::-1].copy(), blocks
    order, completed = np.empty(unit.size, np.int64), 0
    while waiting:
        waiting -= 1
        b = ready[waiting]
        me = state[b]
        if me[TILE] < tiles and first[b] == first[b + 1]:
            me[TILE] = tiles
        while me[TILE] < tiles:
            u = unit[first[b] + me[AT]]
            tile = me[TILE] * _TILE
            if me[DONE] == 0 and not _may_start(
                b, tile, wait[u : u + 2], other, ordinal, flags, state
            ):
                break
            if recv[u] >= 0 or send[u] >= 0:
                waiting = _move(b, me, calls[u], recv[u], send[u], depth, fifo, ready, waiting)
                if me[DONE] < calls[u]:
                    break
                me[DONE] = 0
            if tile == 0:
                order[completed] = u
                completed += 1
            if publishes[u] >= 0:
                flags[b, _FLAG] = tile + publishes[u]
                woken = flags[b, _FIRST]
                while woken >= 0:
                    ready[waiting] = woken
                    waiting += 1
                    woken = state[woken, AFTER]
                flags[b, _FIRST] = -1
            me[AT] += 1
            if first[b] + me[AT] == first[b + 1]:
                me[AT] = 0
                me[TILE] += 1
    return state, order[:completed]


@njit(cache=True, nogil=True)
def _may_start(b, tile, waits, other, ordinal, flags, state):
    """Whether all flags are there; if not, threadblock b waits for the first that is missing."""
    for k in range(waits[0], waits[1]):
        flag = flags[other[k]]
        if flag[_FLAG] < tile + ordinal[k]:
            state[b, AFTER] = -1
            if flag[_FIRST] < 0:
                flag[_FIRST] = b
            else:
                state[flag[_LAST], AFTER] = b
            flag[_LAST] = b
            return False
    return True


@njit(cache=True, nogil=True)
def _move(b, me, calls, source, target, depth, fifo, ready, waiting):
    """Make as many calls as can be made; return how many threadblocks are ready then."""
    while me[DONE] < calls:
        number = calls - me[DONE]
        if source >= 0:
            number = min(number, fifo[source, FILLED])
            if number == 0:
                fifo[source, READER] = b
                break
        if target >= 0:
            number = min(number, depth - fifo[target, FILLED])
            if number == 0:
                fifo[target, WRITER] = b
                break
            fifo[target, FILLED] += number
            if fifo[target, READER] >= 0:
                ready[waiting] = fifo[target, READER]
                waiting += 1
                fifo[target, READER] = -1
        if source >= 0:
            fifo[source, FILLED] -= number
            if fifo[source, WRITER] >= 0:
                ready[waiting] = fifo[source, WRITER]
                waiting += 1
                fifo[source, WRITER] = -1
        me[DONE] += number
    return waiting
