"""A plan at one length of message, in cells of memory.

A cell is the smallest part of a chunk that operations tell apart: an iteration of the pipelines,
a slice of a group of threadblocks, or a part of one where lengths do not divide each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from colsynth.runtimes.plans.form import Loop, Plan, scratch_stride
from colsynth.verify.contract import Layout, layout
from colsynth.verify.plans.program import call_mode, loops_of, uses_packets
from colsynth.verify.plans.resolved import (
    BUFFER,
    HALVED,
    INDEX,
    OWNER,
    PACKETS,
    RANK,
    SIZE,
    SLICE,
    SLICES,
    Resolved,
)

if TYPE_CHECKING:
    from colsynth.verify.table import Ints

_SCRATCH = 2
_MOST_CELLS = 1 << 40
"""More than fit into any memory."""


@dataclass(frozen=True)
class Cut:
    """A plan at one length of message.

    Parameters
    ----------
    program : Resolved
    cells : int
        Cells of a chunk.
    memory : Layout
        Input and output in chunks.
    locations : int
        Cells of all ranks.
    turns : int array
        How often each operation is executed, in the order of all threadblocks.
    items : int array (I, 3)
        What is executed: operation, first cell of the iteration and its cells, -1 for all.
    first : int array (B + 1,)
        First item of each threadblock.
    start : int array (halves, N)
        First cell of each operand, by half of the scratch buffer (one unless it is double).
    wrap, apart, length : int arrays (N,)
        Cells behind which a slot begins again, 0 for never; distance of cells (those of packets are
        two apart); cells of an operand outside pipelines.
    """

    program: Resolved
    cells: int
    memory: Layout
    locations: int
    turns: Ints
    items: Ints
    first: Ints
    start: Ints
    wrap: Ints
    apart: Ints
    length: Ints


def cut(plan: Plan, program: Resolved, chunk: Fraction) -> Cut:
    """Return a plan at a message whose chunks have so many bytes."""
    header = program.header
    loops = loops_of(plan)
    slots = [scratch_stride(plan, gpu) for gpu in plan.gpus]
    wraps = bool(loops) and plan.reuse_resources
    lengths = {loop.unit_size for loop in loops} | set(slots if wraps else ())
    # Cells of a byte, so that all that operations tell apart are whole cells.
    per_byte = Fraction(
        lcm(1, *np.unique(program.operands[:, SLICES]).tolist()) * chunk.denominator,
        gcd(chunk.numerator, *(length * chunk.denominator for length in lengths)),
    )
    cells = int(chunk * per_byte)
    wrap = np.array([int(slot * per_byte) if wraps else 0 for slot in slots])
    stride = np.minimum(cells, wrap) if wraps else np.full_like(wrap, cells)
    memory = layout(header, call_mode(header), np.zeros(header.ranks, np.int64))
    base = memory.base * cells
    factor = (2 if uses_packets(plan) else 1) * (2 if plan.use_double_scratch_buffer else 1)
    scratch = np.array([gpu.scratch_chunks for gpu in plan.gpus]) * stride * factor
    ends = memory.locations * cells + np.cumsum(scratch)
    base[:, _SCRATCH] = ends - scratch
    o, halves = program.operands, 2 if plan.use_double_scratch_buffer else 1
    in_scratch = o[:, BUFFER] == _SCRATCH
    apart, length = 1 + o[:, PACKETS], o[:, SIZE] * cells // o[:, SLICES]
    at = o[:, INDEX] * np.where(in_scratch, stride[o[:, RANK]], cells) + o[:, SLICE] * length
    start = base[o[:, OWNER], o[:, BUFFER]] + apart * at
    shift = np.where(in_scratch & (o[:, HALVED] > 0), scratch[o[:, OWNER]] // 2, 0)
    turns, items, first = _items(program, cells, per_byte)
    return Cut(
        program,
        cells,
        memory,
        int(ends[-1]),
        turns,
        items,
        first,
        np.stack([start + half * shift for half in range(halves)]),
        np.where(in_scratch, wrap[o[:, RANK]], 0),
        apart,
        length,
    )


def _items(program: Resolved, cells: int, per_byte: Fraction) -> tuple[Ints, Ints, Ints]:
    """Return how often each operation is executed, all executions, and where threadblocks begin."""
    cuts = [_cut_loop(many, loop, cells, per_byte) for many, loop in program.groups]
    many, rounds, unit, end = np.array(cuts, np.int64).reshape(-1, 4).T
    total = many * rounds
    group = np.repeat(np.arange(len(total)), total)
    begins = np.cumsum(total) - total
    place = np.arange(len(group)) - begins[group]
    turn, step = np.divmod(place, many[group])
    number = (np.cumsum(many) - many)[group] + step
    origin = turn * unit[group]
    size = np.minimum(unit[group], end[group] - origin)
    items = np.stack([number, origin, np.where(unit[group] < 0, -1, size)], axis=1)
    turns = np.repeat(rounds, many)
    parts = np.cumsum([0, *map(len, program.parts)])
    executed = np.concatenate([np.zeros(1, np.int64), np.cumsum(turns)])
    return turns, items, executed[parts]


def _cut_loop(
    many: int, loop: Loop | None, cells: int, per_byte: Fraction
) -> tuple[int, int, int, int]:
    """Return operations and iterations of a pipeline, and cells of one and of all; -1 for none."""
    if loop is None:
        return many, 1, -1, -1
    end = loop.num_chunks * cells
    unit = min(int(loop.unit_size * per_byte), end)
    rounds = -(-end // unit)
    # Nothing is moved in pipelines of more chunks than buffers have (P12).
    return (many, rounds, unit, end) if end <= _MOST_CELLS else (many, rounds, 0, 0)
