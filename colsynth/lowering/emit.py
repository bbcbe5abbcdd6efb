"""Spell allocated threadblocks and their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.allocation import PlacedThreadblock, place_of
from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import Columns, Ints, rows, spread
from colsynth.lowering.hazards import Waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.passing_sums import passing_sums
from colsynth.model import (
    ChunkProgram,
    Gpu,
    Header,
    StepTable,
    Threadblock,
    ThreadblockProgram,
    Topology,
)
from colsynth.model.step_table import NONE, OPS
from colsynth.runtimes.target import Target
from colsynth.runtimes.titles import title
from colsynth.units import format_size, plural

_S, _R, _RCS, _RRS, _RRC, _RRCS, _CPY, _RE = map(
    OPS.index, ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re")
)
_READS = np.isin(np.arange(len(OPS)), (_S, _CPY, _RE))
"""Steps that read what is sent or copied, and not an operand."""
_WRITES = ~np.isin(np.arange(len(OPS)), (_S, _RRS))


@dataclass(frozen=True)
class Spelling:
    """What steps are spelt from.

    Parameters
    ----------
    columns : Columns
        Of the transfers.
    needed : tuple of tuple of int
        The waits of each operation.
    ranges : ChunkRanges
    """

    columns: Columns
    needed: Waits
    ranges: ChunkRanges


def emit(
    program: ChunkProgram,
    spelling: Spelling,
    blocks: list[PlacedThreadblock],
    layout: Layout,
    target: Target,
) -> ThreadblockProgram:
    """Spell threadblocks, rank by rank.

    Channels are numbered without gaps, since runtimes give buffers to every one below the
    highest. So far they had places of their own for each instance and phase.

    Raises
    ------
    LimitError
        CS222: the runtime cannot count the tiles of the largest message.
    """
    by_rank: list[list[PlacedThreadblock]] = [[] for _ in program.scratch]
    for block in blocks:
        by_rank[block.rank].append(block)
    for own in by_rank:
        own.sort(key=place_of)
    channels = {c: n for n, c in enumerate(sorted({block.channel for block in blocks}))}
    steps = _steps(spelling, by_rank)
    lengths = [len(block.steps) for own in by_rank for block in own]
    parts = steps.parts(lengths)
    gpus = tuple(
        Gpu(
            rank,
            layout.input_chunks,
            layout.output_chunks,
            program.scratch[rank],
            tuple(
                Threadblock(
                    number,
                    block.send,
                    block.recv,
                    channels[block.channel],
                    next(parts),
                )
                for number, block in enumerate(own)
            ),
        )
        for rank, own in enumerate(by_rank)
    )
    header = header_of(program, len(channels), target)
    return ThreadblockProgram.of(header, gpus, steps, np.array(lengths, dtype=np.int64))


def _steps(spelling: Spelling, by_rank: list[list[PlacedThreadblock]]) -> StepTable:
    """Return the steps of all threadblocks one after the other (contract 4.1)."""
    columns = spelling.columns
    placed = [ops for own in by_rank for block in own for ops in block.steps]
    first = np.fromiter(map(itemgetter(0), placed), np.int64, len(placed))
    last = np.fromiter(map(itemgetter(-1), placed), np.int64, len(placed))
    transfer = columns.of_op[first]
    codes = _codes(spelling, first, last)
    plain = _READS[codes]
    source = [np.where(plain, *(a[transfer] for a in pair)) for pair in _sources(columns)]
    target = [np.where(_WRITES[codes], a[transfer], NONE) for a in columns.write]
    origin = (columns.phase, columns.direction, columns.tree, columns.instance, columns.segment)
    return StepTable(
        np.stack(
            [
                codes,
                *source,
                *target,
                columns.count[transfer],
                np.zeros(len(placed), np.int64),
                *(column[transfer] for column in origin),
            ]
        ),
        *_waits(spelling.needed, by_rank, first, last),
    )


def _sources(columns: Columns) -> Iterator[tuple[Ints, Ints]]:
    """Yield the buffers, then the offsets, of what transfers read, and of what they add to."""
    return zip(columns.read, columns.operand, strict=True)


def _codes(spelling: Spelling, first: Ints, last: Ints) -> Ints:
    """Return the type of the step of each pair of operations, or of the same one twice."""
    columns = spelling.columns
    transfer = columns.of_op[first]
    fused, local, reduces = first != last, columns.local[transfer], columns.reduces[transfer] > 0
    sends = columns.opens[first] & ~local
    passing = np.zeros(len(first), dtype=np.bool_)
    sums = fused & reduces
    if sums.any():
        after = columns.of_op[last]
        passing[sums] = passing_sums(columns, spelling.ranges, transfer[sums], after[sums])
    kinds = np.where(fused, _RCS, _R)
    kinds = np.where(reduces, np.where(fused, np.where(passing, _RRS, _RRCS), _RRC), kinds)
    kinds = np.where(local, np.where(columns.operand[0][transfer] >= 0, _RE, _CPY), kinds)
    return np.where(sends, _S, kinds)


def _waits(
    needed: Waits, by_rank: list[list[PlacedThreadblock]], first: Ints, last: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return what each step waits for, as `StepTable` has it: one step per other threadblock.

    That is the last one of those that the step needs.
    """
    lengths = [len(block.steps) for own in by_rank for block in own]
    numbers = np.repeat([n for own in by_rank for n in range(len(own))], lengths)
    places = spread(np.zeros(len(lengths), dtype=np.int64), np.array(lengths))
    where = np.full((2, len(needed)), -1)
    for ops in (first, last):
        where[:, ops] = numbers, places
    begin, op = rows(needed)
    many = np.diff(begin)
    each = [np.arange(len(first)), np.flatnonzero(first != last)]
    taken = [first, last[each[1]]]
    waiter = np.concatenate([np.repeat(e, many[o]) for e, o in zip(each, taken, strict=True)])
    awaited = op[np.concatenate([spread(begin[o], many[o]) for o in taken])]
    block, step = where[:, awaited]
    waiter, block, step = (a[block != numbers[waiter]] for a in (waiter, block, step))
    order = np.lexsort((step, block, waiter))
    waiter, block, step = waiter[order], block[order], step[order]
    latest = np.ones(len(order), dtype=np.bool_)
    latest[:-1] = (waiter[1:] != waiter[:-1]) | (block[1:] != block[:-1])
    ends = np.searchsorted(waiter[latest], np.arange(len(first) + 1))
    return ends, block[latest], step[latest]


