"""Transfers as columns of numbers, and lists of numbers as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from colsynth.model import Direction, Origin, Transfer

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Slots = tuple[Ints, Ints]
"""Buffer and offset of slots."""

BUFFERS = "ios"
INPUT, OUTPUT, SCRATCH = range(3)
"""A buffer's number is the place of its letter."""
_NOWHERE = "?", -1


@dataclass(frozen=True)
class Columns:
    """One number per transfer.

    Parameters
    ----------
    transfers : sequence of Transfer
    source, target, chunk, count : int arrays
    """

    transfers: Sequence[Transfer]
    source: Ints
    target: Ints
    chunk: Ints
    count: Ints

    @staticmethod
    def of(transfers: Sequence[Transfer]) -> Columns:
        """Return the columns of transfers."""
        names = ("source", "target", "chunk", "count")
        return Columns(transfers, *(column(transfers, name) for name in names))

    @cached_property
    def local(self) -> Bools:
        """Whether each transfer stays on its rank."""
        local: Bools = self.source == self.target
        return local

    def pairs(self, size: int) -> tuple[Ints, Ints]:
        """Return source and target of each pair of `size` ranks where one sends to the other."""
        ends = np.unique((self.source * size + self.target)[~self.local])
        return ends // size, ends % size

    @cached_property
    def reduces(self) -> Ints:
        """Whether each transfer adds up."""
        return column(self.transfers, "reduces")

    @cached_property
    def of_op(self) -> Ints:
        """The transfer of each operation."""
        return np.repeat(np.arange(len(self.local)), 2 - self.local)

    @cached_property
    def first_op(self) -> Ints:
        """The first operation of each transfer: one where it is local, else a send, a receive."""
        first = np.zeros(len(self.local), dtype=np.int64)
        np.cumsum(2 - self.local[:-1], out=first[1:])
        return first

    @cached_property
    def opens(self) -> Bools:
        """Whether each operation is the only one of its transfer, or the send."""
        found = np.zeros(len(self.of_op), dtype=np.bool_)
        found[self.first_op] = True
        return found

    @cached_property
    def _origins(self) -> list[Origin]:
        return list(map(attrgetter("origin"), self.transfers))

    @cached_property
    def phase(self) -> Ints:
        """The phase of each transfer."""
        return _items(self._origins, 0)

    @cached_property
    def direction(self) -> Ints:
        """The direction of each transfer, by its place in `Direction`."""
        inwards = [origin[1] is Direction.IN for origin in self._origins]
        one, other = (list(Direction).index(x) for x in (Direction.IN, Direction.OUT))
        return np.where(inwards, one, other)

    @cached_property
    def tree(self) -> Ints:
        """The tree of each transfer; -1 where it has none."""
        return _items(self._origins, 2)

    @cached_property
    def instance(self) -> Ints:
        """The instance of each transfer."""
        return _items(self._origins, 3)

    @cached_property
    def segment(self) -> Ints:
        """The segment of its tree that each transfer moves."""
        return _items(self._origins, 4)

    @cached_property
    def read(self) -> Slots:
        """Buffer and offset of the first slot each transfer reads; -1 where none."""
        return _slots(self.transfers, "read")

    @cached_property
    def write(self) -> Slots:
        """Buffer and offset of the first slot each transfer writes; -1 where none."""
        return _slots(self.transfers, "write")

    @cached_property
    def operand(self) -> Slots:
        """Buffer and offset of the first slot that each transfer adds to; -1 where none."""
        return _slots(self.transfers, "operand")


def _slots(transfers: Sequence[Transfer], name: str) -> Slots:
    pairs = [slot or _NOWHERE for slot in map(attrgetter(name), transfers)]
    code = np.full(128, -1, dtype=np.int64)
    code[[ord(letter) for letter in BUFFERS]] = np.arange(len(BUFFERS))
    letters = "".join(map(itemgetter(0), pairs)).encode()
    return code[np.frombuffer(letters, dtype=np.uint8)], _items(pairs, 1)


def _items(values: Sequence[tuple[Any, ...]], place: int) -> Ints:
    """Return the whole number at a place of each tuple."""
    return np.fromiter(map(itemgetter(place), values), np.int64, len(values))


def column(values: Sequence[object], name: str) -> Ints:
    """Return a whole-number attribute of each value."""
    return np.fromiter(map(attrgetter(name), values), np.int64, len(values))


def rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return lists of numbers one after the other, as (where each begins, numbers)."""
    first = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=first[1:])
    return first, np.fromiter(chain.from_iterable(lists), np.int64, int(first[-1]))


def tuples(first: Ints, values: Ints) -> tuple[tuple[int, ...], ...]:
    """Return the lists that `rows` laid one after the other."""
    flat, ends = values.tolist(), first.tolist()
    return tuple(tuple(flat[a:b]) if a < b else () for a, b in pairwise(ends))


def spread(begin: Ints, count: Ints) -> Ints:
    """Return the numbers from each beginning on, as many as counted, one after the other."""
    ends = np.cumsum(count)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count - begin, count)
