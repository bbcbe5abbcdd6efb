"""How many operations a plan has at most, without writing it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colsynth.model import RECEIVES, SENDS
from colsynth.model.step_table import BUFFERS
from colsynth.runtimes.long_sums import joined
from colsynth.runtimes.plans.semaphores import READS, WRITES
from colsynth.runtimes.plans.sequence import OP_SEMAPHORES
from colsynth.runtimes.plans.shape import CREDITS, Form, Ints, PlanShape

_FRAME = 3 * CREDITS + 3
"""Operations of a threadblock outside its steps: signals and waits for credits, those for ports,
the head of the pipeline, and the nops before them and at the end of its body."""
_FUSED = frozenset({"rcs", "rrs", "rrcs"})


def most_operations(shape: PlanShape, longest: int | None) -> Ints | None:
    """Return for each of `shape.blocks` a number that its operations do not exceed, int64 (B,).

    None with multicast.

    `longest` is as `Profile.longest_sum`: steps that are done with the one before count once.

    Every operation but a wait may have a nop before it (`colsynth.runtimes.plans.sequence`). What
    steps, dependencies and chunks used again become is said by `colsynth.runtimes.plans.blocks`
    and `semaphores`.

    Time O(steps and the chunks of scratch that they touch).
    """
    if shape.program.multicasts:
        return None
    steps, begins = shape.program.steps, ~joined(shape.program, longest)
    taken, given = (_portions(each, begins) for each in _of_waits(shape))
    moves = steps.among(RECEIVES) + 2 * _of_steps(shape)
    found = np.zeros(len(shape.blocks), dtype=np.int64)
    np.add.at(found, shape.homes, (moves * begins) + taken + 2 * given)
    if shape.form is Form.PIPELINE:
        found += _of_reuse(shape)
    return _FRAME + found


def _portions(semaphores: Ints, begins: NDArray[np.bool_]) -> Ints:
    """Return the operations for semaphores of steps, of which some are done with the one before."""
    found = np.zeros_like(semaphores)
    first = np.flatnonzero(begins)
    if len(first):
        found[first] = -(-np.add.reduceat(semaphores, first) // OP_SEMAPHORES)
    return found


def _of_steps(shape: PlanShape) -> Ints:
    """Return the most operations that move the data of each step, and signal that they did.

    Each part is copied, added up or put into the memory of a peer. What passes on is added up and
    put, in one operation or two; over a port it may be copied before.
    """
    steps = shape.program.steps
    pipeline = shape.form is Form.PIPELINE
    parts: Ints = steps.count if pipeline else np.ones_like(steps.count)
    far = [
        block.send is not None and shape.is_port(rank, block.send) for rank, block in shape.blocks
    ]
    port = np.array(far, dtype=np.bool_)[shape.homes]
    sends, fused = steps.among(SENDS), steps.among(_FUSED)
    in_scratch = steps.source[0] == BUFFERS.index("s")
    each = 1 + (fused & (port | (pipeline & in_scratch))) + (sends & port)
    found: Ints = parts * each + (sends & ~port)
    return found


def _of_waits(shape: PlanShape) -> tuple[Ints, Ints]:
    """Return the most semaphores that each step takes and gives: one for each dependency."""
    program = shape.program
    steps = program.steps
    begins = np.cumsum(program.lengths) - program.lengths
    waiting = np.repeat(shape.homes, steps.waits)
    awaited = begins[program.first_blocks[waiting] + steps.wait_block] + steps.wait_step
    return steps.waits, np.bincount(awaited, minlength=len(steps))


def _of_reuse(shape: PlanShape) -> Ints:
    """Return the most operations of each threadblock for chunks of scratch that are used again.

    Who may be the first to write a chunk takes a semaphore of each other threadblock that touches
    it, one for all chunks of the two. That is one operation there, and two where it is given.
    """
    ranks = np.array([rank for rank, _ in shape.blocks], dtype=np.int64)
    steps, width = shape.program.steps, shape.own + 1
    written = np.unique(_cells(shape, steps.target, WRITES, width))
    cells = np.unique(np.concatenate([written, _cells(shape, steps.source, READS, width)]))
    block, chunk = np.divmod(cells, width)
    place, writes = ranks[block] * width + chunk, np.isin(cells, written)
    order = np.argsort(place, kind="stable")
    block, place, writes = block[order], place[order], writes[order]
    found = [block[:0]]
    for apart in range(1, len(place)):
        one = np.flatnonzero(place[apart:] == place[:-apart])
        if not len(one):
            break
        for giver, taker in ((one, one + apart), (one + apart, one)):
            met = writes[taker]
            found.append(block[giver[met]] * len(ranks) + block[taker[met]])
    givers, takers = np.divmod(np.unique(np.concatenate(found)), len(ranks))
    count = len(ranks)
    return 2 * np.bincount(givers, minlength=count) + np.bincount(takers, minlength=count)


def _cells(shape: PlanShape, operand: Ints, ops: frozenset[str], width: int) -> Ints:
    """Return threadblock * width + chunk of every chunk of scratch that operands of steps touch."""
    buffer, offset = operand
    steps = shape.program.steps
    rows = np.flatnonzero((buffer == BUFFERS.index("s")) & steps.among(ops))
    count = steps.count[rows]
    part = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    cells: Ints = np.repeat(shape.homes[rows] * width + offset[rows], count) + part
    return cells
