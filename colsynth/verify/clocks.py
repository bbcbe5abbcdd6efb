"""Happens-before: which steps are surely complete when another one starts.

Order comes from three things only: the file order within a threadblock, dependencies
as they are really waited for, and messages (the n-th receive of a connection comes
after its n-th send). A full FIFO also delays its sender, but how full it is depends on
sizes, so nothing may rely on that. Tiles touch different bytes, hence one pass of the
program says it all (contract 4.3, 4.5).

The clock of a unit holds, per threadblock, how many of that block's steps are complete
before the unit acts (Fidge and Mattern's vector clocks). Rows change only where a
threadblock learns something, and are shared in between.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from colsynth.verify.table import Bools, Ints, S
from colsynth.verify.units import Units

Rows = npt.NDArray[Any]

_MEMORY = 96 * 2**20
"""Bytes of clocks held at a time; more threadblocks are handled in several rounds."""


@dataclass(frozen=True)
class Clocks:
    """Clock rows for a range of threadblocks.

    Parameters
    ----------
    first, last : int
        Threadblocks covered, half open.
    rows : int array (rows, last - first)
    row : int array
        Row of every step, as seen when it acts; 0 (nothing known) where it never ran.
    """

    first: int
    last: int
    rows: Rows
    row: Ints

    def precedes(self, earlier: Ints, later: Ints, threadblock: Ints, ordinal: Ints) -> Bools:
        """Return, per pair, whether `earlier` is complete before `later` acts."""
        columns = threadblock[earlier] - self.first
        known: Bools = self.rows[self.row[later], columns] > ordinal[earlier]
        return known


def column_ranges(units: Units, order: list[int]) -> list[tuple[int, int]]:
    """Return ranges of threadblocks, whole ranks each, whose clocks fit in memory."""
    table = units.table
    joins = 1 + sum(1 for unit in order if units.match[unit] >= 0 or units.causes[unit])
    width = max(1, _MEMORY // (joins * _dtype(units)().itemsize))
    bounds = np.flatnonzero(np.diff(table.rank, prepend=-1)).tolist()
    bounds.append(table.threadblocks)
    ranges, first = [], 0
    for begin, end in itertools.pairwise(bounds):
        if end - first > width and begin > first:
            ranges.append((first, begin))
            first = begin
    ranges.append((first, table.threadblocks))
    return ranges


def clocks(
    units: Units, order: list[int], first: int, last: int, *, weak_sends: bool = False
) -> Clocks:
    """Compute the clocks of a range of threadblocks.

    Parameters
    ----------
    units : Units
    order : list of int
        Units that ran, every one after all that precede it.
    first, last : int
        Threadblocks that the rows cover.
    weak_sends : bool
        Whether the flag of a plain send says nothing about the send itself (LL on RCCL
        has no barrier behind it, contract 4.5).
    """
    table = units.table
    block, ordinal = table.threadblock.tolist(), table.ordinal.tolist()
    weak = (table.op == S).tolist() if weak_sends else None
    current = [0] * table.threadblocks
    row = [0] * table.steps
    joins = sum(1 for unit in order if units.match[unit] >= 0 or units.causes[unit])
    rows = np.zeros((joins + 1, last - first), dtype=_dtype(units))
    used = 0
    for unit in order:
        mine = current[block[unit]]
        causes, sender = units.causes[unit], units.match[unit]
        if causes or sender >= 0:
            used += 1
            mine = _join(rows, used, mine, row, causes, sender)
            for cause in (*causes, sender):
                column = block[cause] - first
                if cause >= 0 and 0 <= column < last - first:
                    seen = ordinal[cause] + (0 if weak and weak[cause] and cause != sender else 1)
                    rows[used, column] = max(rows[used, column], seen)
            current[block[unit]] = mine
        row[unit] = mine
    return Clocks(first, last, rows[: used + 1], np.array(row, dtype=np.int64))


def _join(
    rows: Rows,
    new: int,
    mine: int,
    row: list[int],
    causes: tuple[int, ...],
    sender: int,
) -> int:
    """Fill row `new` with what the threadblock knows and what it is told."""
    target = rows[new]
    target[:] = rows[mine]
    for cause in causes:
        if cause >= 0:
            np.maximum(target, rows[row[cause]], out=target)
    if sender >= 0:
        np.maximum(target, rows[row[sender]], out=target)
    return new


def _dtype(units: Units) -> type[np.int16] | type[np.int32]:
    longest = max(map(len, units.program), default=0)
    return np.int16 if longest < 2**14 else np.int32
