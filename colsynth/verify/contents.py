"""Symbolic execution: which contributions every chunk holds, under one mode of the call.

A value is a small integer that stands for an expression. 0 is memory nobody wrote.
Equal numbers mean the same additions in the same grouping, so two ranks that hold equal
numbers hold bitwise equal sums. Each number has a chunk (as
`contract.contributions` counts) and a bit mask of the ranks whose contributions were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colsynth.model import Header
from colsynth.verify.contract import EVERYONE, Layout, buffer_chunks, contributions
from colsynth.verify.table import (
    READS_SOURCE,
    READS_TARGET,
    RECEIVES,
    SENDS,
    WRITES_TARGET,
    Bools,
    Ints,
)
from colsynth.verify.units import Units

if TYPE_CHECKING:
    from colsynth.kernels.sums import Numbers

_LONGEST = 1 << 15
"""Chunks of a message beyond which no file means what it says (rule S07)."""
WORD = 64
"""Ranks of one word of a set of them, as kernels hold it."""
_UNWRITTEN = "memory nobody wrote"
UNDEFINED = 0
WRONG = -1
"""Chunk of a value that is no sum of distinct contributions to one chunk."""


class Values:
    """Interned expressions."""

    def __init__(self) -> None:
        self.chunk = [WRONG]
        self.mask = [0]
        self.fault: dict[int, str] = {UNDEFINED: _UNWRITTEN}
        self.doubled: list[int] = []
        self._sums: dict[tuple[int, int], int] = {}

    def leaves(self, chunks: Sequence[int], rank: int) -> range:
        """Return new values: one rank's contribution to each of some chunks."""
        first = len(self.chunk)
        self.chunk.extend(chunks)
        self.mask.extend([1 << rank] * len(chunks))
        return range(first, len(self.chunk))

    def add(self, one: int, other: int) -> int:
        """Return the sum; addition commutes bit for bit, but does not associate."""
        key = (one, other) if one < other else (other, one)
        found = self._sums.get(key)
        if found is None:
            found = self._sums[key] = self._sum(*key)
        return found

    def _sum(self, one: int, other: int) -> int:
        for term in (one, other):
            if term in self.fault:
                return term
        twice = self.mask[one] & self.mask[other]
        if self.chunk[one] == self.chunk[other] and not twice:
            return self._new(self.chunk[one], self.mask[one] | self.mask[other])
        found = self._new(WRONG, 0)
        if self.chunk[one] != self.chunk[other]:
            self.fault[found] = f"{self.describe(one)} added to {self.describe(other)}"
        else:
            self.fault[found] = f"chunk {self.chunk[one]} of {ranks(twice)} added twice"
            self.doubled.append(found)
        return found

    def _new(self, chunk: int, mask: int) -> int:
        self.chunk.append(chunk)
        self.mask.append(mask)
        return len(self.chunk) - 1

    def describe(self, value: int) -> str:
        """Return a value for people."""
        if value in self.fault:
            return self.fault[value]
        return f"chunk {self.chunk[value]} of {ranks(self.mask[value])}"


