"""Sums of all arrivals of a chunk in one go.

Runtimes do local reductions into one slot that stand in a row as one transfer (contract 4.5): it
waits once and pays the overhead of one step. So arrivals land in scratch side by side, and a
chain of reductions adds them up: first the rank's own input, then arrivals by rank. Some runtimes
join only so many (`Profile.longest_sum`); there, several chains add up parts.

Where ranks add up each other's contributions and send their own by themselves, all of them add in
the same order, their own among the others, so that all get the same bits. A sum begins with the
contribution of the last rank that gives one, and goes on with the first. Where it arrives when the
rank's own contribution has left, it arrives where the sum belongs, and no copy follows the sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import structs

from colsynth.lowering.columns import Bools, Columns
from colsynth.lowering.layout import Layout
from colsynth.lowering.parts import Part, behind
from colsynth.model import Slot, Transfer
from colsynth.runtimes.long_sums import additions


class LandedSums:
    """Where arrivals land until they are added up.

    Parameters
    ----------
    layout : Layout
    reserve : callable
        Takes a rank and a number of chunks; gives the first of as many places in its scratch.
    longest : int, optional
        Reductions that the runtime does in one go; any number unless given.
    """

    def __init__(
        self, layout: Layout, reserve: Callable[[int, int], int], longest: int | None = None
    ) -> None:
        self._layout = layout
        self._longest = longest
        self._reserve = reserve
        self._areas: dict[tuple[int, int], int] = {}
        self._landed: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self._begun: dict[tuple[int, int], int] = {}

    def landing(self, part: Part, giver: int, firsts: Sequence[int], number: int) -> Slot:
        """Return where a contribution lands that is to be the placed transfer of a number.

        Parameters
        ----------
        part : Part
        giver : int
            The rank whose contribution it is.
        firsts : sequence of int
            First chunks of its ranges.
        number : int
        """
        for chunk in firsts:
            self._landed[part.target, chunk].append((giver, number))
        return self.slot(part.target, giver, part.chunk)

    def begin(self, part: Part, firsts: Sequence[int], number: int) -> Transfer:
        """Return the step that keeps a rank's own contribution, for one arrives where sums belong.

        Parameters
        ----------
        part : Part
            As the next contribution brings it.
        firsts : sequence of int
            First chunks of its ranges.
        number : int
            That the step gets; the next is that of the contribution.
        """
        kept = self.landing(part, part.target, firsts, number)
        self._begun.update({(part.target, chunk): number + 1 for chunk in firsts})
        return self._own(part, number, kept)

    def chain(
        self, piece: Part, first: int, into: Slot, number: int, *, alike: bool = False
    ) -> list[Transfer]:
        """Return the local steps that add up all contributions to a piece.

        Parameters
        ----------
        piece : Part
            Chunks of one range, as the last contribution brings them.
        first : int
            First chunk of the range.
        into : Slot
            Where the sum belongs.
        number : int
            That the first of the steps gets.
        alike : bool
            Whether other ranks add up the same contributions, and must get the same bits.
        """
        rank = piece.target
        landed = [
            (giver, self.slot(rank, giver, piece.chunk), arrival)
            for giver, arrival in sorted(self._landed[rank, first])
        ]
        steps: list[Transfer] = []
        last = self._begun.get((rank, first))
        if last is None:
            steps = [self._own(piece, number, into)]
            if alike and landed[-1][0] > rank:
                steps, landed = self._in_order(piece, into, number, landed)
            last = number + len(steps) - 1
        arrived = [(slot, arrival) for _, slot, arrival in landed]
        for (slot, arrival), (sums, _) in additions(arrived, (into, last), self._longest):
            step = behind(piece, last, slot, sums, sums)
            last = number + len(steps)
            steps.append(structs.replace(step, after=tuple(sorted({arrival, *step.after}))))
        return steps

    def _own(self, piece: Part, number: int, into: Slot) -> Transfer:
        own = self._layout.input(piece.target, piece.chunk)
        return structs.replace(behind(piece, number, own, into), after=())

    def _in_order(
        self, piece: Part, into: Slot, number: int, landed: list[tuple[int, Slot, int]]
    ) -> tuple[list[Transfer], list[tuple[int, Slot, int]]]:
        """Return the steps that begin a sum with the last of the contributions, and the others."""
        *others, (_, slot, arrival) = landed
        kept = self.slot(piece.target, piece.target, piece.chunk)
        steps = [self._own(piece, number, kept), behind(piece, arrival, slot, into)]
        return steps, sorted([*others, (piece.target, kept, number)])

    def slot(self, rank: int, giver: int, chunk: int) -> Slot:
        """Return where a rank keeps the contribution of another to a chunk."""
        if (rank, giver) not in self._areas:
            self._areas[rank, giver] = self._reserve(rank, self._layout.chunks)
        return Slot("s", self._areas[rank, giver] + chunk)


def pieces(
    part: Part, lengths: Sequence[tuple[int, int]], by_chunk: bool
) -> Iterator[tuple[int, Part]]:
    """Yield the ranges of a part, or their chunks, each with the first chunk of its range.

    Parameters
    ----------
    part : Part
    lengths : sequence of (int, int)
        First chunk and number of chunks of each range.
    by_chunk : bool
    """
    for first, length in lengths:
        step = 1 if by_chunk else length
        for chunk in range(first, first + length, step):
            yield first, structs.replace(part, chunk=chunk, count=step)


def wait_once(columns: Columns, waits: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return the waits of operations, those of a chain of reductions moved to its first.

    A reduction that waits does not join the one before it.

    Parameters
    ----------
    columns : Columns
        Of all transfers.
    waits : tuple of tuple of int
        By operation.
    """
    inside = np.flatnonzero(continues(columns)).tolist()
    if not inside:
        return waits
    found = list(waits)
    head = before = -1
    for op in inside:
        if op - 1 != before:
            head = op - 1
        before = op
        moved = {other for other in found[op] if other < head}
        found[head] = tuple(sorted({*found[head], *moved}))
        found[op] = (op - 1,)
    return tuple(found)


def continues(columns: Columns) -> Bools:
    """Return whether each operation is a reduction that runtimes join to the one before it.

    Those of different instances stay apart: each waits for an arrival of its own.
    """
    adds = columns.local & (columns.operand[0] >= 0)
    joins = np.zeros(len(columns.of_op), dtype=np.bool_)
    alike = adds[1:] & adds[:-1] & (columns.read[0][1:] >= 0)
    same = columns.target, columns.count, columns.instance, *columns.write, columns.read[0]
    for values in same:
        alike &= values[1:] == values[:-1]
    joins[columns.first_op[1:][alike]] = True
    return joins
