"""Which operations of a rank must wait for which, from the slots they touch.

Two operations on one rank conflict when they touch the same memory and one writes it;
the later one in the global order must then come after the earlier one. A conflict that
is already ordered, through other waits or through messages (a rank cannot overwrite what
it sent before the answer to it comes back), needs no wait. In-place calls make input and
output share memory, so slots are compared by `Layout.in_place_alias` where they may.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from colsynth.lowering.layout import Layout
from colsynth.lowering.segments import Segments
from colsynth.model import Slot, Transfer


class Op(NamedTuple):
    """What one rank does for one transfer.

    Parameters
    ----------
    transfer : int
    rank : int
    sends, receives : bool
        Both False for a local operation.
    """

    transfer: int
    rank: int
    sends: bool
    receives: bool


def operations(transfers: tuple[Transfer, ...]) -> tuple[Op, ...]:
    """Return the operations in the global order: a send right before its receive."""
    ops = []
    for number, transfer in enumerate(transfers):
        if transfer.is_local:
            ops.append(Op(number, transfer.source, False, False))
        else:
            ops.append(Op(number, transfer.source, True, False))
            ops.append(Op(number, transfer.target, False, True))
    return tuple(ops)


def waits(
    transfers: tuple[Transfer, ...], ops: tuple[Op, ...], layout: Layout, in_place: bool
) -> tuple[tuple[int, ...], ...]:
    """Return, per operation, the earlier operations of its rank it must wait for.

    None of them is implied by the others or by messages.
    """
    memory = _Memory(layout, Segments(transfers, layout.grain), in_place)
    needed = [sorted(memory.touch(n, op, transfers[op.transfer])) for n, op in enumerate(ops)]
    last = list(range(len(ops)))
    for number, others in enumerate(needed):
        for other in (*others, number - 1) if ops[number].receives else others:
            last[other] = number
    causes = _Causes(_components(transfers), last)
    result = []
    for number, op in enumerate(ops):
        message = (number - 1,) if op.receives else ()
        result.append(causes.add(number, op.transfer, needed[number], message))
    return tuple(result)


Cell = tuple[int, Slot]
"""A rank and a slot of it that stands for a segment of chunks."""


@dataclass(slots=True)
class _Memory:
    """Last writer and readers since, of every memory cell touched so far."""

    layout: Layout
    segments: Segments
    in_place: bool
    writer: dict[Cell, int] = field(default_factory=dict)
    readers: dict[Cell, list[int]] = field(default_factory=dict)

    def touch(self, number: int, op: Op, transfer: Transfer) -> set[int]:
        """Record an operation and return the earlier ones it conflicts with."""
        needed: set[int] = set()
        if op.sends or not op.receives:
            for cell in self._cells(op.rank, transfer, transfer.read):
                self._read(number, cell, needed)
        if not op.sends:
            for cell in self._cells(op.rank, transfer, transfer.operand):
                self._read(number, cell, needed)
            for cell in self._cells(op.rank, transfer, transfer.write):
                self._write(number, cell, needed)
        needed.discard(number)
        return needed

    def _cells(self, rank: int, transfer: Transfer, slot: Slot | None) -> list[Cell]:
        slots = self.segments.slots(transfer, slot)
        if self.in_place:
            return [(rank, self.layout.in_place_alias(rank, each)) for each in slots]
        return [(rank, each) for each in slots]

    def _read(self, number: int, cell: Cell, needed: set[int]) -> None:
        if cell in self.readers:
            self.readers[cell].append(number)
        else:
            self.readers[cell] = [number]
        if cell in self.writer:
            needed.add(self.writer[cell])

    def _write(self, number: int, cell: Cell, needed: set[int]) -> None:
        needed.update(self.readers.pop(cell, ()))
        if cell in self.writer:
            needed.add(self.writer[cell])
        self.writer[cell] = number


@dataclass(slots=True)
class _Causes:
    """Everything that is sure to have happened before each operation.

    Sets are bit masks numbered within one component of transfers that depend on each
    other, so that they stay small whatever the size of the program; where trees share
    transfers and components are large, it counts that a set is forgotten after its last use.

    Parameters
    ----------
    component : tuple of int
        By transfer.
    last : list of int
        The last operation that asks for each operation's set; itself where none does.
    """

    component: tuple[int, ...]
    last: list[int]
    mask: list[int] = field(default_factory=list)
    home: list[int] = field(default_factory=list)
    bit: dict[tuple[int, int], int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)

    def add(
        self, number: int, transfer: int, needed: list[int], message: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Record an operation; return the needed ones that nothing else implies."""
        home = self.component[transfer]
        self.home.append(home)
        implied = 0
        for other in message:
            implied |= self._before(home, other)
        kept: list[int] = []
        for other in reversed(needed):
            bit = self._bit(home, other)
            if not implied & bit:
                kept.append(other)
                implied |= self._before(home, other)
        self.mask.append(implied if self.last[number] > number else 0)
        for other in (*needed, *message):
            if self.last[other] == number:
                self.mask[other] = 0
        return tuple(reversed(kept))

    def _before(self, home: int, other: int) -> int:
        """Return the mask of `other` and, within the component, what came before it."""
        past = self.mask[other] if self.home[other] == home else 0
        return past | self._bit(home, other)

    def _bit(self, home: int, other: int) -> int:
        key = home, other
        if key not in self.bit:
            self.bit[key] = self.used.get(home, 0)
            self.used[home] = self.bit[key] + 1
        return 1 << self.bit[key]


def _components(transfers: tuple[Transfer, ...]) -> tuple[int, ...]:
    """Number transfers so that those joined by prerequisites share a number.

    Local copies without prerequisites join nothing: they would tie all trees together.
    """
    parent = list(range(len(transfers)))

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for number, transfer in enumerate(transfers):
        for other in transfer.after:
            if not (transfers[other].is_local and not transfers[other].after):
                parent[find(number)] = find(other)
    return tuple(find(x) for x in range(len(transfers)))
