"""Transfers as columns of numbers, and lists of numbers as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from colsynth.model import Slot, Transfer

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BUFFERS = "ios"
INPUT, OUTPUT, SCRATCH = range(3)
"""A buffer's number is the place of its letter."""


@dataclass(frozen=True)
class Columns:
    """One number per transfer.

    Parameters
    ----------
    transfers : tuple of Transfer
    source, target, chunk, count : int arrays
    """

    transfers: tuple[Transfer, ...]
    source: Ints
    target: Ints
    chunk: Ints
    count: Ints

    @staticmethod
    def of(transfers: tuple[Transfer, ...]) -> Columns:
        """Return the columns of transfers."""
        names = ("source", "target", "chunk", "count")
        return Columns(transfers, *(column(transfers, name) for name in names))

    @cached_property
    def local(self) -> Bools:
        """Whether each transfer stays on its rank."""
        local: Bools = self.source == self.target
        return local

    @cached_property
    def reduces(self) -> Ints:
        """Whether each transfer adds up."""
        return column(self.transfers, "reduces")

    @cached_property
    def first_op(self) -> Ints:
        """The first operation of each transfer: one where it is local, else a send, a receive."""
        first = np.zeros(len(self.local), dtype=np.int64)
        np.cumsum(2 - self.local[:-1], out=first[1:])
        return first

    @cached_property
    def phase(self) -> Ints:
        """The phase of each transfer."""
        return np.array([transfer.origin.phase for transfer in self.transfers], dtype=np.int64)

    @cached_property
    def instance(self) -> Ints:
        """The instance of each transfer."""
        return np.array([transfer.origin.instance for transfer in self.transfers], dtype=np.int64)

    def slots(self, name: str) -> tuple[Ints, Ints]:
        """Return buffer and offset of the ``read``, ``write`` or ``operand``; -1 where none."""
        found: list[Slot | None] = list(map(attrgetter(name), self.transfers))
        pairs = [("?", -1) if slot is None else slot for slot in found]
        letters, offsets = zip(*pairs, strict=True) if pairs else ((), ())
        code = np.full(128, -1, dtype=np.int64)
        code[[ord(letter) for letter in BUFFERS]] = np.arange(len(BUFFERS))
        buffers = code[np.frombuffer("".join(letters).encode(), dtype=np.uint8)]
        return buffers, np.array(offsets, dtype=np.int64)


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
