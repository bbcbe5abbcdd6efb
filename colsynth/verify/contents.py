"""Symbolic execution: which contributions every chunk holds, under one mode of the call.

A value is a small integer that stands for an expression. 0 is memory nobody wrote.
Equal numbers mean the same additions in the same grouping, so two ranks that hold equal
numbers hold bitwise equal sums. Each number has a chunk (as
`contract.contributions` counts) and a bit mask of the ranks whose contributions were added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from colsynth.verify.contract import Layout, buffer_chunks, contributions
from colsynth.verify.table import CPY, RCS, RE, RRCS, RRS, Ints, R, S
from colsynth.verify.units import Units

_LONGEST = 1 << 15
"""Chunks of a message beyond which no file means what it says (rule S07)."""
_COPIES, _RECEIVED, _KEPT = frozenset({S, CPY}), frozenset({R, RCS}), frozenset({S, RRS})
_SENT = frozenset({S, RCS, RRS, RRCS})
UNDEFINED = 0
WRONG = -1
"""Chunk of a value that is no sum of distinct contributions to one chunk."""


class Values:
    """Interned expressions."""

    def __init__(self) -> None:
        self.chunk = [WRONG]
        self.mask = [0]
        self.fault: dict[int, str] = {UNDEFINED: "memory nobody wrote"}
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


@dataclass
class Outcome:
    """Memory after one pass, and what went wrong on the way.

    Parameters
    ----------
    values : Values
    memory : list of int
        A value per location of the layout.
    undefined : list of int
        Units that read memory nobody wrote.
    wrong : dict
        Unit at which each wrong value first arose.
    sent : list of list of int
        The values that each step sent, None where it sent nothing.
    """

    values: Values
    memory: list[int]
    undefined: list[int] = field(default_factory=list)
    wrong: dict[int, int] = field(default_factory=dict)
    sent: list[list[int] | None] = field(default_factory=list)


def evaluate(units: Units, order: list[int], layout: Layout, source: Ints, target: Ints) -> Outcome:
    """Execute the units in `order` on symbolic data.

    Parameters
    ----------
    units : Units
    order : list of int
        Units, each after all that precede it.
    layout : Layout
    source, target : int arrays
        Location of every step's operands, -1 where it does not exist.
    """
    outcome = _start(units, layout)
    _run(units, order, source.tolist(), target.tolist(), outcome)
    return outcome


def _start(units: Units, layout: Layout) -> Outcome:
    """Return the memory before the call: every rank's input, nothing else."""
    header = units.table.header
    values, memory = Values(), [UNDEFINED] * layout.locations
    inputs, _ = buffer_chunks(header)
    for rank in range(header.ranks):
        base = int(layout.base[rank, 0])
        memory[base : base + inputs] = values.leaves(contributions(header, rank, inputs), rank)
    return Outcome(values, memory)


def _run(
    units: Units, order: list[int], source: list[int], target: list[int], outcome: Outcome
) -> None:
    memory, values = outcome.memory, outcome.values
    add, undefined = values.add, outcome.undefined
    ops, counts = units.table.op.tolist(), units.table.count.clip(0, _LONGEST).tolist()
    match = units.match
    sent = outcome.sent = [None] * len(ops)
    for unit in order:
        op, count = ops[unit], counts[unit]
        read, write = source[unit], target[unit]
        known = len(values.fault)
        if op in _COPIES:
            data = memory[read : read + count] if read >= 0 else [UNDEFINED] * count
            if UNDEFINED in data and read >= 0:
                undefined.append(unit)
        elif op == RE:
            data = _reduce(memory, write, read, count, add, undefined, unit)
        else:
            data = _fit(sent[match[unit]] if match[unit] >= 0 else None, count)
            if op not in _RECEIVED:
                local = memory[read : read + count] if read >= 0 else [UNDEFINED] * count
                if UNDEFINED in local and read >= 0:
                    undefined.append(unit)
                data = [add(x, y) for x, y in zip(data, local, strict=True)]
        if op in _SENT:
            sent[unit] = data
        if op not in _KEPT and write >= 0:
            memory[write : write + count] = data
        if len(values.fault) > known:
            outcome.wrong.update(dict.fromkeys(islice(values.fault, known, None), unit))


def _reduce(
    memory: list[int],
    write: int,
    read: int,
    count: int,
    add: Callable[[int, int], int],
    undefined: list[int],
    unit: int,
) -> list[int]:
    """Return the target chunks with the source chunks added."""
    if read < 0 or write < 0:
        return [UNDEFINED] * count
    mine, other = memory[write : write + count], memory[read : read + count]
    if UNDEFINED in mine or UNDEFINED in other:
        undefined.append(unit)
    return [add(x, y) for x, y in zip(mine, other, strict=True)]


def _fit(message: list[int] | None, count: int) -> list[int]:
    """Return `count` chunks of a message; what is missing is undefined."""
    if message is None:
        return [UNDEFINED] * count
    if len(message) == count:
        return message
    return (message + [UNDEFINED] * count)[:count]
