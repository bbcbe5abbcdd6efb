"""Programs of threadblocks as the tables that ``interpreter.cu`` reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colsynth.model.step_table import OPS
from colsynth.simulate.steps import steps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.model import ThreadblockProgram

    Table = NDArray[np.int32]

KERNEL_OPS = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re")
"""Operations of the kernel, by code; those of `StepTable` begin with the same."""
assert OPS[: len(KERNEL_OPS)] == KERNEL_OPS


@dataclass(frozen=True)
class Tables:
    """A program of B threadblocks, U steps other than nops, and C connections.

    Parameters
    ----------
    blocks : int32 (B, 5)
        Rank; connections sent to and received from (0 for none); first step and the one behind
        the last.
    units : int32 (U, 12)
        Operation; buffer and chunk of source and target; chunks; place in the file; whether it
        signals; first wait and the one behind the last; the same of further sources of a sum.
    waits : int32 (W, 2)
        Threadblock, and place in it, that is waited for.
    more : int32 (M,)
        Chunks from the source of a sum to its further ones.
    connections : int
    """

    blocks: Table
    units: Table
    waits: Table
    more: Table
    connections: int


def tables_of(program: ThreadblockProgram) -> Tables:
    """Return the tables of a program; sums that the runtime does in one go are one step."""
    steps = steps_of(program)
    head = np.flatnonzero(~steps.joined)
    last = np.append(head[1:], len(steps)) - 1
    row, table = steps.row, steps.table
    source = table.source[1]
    more = np.flatnonzero(steps.joined)
    first_more = np.searchsorted(more, head)
    operands = np.maximum(np.stack([*table.source, *table.target]), 0)  # unused ones are -1
    units = np.stack(
        [
            table.op[row[head]],
            *operands[:, row[head]],
            table.count[row[head]],
            steps.ordinal[last],
            table.signals[row[last]],
            steps.wait_first[head],
            steps.wait_first[head + 1],
            first_more,
            first_more + (last - head),
        ],
        axis=1,
    )
    behind = head[np.searchsorted(head, more) - 1]
    waits = np.stack([steps.wait_block, steps.wait_ordinal], axis=1)
    ends = np.searchsorted(steps.block[head], np.arange(len(program.lengths) + 1))
    wires: dict[tuple[int, int, int], int] = {}
    blocks = []
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            ways = (gpu.rank, block.send), (block.recv, gpu.rank)
            own = [
                0 if None in way else wires.setdefault((*way, block.channel), len(wires))
                for way in ways
            ]
            number = len(blocks)
            blocks.append((gpu.rank, *own, ends[number], ends[number + 1]))
    return Tables(
        np.array(blocks, np.int32),
        units.astype(np.int32),
        np.ascontiguousarray(waits, np.int32).reshape(-1, 2),
        (source[row[more]] - source[row[behind]]).astype(np.int32),
        max(1, len(wires)),
    )