def header_of(program: ChunkProgram, channels: int, target: Target) -> Header:
    """Return what a file says about itself.

    Raises
    ------
    LimitError
        CS222: the runtime cannot count the tiles of the largest message.
    """
    problem = program.problem
    most = _largest_message(program.chunks, target)
    return Header(
        name=title(problem.collective, problem.topology.name),
        collective=problem.collective,
        protocol=target.protocol,
        ranks=problem.topology.size,
        chunks=program.chunks,
        channels=channels,
        in_place=target.in_place,
        out_of_place=target.out_of_place,
        min_bytes=max(target.min_bytes, target.profile.least_min_bytes),
        max_bytes=most,
        root=problem.root,
        boxes=_boxes(problem.topology),
    )


def _boxes(topology: Topology) -> tuple[int, ...] | None:
    """Return the box of every rank, None where all are in one."""
    return topology.gpu_boxes if len(topology.boxes) > 1 else None


def _largest_message(chunks: int, target: Target) -> int:
    """Return the bytes of the largest message that the file serves; never without a limit.

    A message of more tiles than flags count would hang (rule K03), so it must not select the
    file.
    """
    profile, asked = target.profile, target.max_bytes
    most = profile.largest_message(target.protocol, chunks)
    option, least = ("min", target.min_bytes) if asked is None else ("max", asked)
    if least > most:
        phrase = f"--{option}-bytes {format_size(least)} is too large for {target.protocol}"
        note = (
            f"{plural(chunks, 'chunk')} of at most {profile.max_tiles} tiles: {format_size(most)}"
        )
        advice = f"give a smaller --{option}-bytes, or more chunks with --instances or --trees"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help=advice))
    return most if asked is None else asked
