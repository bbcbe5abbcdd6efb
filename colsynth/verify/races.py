"""Conflicting accesses: two steps of different threadblocks touch one chunk, one writes.

Accesses of a location are sorted by the order of execution; it is enough to compare
every access with the last write before it, and every read with the next write after
it: if all these pairs are ordered, so are all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.verify.clocks import Past
from colsynth.verify.contract import Layout
from colsynth.verify.table import CPY, READS_SOURCE, READS_TARGET, WRITES_TARGET, Bools, Ints, Table
from colsynth.verify.units import Units


@dataclass(frozen=True)
class Accesses:
    """Chunk accesses of the executed units in one mode, sorted by location and time.

    Parameters
    ----------
    step, location, buffer, index : int arrays
        Unit, memory location, buffer code by which it is named, chunk within the step.
    writes : bool array
    """

    step: Ints
    location: Ints
    buffer: Ints
    index: Ints
    writes: Bools


@dataclass(frozen=True)
class Pairs:
    """Accesses that must be ordered: indices into `Accesses`, one of each pair writes."""

    earlier: Ints
    later: Ints


def locate(table: Table, layout: Layout) -> tuple[Ints, Ints]:
    """Return the location of every step's source and target; -1 where it does not exist."""
    found = []
    for buffer, offset in (
        (table.source_buffer, table.source),
        (table.target_buffer, table.target),
    ):
        rank = table.step_rank.clip(0, len(layout.base) - 1)
        letter = buffer.clip(0, 2)
        inside = (offset >= 0) & (offset + table.count <= layout.size[rank, letter])
        exists = inside & (buffer <= 2) & (rank == table.step_rank) & (table.count > 0)
        found.append(np.where(exists, layout.base[rank, letter] + offset, -1))
    return found[0], found[1]


def accesses(table: Table, order: Ints, source: Ints, target: Ints) -> Accesses:
    """Return all chunk accesses of the units in `order`.

    A copy of a chunk onto itself (input to output, in place) puts back what it read: to
    others it is a read.
    """
    units = order
    op, count = table.op[units], table.count[units]
    changes = WRITES_TARGET[op] & ~((op == CPY) & (source[units] == target[units]))
    parts = []
    for does, place, buffer, writes in (
        (READS_SOURCE[op], source, table.source_buffer, False),
        (READS_TARGET[op], target, table.target_buffer, False),
        (changes, target, table.target_buffer, True),
    ):
        chosen = np.flatnonzero(does & (place[units] >= 0))
        repeat = np.repeat(chosen, count[chosen])
        ends = np.cumsum(count[chosen])
        index = np.arange(len(repeat)) - np.repeat(ends - count[chosen], count[chosen])
        steps = units[repeat]
        parts.append(
            (place[steps] + index, repeat, steps, buffer[steps], index, np.full(len(steps), writes))
        )
    location, time, step, letters, index, written = map(np.concatenate, zip(*parts, strict=True))
    key = (location * (len(order) + 1) + time) * 2 + written
    sort = np.argsort(key, kind="stable")
    return Accesses(step[sort], location[sort], letters[sort], index[sort], written[sort])


def conflicts(found: Accesses, table: Table) -> Pairs:
    """Return the pairs of different threadblocks that must be ordered."""
    total = len(found.step)
    place = np.arange(total)
    last = np.maximum.accumulate(np.where(found.writes, place, -1))
    before = np.concatenate([np.full(min(total, 1), -1), last[:-1]])
    flipped = np.where(found.writes, place, total)[::-1]
    following = np.minimum.accumulate(flipped)[::-1]
    later = np.concatenate([place, place[~found.writes]])
    earlier = np.concatenate([before, following[~found.writes]])
    valid = (earlier >= 0) & (earlier < total)
    earlier, later = earlier[valid], later[valid]
    same = found.location[earlier] == found.location[later]
    blocks = table.threadblock
    differ = blocks[found.step[earlier]] != blocks[found.step[later]]
    earlier, later = earlier[same & differ], later[same & differ]
    return Pairs(np.minimum(earlier, later), np.maximum(earlier, later))


def overtaken(pairs: Pairs, found: Accesses, units: Units, group: int) -> Ints:
    """Return the pairs that a message in several calls leaves unordered.

    A message of more chunks than a call carries is passed on call by call: where it
    comes back to its GPU at shifted chunks, an early call of the receive may overwrite
    what a late call of the send has yet to read.
    """
    origin = units.origin
    earlier, later = found.step[pairs.earlier], found.step[pairs.later]
    same = (origin[earlier] >= 0) & (origin[earlier] == origin[later])
    calls = found.index[pairs.earlier] // group > found.index[pairs.later] // group
    return np.flatnonzero(same & calls)


def unordered(pairs: Pairs, found: Accesses, past: Past, *, weak_sends: bool = False) -> Ints:
    """Return the pairs (indices) that nothing orders; see `Past.unordered`."""
    steps = past.units.table.steps
    both = found.step[pairs.earlier] * steps + found.step[pairs.later]
    distinct, place = np.unique(both, return_inverse=True)
    bad = np.zeros(len(distinct), dtype=np.bool_)
    bad[past.unordered(*np.divmod(distinct, steps), weak_sends=weak_sends)] = True
    return np.flatnonzero(bad[place])