def words_for(size: int) -> int:
    """Return how many words a set of ranks has."""
    return -(-size // WORD)


def mask_of(words: Sequence[int]) -> int:
    """Return a set of ranks as one bit mask, from its words."""
    return sum(word << WORD * place for place, word in enumerate(words))


def ranks(mask: int) -> str:
    """Return a bit mask of ranks for people: ``"ranks 0-3, 7"``."""
    members = [rank for rank in range(mask.bit_length()) if mask >> rank & 1]
    runs: list[list[int]] = []
    for rank in members:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    spelt = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank{'' if len(members) == 1 else 's'} {spelt}"


@dataclass(frozen=True)
class Outcome:
    """Memory after one pass, and what went wrong on the way.

    Parameters
    ----------
    numbers : Numbers
        What the numbers in memory and messages stand for.
    memory : int array
        A number per location of the layout.
    undefined : int array
        Units that read memory nobody wrote.
    span, sent : int arrays
        Where what each step sent begins and ends, and the numbers that were sent.
    size : int
        Ranks.
    """

    numbers: Numbers
    memory: Ints
    undefined: Ints
    span: Ints
    sent: Ints
    size: int

    @property
    def doubled(self) -> Ints:
        """Sums to which a rank contributes twice."""
        from colsynth.kernels.sums import DOUBLED

        return np.flatnonzero(self.numbers.fault == DOUBLED)

    def ranks(self, number: int) -> int:
        """Return the bit mask of the ranks whose contributions were added."""
        leaves = len(self.numbers.rank)
        if number < leaves:
            return 1 << int(self.numbers.rank[number]) if number else 0
        words = self.numbers.ranks[number - leaves].tolist()
        return mask_of(words)

    def right(self, numbers: Ints, chunk: Ints, wanted: Ints) -> Bools:
        """Return whether numbers are of the chunks and ranks that are wanted.

        Parameters
        ----------
        numbers, chunk, wanted : int arrays
            `wanted` is a rank, or `contract.EVERYONE`.
        """
        leaves, words = len(self.numbers.rank), self.numbers.ranks.shape[1]
        everyone = [((1 << self.size) - 1 >> WORD * w) % (1 << WORD) for w in range(words)]
        added, alone = numbers >= leaves, (numbers > 0) & (numbers < leaves)
        sums = self.numbers.ranks[numbers[added] - leaves]
        found = alone.copy() if self.size == 1 else np.zeros(len(numbers), dtype=np.bool_)
        found[added] = (sums == np.array(everyone, np.uint64)).all(axis=1)
        alone[alone] = self.numbers.rank[numbers[alone]] == wanted[alone]
        found = np.where(wanted == EVERYONE, found, alone)
        right: Bools = found & (self.numbers.chunk[numbers] == chunk)
        return right

    def describe(self, number: int) -> str:
        """Return a number for people."""
        from colsynth.kernels.sums import MIXED, SOUND, UNWRITTEN

        fault = self.numbers.fault[number]
        if fault == UNWRITTEN:
            return _UNWRITTEN
        if fault == SOUND:
            return f"chunk {self.numbers.chunk[number]} of {ranks(self.ranks(number))}"
        row = number - len(self.numbers.rank)
        one, other = int(self.numbers.left[row]), int(self.numbers.right[row])
        if fault == MIXED:
            return f"{self.describe(one)} added to {self.describe(other)}"
        twice = self.ranks(one) & self.ranks(other)
        return f"chunk {self.numbers.chunk[one]} of {ranks(twice)} added twice"


def evaluate(units: Units, order: Ints, layout: Layout, source: Ints, target: Ints) -> Outcome:
    """Execute the units in `order` on symbolic data.

    Parameters
    ----------
    units : Units
    order : int array
        Units, each after all that precede it.
    layout : Layout
    source, target : int arrays
        Location of every step's operands, -1 where it does not exist.
    """
    from colsynth.kernels.sums import execute

    table = units.table
    chunk, rank, memory = _start(table.header, layout)
    found = execute(
        order,
        _kinds()[table.op],
        table.count.clip(0, _LONGEST),
        source,
        target,
        units.match,
        chunk,
        rank,
        words_for(table.header.ranks),
        memory,
    )
    numbers, undefined, span, sent = found
    return Outcome(numbers, memory, undefined, span, sent, table.header.ranks)


def _kinds() -> Ints:
    """Return what each type of step does, as the kernel takes it."""
    from colsynth.kernels import sums

    does = (
        (sums.RECEIVES, RECEIVES),
        (sums.READS, READS_SOURCE),
        (sums.READS_TARGET, READS_TARGET),
        (sums.SENDS, SENDS),
        (sums.WRITES, WRITES_TARGET),
    )
    return sum((bit * kinds.astype(np.int64) for bit, kinds in does), np.zeros(1, np.int64))


def _start(header: Header, layout: Layout) -> tuple[Ints, Ints, Ints]:
    """Return chunk and rank of the first numbers, and the memory before the call.

    That is every rank's input, and nothing else.
    """
    inputs, _ = buffer_chunks(header)
    ranks = np.arange(header.ranks)
    first = [contributions(header, rank, inputs).start for rank in ranks.tolist()]
    chunk = (np.array(first)[:, None] + np.arange(inputs)).ravel()
    memory = np.full(layout.locations, UNDEFINED)
    places = (layout.base[:, :1] + np.arange(inputs)).ravel()
    memory[places] = np.arange(1, len(places) + 1)
    return np.append(WRONG, chunk), np.append(0, np.repeat(ranks, inputs)), memory
