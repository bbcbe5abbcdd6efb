"""Memory that knows who wrote and read each cell last, and which sum it holds.

Accesses are stamped (component, tick). Two accesses to a cell of which one writes, and that no
clock orders, are a race, whatever the order in which this execution met them (Flanagan and Freund,
FastTrack, PLDI 2009). A sum is a chunk and the set of ranks that contribute to it, in words of 64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from colsynth.kernels.compiled import njit

UNDEFINED, WRONG, NOTHING = -1, -2, -3
"""Chunks of memory that nobody wrote, of what is no sum of distinct contributions to one chunk, and
of no cell at all."""
WRITER, WRITTEN, READS, FLAG, TOLD, CHUNK = range(6)
"""Columns of a cell: component and tick that wrote it last, its first reader since, the launch of
which it is a packet, the clock that came with it, and the chunk that it holds."""
CELL = 6
UNREAD, FOUND, CURRENT, ITEM, CALL = range(1, 6)
"""Where `counts` has the first free record of a reader, the races, the threadblock and the item
that are executed now, and whether that is over and the caller acts."""
WHO, WHEN, AFTER = range(3)
"""Columns of the record of a reader: component, tick, and the next reader of the cell."""
READ, TWICE, REPLACED = range(3)
"""Races: read while written, written twice at once, written while read."""


class Memory(NamedTuple):
    """Cells, and who read them.

    Parameters
    ----------
    cell, mask : int64 (cells, 6), uint64 (cells, W)
    sum : uint64 (W,)
        The set of ranks of the sum that is being made.
    reads : int64 (most, 3)
        Component, tick, and the next reader of the cell; of free records, one more than the next
        free one, 0 for the one behind it.
    races : int64 (most, 4)
        Threadblock, item, component of the other access, and what was found (3 more where the
        caller acts); as many as fit.
    counts : int64 (8,)
        See `colsynth.kernels.plans`.
    """

    cell: Any
    mask: Any
    sum: Any
    reads: Any
    races: Any
    counts: Any


@njit(cache=True, nogil=True)
def read(memory, at, value, component, tick, row):
    """Return the sum of a value and what a cell holds."""
    me, reads, counts = memory.cell[at], memory.reads, memory.counts
    _check_writer(memory, me, component, tick, row, READ)
    last, number = -1, me[READS]
    while number >= 0 and reads[number, WHO] != component:
        last, number = number, reads[number, AFTER]
    if number >= 0:
        reads[number, WHEN] = tick
    else:
        number = counts[UNREAD]
        counts[UNREAD] = reads[number, AFTER] - 1 if reads[number, AFTER] else number + 1
        reads[number, WHO], reads[number, WHEN], reads[number, AFTER] = component, tick, -1
        if last < 0:
            me[READS] = number
        else:
            reads[last, AFTER] = number
    chunk = me[CHUNK]
    if value == NOTHING:
        for word in range(memory.sum.size):
            memory.sum[word] = memory.mask[at, word]
        return chunk
    if UNDEFINED in (value, chunk):
        return UNDEFINED
    if value != chunk or value == WRONG:
        return WRONG
    for word in range(memory.sum.size):
        if memory.sum[word] & memory.mask[at, word]:
            return WRONG
        memory.sum[word] |= memory.mask[at, word]
    return value


@njit(cache=True, nogil=True)
def write(memory, at, value, component, tick, row):
    """Put a value into a cell, which holds no packet then."""
    me, reads, counts = memory.cell[at], memory.reads, memory.counts
    _check_writer(memory, me, component, tick, row, TWICE)
    number = me[READS]
    while number >= 0:
        reader, when, following = reads[number]
        if row[reader] < when and not (reader == component and tick == when):
            _raced(memory, reader, REPLACED)
        reads[number, AFTER] = counts[UNREAD] + 1
        counts[UNREAD] = number
        number = following
    me[READS], me[CHUNK], me[FLAG] = -1, value, -1
    me[WRITER], me[WRITTEN] = component, tick
    for word in range(memory.sum.size):
        memory.mask[at, word] = memory.sum[word]


@njit(cache=True, nogil=True)
def _check_writer(memory, me, component, tick, row, what):
    writer, when = me[WRITER], me[WRITTEN]
    if writer >= 0 and row[writer] < when and not (writer == component and tick == when):
        _raced(memory, writer, what)


@njit(cache=True, nogil=True)
def _raced(memory, component, what):
    """Record a race of what is done now with an access of a component."""
    counts = memory.counts
    if counts[CURRENT] < 0:
        return
    if counts[FOUND] < memory.races.shape[0]:
        row = memory.races[counts[FOUND]]
        row[0], row[1], row[2] = counts[CURRENT], counts[ITEM], component
        row[3] = what + 3 * counts[CALL]
    counts[FOUND] += 1
