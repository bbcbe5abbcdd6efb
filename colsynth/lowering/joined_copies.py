"""Local copies that one threadblock does in a row, as one step.

Own copies are cut chunk by chunk so that several threadblocks can share them
(`colsynth.lowering.local_copies`). Each costs a threadblock a step: an allgather of 1 MiB by rccl
on an MI250 spent 32 of its 47 us so. Threadblocks that only do such copies, for which nobody waits,
take chunks that lie side by side. Then copies of adjacent chunks that follow each other, whatever
they are for, are done at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from colsynth.lowering.columns import INPUT, Bools, Ints
from colsynth.model import Origin, StepTable
from colsynth.model.step_table import COUNT, OPS, PHASE

_TREE = PHASE + Origin._fields.index("tree")


def joined_copies(steps: StepTable, lengths: Ints, home: Ints, most: int) -> tuple[StepTable, Ints]:
    """Return steps of which copies of adjacent chunks are one, and how many threadblocks have.

    A copy that waits begins such a step, and one that others wait for ends it.

    Parameters
    ----------
    steps : StepTable
    lengths, home : int arrays
        Steps of each threadblock, and the first threadblock of its GPU.
    most : int
        Chunks of a step, at most.
    """
    copies = steps.op == OPS.index("cpy")
    if not (copies[1:] & copies[:-1]).any():
        return steps, lengths
    block = np.repeat(np.arange(len(lengths)), lengths)
    into, awaited = awaited_steps(steps, lengths, home)
    steps = _side_by_side(steps, block, home, awaited)
    rows = np.flatnonzero(_goes_on(steps, block, awaited)).tolist()
    if not rows:
        return steps, lengths
    count, kept, head = steps.count.copy(), np.ones(len(steps), dtype=np.bool_), 0
    for row in rows:
        head = row - 1 if kept[row - 1] else head
        kept[row] = count[head] + count[row] > most
        count[head] += 0 if kept[row] else count[row]
    place = np.cumsum(kept) - 1
    numbers = steps.numbers.copy()
    numbers[COUNT] = count
    left = np.bincount(block[kept], minlength=len(lengths))
    begin = np.cumsum(left) - left
    found = replace(steps, numbers=numbers, wait_step=place[awaited] - begin[into])
    return found.take(np.flatnonzero(kept)), left


def awaited_steps(steps: StepTable, lengths: Ints, home: Ints) -> tuple[Ints, Ints]:
    """Return the threadblock and the step that each wait is for, among those of all GPUs.

    Parameters
    ----------
    steps : StepTable
    lengths, home : int arrays
        As for `joined_copies`.
    """
    first = np.cumsum(lengths) - lengths
    waiter = np.repeat(np.repeat(home, lengths), steps.waits)
    into = waiter + steps.wait_block
    return into, first[into] + steps.wait_step


def _side_by_side(steps: StepTable, block: Ints, home: Ints, awaited: Ints) -> StepTable:
    """Return steps in which threadblocks of a GPU that only copy input share it in order."""
    own = (steps.op == OPS.index("cpy")) & (steps.waits == 0) & (steps.numbers[_TREE] < 0)
    own &= (steps.source[0] == INPUT) & (steps.target[0] != INPUT)
    own[awaited] = False
    other = np.bincount(block[~own], minlength=len(home))
    rows = np.flatnonzero(other[block] == 0)
    order = np.lexsort((steps.source[1, rows], steps.target[0, rows], home[block[rows]]))
    if (order[1:] > order[:-1]).all():
        return steps
    numbers = steps.numbers.copy()
    numbers[:, rows] = numbers[:, rows[order]]
    return replace(steps, numbers=numbers)


def _goes_on(steps: StepTable, block: Ints, awaited: Ints) -> Bools:
    """Return which steps copy what lies right behind the copy before, and none waits between."""
    follows = np.zeros(len(steps), dtype=np.bool_)
    alike = (steps.op == OPS.index("cpy")) & (steps.waits == 0)
    ends = np.zeros(len(steps), dtype=np.bool_)
    ends[awaited] = True
    keys = np.stack([block, steps.op, steps.source[0], steps.target[0]])
    begins = np.stack([steps.source[1], steps.target[1]])
    follows[1:] = alike[1:] & ~ends[:-1] & (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    follows[1:] &= (begins[:, 1:] == begins[:, :-1] + steps.count[:-1]).all(axis=0)
    return follows
