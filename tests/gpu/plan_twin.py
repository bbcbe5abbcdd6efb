"""Executes the tables of a plan one operation at a time: the slow twin of ``plans.cu``.

Threadblocks take turns, and a proxy moves what is posted at once. One call is executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.gpu.plan_tables import CODES, PACKED, WRAPS, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Words = NDArray[Any]
    Code = Iterator[None]

FLAG = 1
"""Of the packets of the only call."""


class Twin:
    """All ranks.

    Parameters
    ----------
    tables : Tables
    arena : array of float32
    """

    def __init__(self, tables: Tables, arena: Words) -> None:
        self.tables, self.arena = tables, arena.view(np.uint32)
        self.signals = [0] * tables.channels
        self.semaphores = tables.semaphores.tolist()
        self.met = [0] * tables.barriers
        self.steps = 0

    def run(self) -> int:
        """Execute everything; return the threadblocks that hang."""
        codes = [self._block(row) for row in self.tables.blocks[: self.tables.workers].tolist()]
        before = -1
        while codes and self.steps > before:
            before = self.steps
            codes = [code for code in codes if next(code, self) is None]
        return len(codes)

    def left(self) -> int:
        """Return signals and counts of semaphores out of balance."""
        return (
            sum(map(abs, self.signals)) + sum(self.semaphores) - int(self.tables.semaphores.sum())
        )

    def _block(self, row: list[int]) -> Code:
        first, many, operands, _, ids = row[1:6]
        ops = self.tables.ops[first : first + many].tolist()
        at = 0
        while at < many:
            inner, turns, unit = ops[at][5], ops[at][8], ops[at][9]
            if CODES[ops[at][0]] == "pipeline":
                body = ops[at + 1 : at + 1 + inner]
                for turn in range(turns):
                    for op in body:
                        yield from self._step(op, operands, ids, turn * unit, unit, row[8])
                at += inner
            else:
                yield from self._step(ops[at], operands, ids, 0, 1 << 60, row[8])
            at += 1

    def _step(
        self, op: list[int], operands: int, ids: int, shift: int, unit: int, wrap: int
    ) -> Code:
        """Do an operation, as soon as it can be done."""
        name = CODES[op[0]]
        rows = self.tables.operands[operands + op[1] :][: op[2] + op[3]].tolist()
        parts = [self._words(row, op, shift, unit, wrap) for row in rows]
        numbers = self.tables.ids[ids + op[4] :][: op[5]].tolist()
        if name in {"move", "packets"}:
            yield from self._move(parts, rows, op[2])
        elif name == "post":
            for k, number in enumerate(numbers):
                parts[op[2] + k][:] = parts[k]
                self.signals[number] += op[8]
        elif name == "barrier":
            self.met[op[8]] += 1
            wanted = -(-self.met[op[8]] // op[9]) * op[9]
            yield from self._until(lambda: self.met[op[8]] >= wanted)
        else:
            for number in numbers:
                yield from self._count(name, number)
        self.steps += 1

    def _count(self, name: str, number: int) -> Code:
        counters = self.semaphores if name.startswith("sem") else self.signals
        if name in {"wait", "rlxwait", "sem_acquire"}:
            yield from self._until(lambda: counters[number] > 0)
            counters[number] -= 1
        elif name != "flush":
            counters[number] += 1

    def _move(self, parts: list[Words], rows: list[list[int]], sources: int) -> Code:
        total: Words | None = None
        for part, row in zip(parts[:sources], rows, strict=False):
            data = part
            if row[2] & PACKED:
                yield from self._until(lambda part=part: bool((part[1::2] == FLAG).all()))
                data = part[0::2]
            value = np.ascontiguousarray(data).view(np.float32)
            total = value.copy() if total is None else total + value
        if total is None:
            return
        for part, row in zip(parts[sources:], rows[sources:], strict=True):
            if row[2] & PACKED:
                part[0::2], part[1::2] = total.view(np.uint32), FLAG
            else:
                part[:] = total.view(np.uint32)

    def _words(self, row: list[int], op: list[int], shift: int, unit: int, wrap: int) -> Words:
        """Return the words of an operand in an iteration; of packets, flags included."""
        place, length, flags = row
        length = min(length - shift, unit)
        scale = 2 if flags & PACKED else 1
        first = length // 16 * op[6] // op[7] * 16
        last = length // 16 * (op[6] + 1) // op[7] * 16 if op[7] > 1 else length
        place += scale * ((shift % wrap if flags & WRAPS else shift) + first)
        return self.arena[place // 4 : (place + scale * (last - first)) // 4]

    def _until(self, test: Callable[[], bool]) -> Code:
        while not test():
            yield
