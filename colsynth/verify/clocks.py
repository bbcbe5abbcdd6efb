"""Happens-before: which steps are surely complete when another one starts.

Order comes from three things only: the file order within a threadblock, dependencies
as they are really waited for, and messages (the n-th receive of a connection comes
after its n-th send). A full FIFO also delays its sender, but how full it is depends on
sizes, so nothing may rely on that. Tiles touch different bytes, hence one pass of the
program says it all (contract 4.3, 4.5).

Steps that touch the same memory mostly pass on the same chunks, and are then ordered by
each other's waits and messages alone. So steps are grouped by these first, and clocks are
computed group by group; all steps together are asked only about the pairs that remain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

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
    def _causes(self) -> tuple[Ints, Ints]:
        causes = self.units.causes
        first = np.concatenate([[0], np.cumsum(np.fromiter(map(len, causes), np.int64))])
        return first, np.fromiter(chain.from_iterable(causes), np.int64, int(first[-1]))

    @cached_property
    def _match(self) -> Ints:
        return np.array(self.units.match, dtype=np.int64)

    @cached_property
    def _group(self) -> Ints:
        """The group of every step: those joined by waits and messages.

        Copies at the start are left out, else all that begins with the same one is one.
        """
        from colsynth.kernels.precedence import together

        first, cause = self._causes
        alone = (first[1:] == first[:-1]) & (self._match < 0)
        opens = alone & (np.array(self.units.send, dtype=np.int64) < 0)
        group: Ints = together(first, cause, self._match, opens)
        return group

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
        near = self._known(self._group, earlier, later, weak)
        left = np.flatnonzero(~near)
        if not len(left):
            return left
        everything = np.zeros(self.units.table.steps, dtype=np.int64)
        far = self._known(everything, earlier[left], later[left], weak)
        rest: Ints = left[~far]
        return rest

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
            *self._causes,
            self._match,
            table.threadblocks,
            _MOST,
        )
        known = np.zeros(len(earlier), dtype=np.bool_)
        known[sort] = found
        return known
