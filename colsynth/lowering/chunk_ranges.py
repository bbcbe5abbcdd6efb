"""Chunks that every transfer moves together, counted once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from colsynth.lowering.columns import Columns, Ints, Slots, spread
from colsynth.model import Transfer


class ChunkRanges:
    """The coarsest cut of all chunks such that each transfer moves whole ranges.

    Memory holds the chunks of a range side by side, and in the place of one never those
    of half another (`Layout.grain`). So two steps touch the same memory exactly when they
    touch the place of a range's first chunk: it stands for all.

    Parameters
    ----------
    transfers : iterable of Transfer
    grain : int
        Ranges also end at multiples of it, see `Layout.grain`.
    """

    def __init__(self, transfers: Iterable[Transfer], grain: int) -> None:
        firsts: set[int] = set()
        for chunk, end in {(t.chunk, t.chunk + t.count) for t in transfers}:
            firsts.add(chunk)
            firsts.add(end)
            firsts.update(range(-(-chunk // grain) * grain, end, grain))
        self._firsts = sorted(firsts)
        self._within: dict[tuple[int, int], list[int]] = {}

    @cached_property
    def firsts(self) -> Ints:
        """The first chunk of every range, ascending."""
        return np.array(self._firsts, dtype=np.int64)

    def of(self, columns: Columns) -> tuple[Ints, Ints]:
        """Return the number of the first range of every transfer, and of how many it is one."""
        begin = np.searchsorted(self.firsts, columns.chunk)
        return begin, np.searchsorted(self.firsts, columns.chunk + columns.count) - begin

    def cells(self, columns: Columns, slots: Slots) -> tuple[Ints, Ints, Ints]:
        """Return transfer, buffer and offset of the slot of each range that transfers touch.

        Parameters
        ----------
        columns : Columns
        slots : pair of int arrays
            The first slot of every transfer; a buffer of -1 where it touches none.
        """
        buffer, offset = slots
        begin, count = self.of(columns)
        number = np.where(buffer >= 0, count, 0)
        each = np.repeat(np.arange(len(number)), number)
        shift = self.firsts[spread(begin, number)] - columns.chunk[each]
        return each, buffer[each], offset[each] + shift

    def within(self, chunk: int, count: int) -> list[int]:
        """Return the first chunks of the ranges of a transfer of some chunks."""
        found = self._within.get((chunk, count))
        if found is None:
            begin = bisect_left(self._firsts, chunk)
            end = bisect_left(self._firsts, chunk + count, begin)
            found = self._within[chunk, count] = self._firsts[begin:end]
        return found

    def length(self, first: int) -> int:
        """Return the chunks of the range that begins with a chunk."""
        return self._firsts[bisect_left(self._firsts, first) + 1] - first


def uniform(firsts: Sequence[int], states: Sequence[object], end: int) -> list[tuple[int, int]]:
    """Return (chunk, count) of the longest runs of ranges with equal states.

    Parameters
    ----------
    firsts : sequence of int
        First chunks of adjacent ranges.
    states : sequence
        Of each range.
    end : int
        The chunk behind the last range.

    Examples
    --------
    >>> uniform([4, 5, 8], ["a", "a", "b"], 9)
    [(4, 4), (8, 1)]
    """
    begins = [firsts[0]]
    begins += [c for c, (a, b) in zip(firsts[1:], pairwise(states), strict=True) if a != b]
    ends = [*begins[1:], end]
    return [(begin, after - begin) for begin, after in zip(begins, ends, strict=True)]
