"""The steps of a program as the runtime takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.model import StepTable, ThreadblockProgram
from colsynth.runtimes.long_sums import joined

Ints = NDArray[np.int64]


class Unit(NamedTuple):
    """A step other than a nop.

    Parameters
    ----------
    block, ordinal : int
        Threadblock, numbered over the whole program, and place in it, nops included.
    op : str
    """

    block: int
    ordinal: int
    op: str


@dataclass(frozen=True)
class Steps:
    """The steps of a program other than nops, in the order of threadblocks and steps.

    Parameters
    ----------
    table : StepTable
        All steps of the program.
    row : int64 (U,)
        Place in `table`.
    block, ordinal : int64 (U,)
        As of `Unit`.
    wait_first, wait_block, wait_ordinal : int64 (U + 1,), int64 (W,), int64 (W,)
        Where the waits of each begin, and for which step of which threadblock they are.
    joined : bool (U,)
        Whether the runtime does it in one go with the local reduction before it.
    extra : int64 (U,)
        Which of the step's folds a unit stands for; -1 for the step itself, which comes last.
    """

    table: StepTable
    row: Ints
    block: Ints
    ordinal: Ints
    wait_first: Ints
    wait_block: Ints
    wait_ordinal: Ints
    joined: NDArray[np.bool_]
    extra: Ints

    def __len__(self) -> int:
        return len(self.row)

    def units(self) -> tuple[Unit, ...]:
        """Return the steps one by one."""
        ops = [self.table.words[code] for code in self.table.op[self.row].tolist()]
        return tuple(map(Unit, self.block.tolist(), self.ordinal.tolist(), ops))


def steps_of(program: ThreadblockProgram, longest: int | None = None) -> Steps:
    """Return the steps of a program, waits of nops handed on to what stands behind them.

    Parameters
    ----------
    program : ThreadblockProgram
    longest : int, optional
        As `Profile.longest_sum`.
    """
    steps, length = program.steps, program.lengths
    block = np.repeat(np.arange(len(length)), length)
    ordinal = np.arange(len(steps)) - np.repeat(np.cumsum(length) - length, length)
    unit, extra = _parts(np.flatnonzero(~steps.among({"nop"})), steps)
    waiter, wait_block = _waits(program, steps, block)
    behind = np.searchsorted(unit, waiter)  # the unit at or behind each step that waits
    kept = behind < len(unit)
    kept[kept] = block[unit[behind[kept]]] == block[waiter[kept]]
    first = np.searchsorted(behind[kept], np.arange(len(unit) + 1))
    return Steps(
        table=steps,
        row=unit,
        block=block[unit],
        ordinal=ordinal[unit],
        wait_first=first,
        wait_block=wait_block[kept],
        wait_ordinal=steps.wait_step[kept],
        joined=joined(program, longest)[unit],
        extra=extra,
    )


def _parts(unit: Ints, steps: StepTable) -> tuple[Ints, Ints]:
    """Return steps, each once more for each of its folds, and which fold each stands for."""
    extra = np.full(len(unit), -1)
    if not steps.folds:
        return unit, extra
    parts = np.array([1 + len(steps.folds.get(n, ())) for n in unit.tolist()], np.int64)
    extra = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    extra[np.cumsum(parts) - 1] = -1
    return np.repeat(unit, parts), extra


def _waits(program: ThreadblockProgram, steps: StepTable, block: Ints) -> tuple[Ints, Ints]:
    """Return for every wait its step, and the threadblock it is for (one too many: none)."""
    waiter = np.repeat(np.arange(len(steps)), steps.waits)
    many = np.array([len(gpu.threadblocks) for gpu in program.gpus], np.int64)
    rank = np.repeat(np.arange(len(many)), many)[block[waiter]]
    inside = (steps.wait_block >= 0) & (steps.wait_block < many[rank])
    number = (np.cumsum(many) - many)[rank] + steps.wait_block
    return waiter, np.where(inside, number, many.sum())
