"""Happens-before: which steps are surely complete when another one starts.

Order comes from three things only: the file order within a threadblock, dependencies
as they are really waited for, and messages (the n-th receive of a connection comes
after its n-th send). A full FIFO also delays its sender, but how full it is depends on
sizes, so nothing may rely on that. Tiles touch different bytes, hence one pass of the
program says it all (contract 4.3, 4.5).

Steps that touch the same memory mostly belong to the way of the same chunks, and are then
ordered by the waits, messages and threadblocks along it. So steps are grouped by these first,
and clocks are computed group by group; larger groups, in the end all steps together, are
asked only about the pairs that remain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colsynth.verify.table import Bools, Ints, S
from colsynth.verify.units import Units

_MOST = 24 * 2**20
"""Numbers of four bytes in the clocks held at a time."""


@dataclass(frozen=True)
class Past:
    """What comes before each step of a program.

    Parameters
    ----------
    units : Units
    order : int array
        Units that ran, every one after all that precede it.
    """

    units: Units
    order: Ints

    @cached_property
    def _near(self) -> Ints:
        """The group of every step: those that waits and messages join."""
        nothing = np.empty(0, dtype=np.int64)
        return self._together(nothing, nothing)

    @cached_property
    def _way(self) -> Ints:
        """The same, where a threadblock names the same memory again joined to the step before."""
        return self._together(*self._same_place())

    def _together(self, later: Ints, earlier: Ints) -> Ints:
        """Return the group of every step, with some pairs joined.

        A local step that waits for nothing joins nothing unless it is in such a pair: all
        that begins with the same copy would be one.
        """
        from colsynth.kernels.precedence import together

        first, cause = self.units.wait_first, self.units.cause
        steps = np.arange(self.units.table.steps)
        opens = (first[1:] == first[:-1]) & (self.units.match < 0) & (self.units.send < 0)
        opens[later] = False
        one = np.concatenate([steps, np.repeat(steps, np.diff(first)), later])
        other = np.concatenate([self.units.match, cause, earlier])
        joins = (other >= 0) & ~opens[one] & ~opens[other]
        group: Ints = together(len(steps), one[joins], other[joins])
        return group

    def _same_place(self) -> tuple[Ints, Ints]:
        """Return steps beside the last of their threadblock that names the same first chunk."""
        table = self.units.table
        letters = np.concatenate([table.source_buffer, table.target_buffer])
        offsets = np.concatenate([table.source, table.target])
        steps = np.tile(np.arange(table.steps), 2)
        sort = np.lexsort((steps, offsets, letters, table.threadblock[steps]))
        keys = np.stack([table.threadblock[steps], letters, offsets])[:, sort]
        same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        return steps[sort][1:][same], steps[sort][:-1][same]

    def unordered(self, earlier: Ints, later: Ints, *, weak_sends: bool = False) -> Ints:
        """Return the pairs (indices) of steps whose first may not be complete for the second.

        Parameters
        ----------
        earlier, later : int arrays
            Units that ran.
        weak_sends : bool
            Whether the flag of a plain send says nothing about the send itself (LL on RCCL
            has no barrier behind it, contract 4.5).
        """
        weak = (self.units.table.op == S) & weak_sends
        left = np.arange(len(earlier))
        for group in (self._near, self._way, np.zeros(self.units.table.steps, dtype=np.int64)):
            if len(left):
                left = left[~self._known(group, earlier[left], later[left], weak)]
        return left

    def _known(self, group: Ints, earlier: Ints, later: Ints, weak: Bools) -> Bools:
        """Return, per pair, whether the group of the second proves the first complete."""
        from colsynth.kernels.precedence import known_before

        table = self.units.table
        places = np.arange(table.steps + 1)
        steps = self.order[np.argsort(group[self.order], kind="stable")]
        sort = np.argsort(group[later], kind="stable")
        found = known_before(
            np.searchsorted(group[steps], places),
            steps,
            np.searchsorted(group[later[sort]], places),
            earlier[sort],
            later[sort],
            table.threadblock,
            table.ordinal,
            weak,
            self.units.wait_first,
            self.units.cause,
            self.units.match,
            table.threadblocks,
            _MOST,
            np.empty(0, np.int16 if table.ordinal.max(initial=0) < 2**15 - 1 else np.int32),
        )
        known = np.zeros(len(earlier), dtype=np.bool_)
        known[sort] = found
        return known
