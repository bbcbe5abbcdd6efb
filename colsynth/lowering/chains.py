"""A program as arrays that say what each of its operations asks of threadblocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from colsynth.lowering.balanced import Connection
from colsynth.lowering.columns import Bools, Columns, Ints, rows
from colsynth.lowering.hazards import Op, Waits
from colsynth.lowering.joined_sums import continues
from colsynth.lowering.lockstep import relays

if TYPE_CHECKING:
    from colsynth.kernels.allocation import Work


PLAN_STEP = 5
"""Operations of a plan for a step: with a signal or a wait, a semaphore to take or give, and nops.

A sum that continues the one before takes none, unless there are more than `Profile.longest_sum`; 1
allows for that.
"""


@dataclass(frozen=True)
class Chains:
    """The chains of a program.

    Parameters
    ----------
    work : colsynth.kernels.allocation.Work
    pairs : dict
        Numbers of the pairs of ranks.
    ways : list
        A first channel and a pair each; those of connections among them.
    chunks, transfers : dict
        Of each connection.
    stride : int
        A chain takes every so many-th channel from its first.
    """

    work: Work
    pairs: dict[tuple[int, int], int]
    ways: list[Connection]
    chunks: dict[Connection, int]
    transfers: dict[Connection, int]
    stride: int

    def needs(self, blocks: dict[Connection, int]) -> Ints:
        """Return how many threadblocks each way needs."""
        return np.array([blocks.get(way, 0) for way in self.ways], dtype=np.int64)


@dataclass(frozen=True)
class Operations:
    """The operations of a program, of which chains are made.

    Parameters
    ----------
    columns : Columns
        Of its transfers.
    ops : tuple of Op
    needed : tuple of tuple of int
        The waits of each operation.
    size : int
        Ranks.
    plan : bool
        Whether steps become operations of a plan, which count instead of them.
    """

    columns: Columns
    ops: tuple[Op, ...]
    needed: Waits
    size: int
    plan: bool = False

    @property
    def unit(self) -> int:
        """What a step weighs."""
        return PLAN_STEP if self.plan else 1

    def chains(self, departure: Ints, separate: bool) -> Chains:
        """Return the chains.

        Parameters
        ----------
        departure : int array
            The send that shares the step of each arrival; -1 for none.
        separate : bool
            Whether phases have channels of their own.
        """
        from colsynth.kernels.allocation import Work

        columns, of, size = self.columns, self.columns.of_op, self.size
        phases = 1 + int(columns.phase.max()) if separate else 1
        channel = columns.instance * phases + columns.phase % phases
        ends = columns.source * size + columns.target
        pairs, pair = np.unique(ends, return_inverse=True)
        ways, way = np.unique(channel * size**2 + ends, return_inverse=True)
        names = [(key // size**2, key // size % size, key % size) for key in ways.tolist()]
        work = Work(
            rank=np.where(self.columns.opens, columns.source[of], columns.target[of]),
            pair=np.where(columns.local, -1, pair)[of],
            sends=self._sends,
            chunks=columns.count[of],
            weight=self._weight,
            departure=departure,
            joint=self._joint(departure),
            channel=channel[of],
            way=way[of],
            follows=self._follows,
            chained=self.chained,
            first=self.waits[0],
            other=self.waits[1],
        )
        return Chains(
            work=work,
            pairs={divmod(key, size): number for number, key in enumerate(pairs.tolist())},
            ways=names,
            chunks=_total(names, way[~columns.local], columns.count[~columns.local]),
            transfers=_total(names, way[~columns.local], np.ones(len(way), dtype=np.int64)),
            stride=phases * (1 + int(columns.instance.max())),
        )

    def departures(self, lockstep: bool) -> Ints:
        """Return the send that may share the step of each arrival; -1 for none.

        It is one wherever it stands (`colsynth.lowering.lockstep`), else one right behind the
        arrival: all its other waits are behind it too.
        """
        columns = self.columns
        if lockstep:
            return relays(columns, self.waits)
        found = np.full(len(self.ops), -1)
        relay = (
            ~columns.local[:-1] & ~columns.local[1:] & (columns.target[:-1] == columns.source[1:])
        )
        for alike in (columns.chunk, columns.count, columns.phase, columns.reduces):
            relay &= alike[:-1] == alike[1:]
        for written, read in zip(columns.write, columns.read, strict=True):
            relay &= written[:-1] == read[1:]
        sends = columns.first_op[1:][relay]
        found[sends - 1] = sends
        return found

    @cached_property
    def _sends(self) -> Bools:
        sends: Bools = self.columns.opens & ~self.columns.local[self.columns.of_op]
        return sends

    @cached_property
    def waits(self) -> tuple[Ints, Ints]:
        """The waits of each operation, one after the other."""
        return rows(self.needed)

    @cached_property
    def _weight(self) -> Ints:
        """The steps of each operation: one dependency has room in it, others take nops.

        In a plan, the operations that they become, about (`colsynth.runtimes.plans.blocks`).
        """
        weight: Ints = np.maximum(1, np.diff(self.waits[0]))
        if self.plan:
            weight = self.unit * np.where(self.columns.local[self.columns.of_op], 1, weight)
            weight[continues(self.columns)] = 1
        return weight

    def _joint(self, departure: Ints) -> Ints:
        """Return the steps of each arrival together with its departure."""
        joint = self._weight.copy()
        arrivals = np.flatnonzero(departure >= 0)
        step = np.full(len(self.ops), -1)
        step[arrivals] = step[departure[arrivals]] = np.arange(len(arrivals))
        first, other = self.waits
        waiter = np.repeat(step, np.diff(first))
        outside = (waiter >= 0) & (step[other] != waiter)
        pairs = np.unique(waiter[outside] * len(self.ops) + other[outside])
        waits = np.bincount(pairs // max(1, len(self.ops)), minlength=len(arrivals))
        joint[arrivals] = np.maximum(1, waits) * self.unit
        return joint

    @cached_property
    def _follows(self) -> Bools:
        """Whether each local operation waits for the one before it."""
        first, other = self.waits
        waiter = np.repeat(np.arange(len(self.ops)), np.diff(first))
        follows = np.zeros(len(self.ops), dtype=np.bool_)
        follows[waiter[other == waiter - 1]] = True
        return follows & self.columns.local[self.columns.of_op]

    @cached_property
    def chained(self) -> Ints:
        """The length of the chain of sums that begins with each operation; -1 inside of one.

        It begins with a copy, as of the rank's own input (`colsynth.lowering.joined_sums`). A copy
        alone is a chain too, so that threadblocks share copies as they share sums.
        """
        columns = self.columns
        local = columns.local[columns.of_op]
        adds = (columns.operand[0] >= 0)[columns.of_op]
        inside = self._follows & adds
        inside[1:] &= local[:-1]
        inside[:1] = False
        begins = local & ~self._follows
        begins[:-1] |= (local & ~adds)[:-1] & inside[1:]  # even where it waits for another copy
        found = np.where(begins & ~adds, self._weight, 0)
        for head in np.flatnonzero(begins[:-1] & inside[1:]).tolist():
            end = head + 1
            while end < len(inside) and inside[end]:
                end += 1
            # Each of the others is right behind the one it waits for, which takes no nop.
            behind = np.maximum(1, self._weight[head + 1 : end] - 1)
            found[head] = self._weight[head] + behind.sum()
            found[head + 1 : end] = -1
        return found


def _total(names: list[Connection], way: Ints, counts: Ints) -> dict[Connection, int]:
    """Return the sum of the counts of every way that has any, by name."""
    total = np.zeros(len(names), dtype=np.int64)
    np.add.at(total, way, counts[: len(way)])
    return {name: count for name, count in zip(names, total.tolist(), strict=True) if count}
