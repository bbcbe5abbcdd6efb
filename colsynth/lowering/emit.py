"""Spell allocated threadblocks and their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from operator import attrgetter, itemgetter

import numpy as np

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.allocation import PlacedThreadblock, place_of
from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import Columns, Ints, spread
from colsynth.lowering.hazards import Waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.passing_sums import passing_sums
from colsynth.model import (
    ChunkProgram,
    Gpu,
    Header,
    Step,
    Threadblock,
    ThreadblockProgram,
    Topology,
    Wait,
)
from colsynth.runtimes.target import Target
from colsynth.runtimes.titles import title
from colsynth.units import plural

_OPS = "r", "rcs", "rrc", "rrcs", "rrs", "s", "cpy", "re"
_R, _RCS, _RRC, _RRCS, _RRS, _S, _CPY, _RE = range(len(_OPS))
"""Operations; from `_S` on, those that read what is sent or copied, and not an operand."""
_wait = partial(tuple.__new__, Wait)  # takes half as long
_WRITES = tuple(op not in ("s", "rrs") for op in _OPS)


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
    steps = iter(_steps(spelling, by_rank))
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
                    tuple(islice(steps, len(block.steps))),
                )
                for number, block in enumerate(own)
            ),
        )
        for rank, own in enumerate(by_rank)
    )
    return ThreadblockProgram(header_of(program, len(channels), target), gpus)


def _steps(spelling: Spelling, by_rank: list[list[PlacedThreadblock]]) -> Iterator[Step]:
    """Return the steps of all threadblocks one after the other (contract 4.1)."""
    columns = spelling.columns
    placed = [ops for own in by_rank for block in own for ops in block.steps]
    first = np.fromiter(map(itemgetter(0), placed), np.int64, len(placed))
    last = np.fromiter(map(itemgetter(-1), placed), np.int64, len(placed))
    transfer = columns.of_op[first]
    fused, local, reduces = first != last, columns.local[transfer], columns.reduces[transfer] > 0
    sends = columns.opens[first] & ~local
    passing = np.zeros(len(placed), dtype=np.bool_)
    sums = fused & reduces
    if sums.any():
        after = columns.of_op[last]
        passing[sums] = passing_sums(columns, spelling.ranges, transfer[sums], after[sums])
    kinds = np.where(reduces, np.where(fused, np.where(passing, _RRS, _RRCS), _RRC), fused * _RCS)
    kinds = np.where(local, np.where(columns.operand[0][transfer] >= 0, _RE, _CPY), kinds)
    kinds = np.where(sends, _S, kinds)
    moves = [columns.transfers[number] for number in transfer.tolist()]
    codes = kinds.tolist()
    return map(
        Step,
        [_OPS[code] for code in codes],
        [t.read if code >= _S else t.operand for t, code in zip(moves, codes, strict=True)],
        [t.write if _WRITES[code] else None for t, code in zip(moves, codes, strict=True)],
        map(attrgetter("count"), moves),
        _waits(spelling.needed, by_rank, placed, first, last),
        repeat(False),
        map(attrgetter("origin"), moves),
    )


def _waits(
    needed: Waits,
    by_rank: list[list[PlacedThreadblock]],
    placed: list[tuple[int, ...]],
    first: Ints,
    last: Ints,
) -> list[tuple[Wait, ...]]:
    """Return what each step waits for: the last step of each other threadblock."""
    lengths = [len(block.steps) for own in by_rank for block in own]
    numbers = np.repeat([n for own in by_rank for n in range(len(own))], lengths)
    places = spread(np.zeros(len(lengths), dtype=np.int64), np.array(lengths))
    where = np.full((2, len(needed)), -1)
    for ops in (first, last):
        where[:, ops] = numbers, places
    block_of, step_of = where.tolist()
    found: list[tuple[Wait, ...]] = []
    for number, step in zip(numbers.tolist(), placed, strict=True):
        waits = needed[step[0]] if len(step) == 1 else needed[step[0]] + needed[step[1]]
        if not waits:
            found.append(())
        elif len(waits) == 1:
            block = block_of[waits[0]]
            found.append(() if block == number else (_wait((block, step_of[waits[0]])),))
        else:
            latest: dict[int, int] = {}
            for op in waits:
                block = block_of[op]
                if block != number and step_of[op] > latest.get(block, -1):
                    latest[block] = step_of[op]
            found.append(tuple(map(_wait, sorted(latest.items()))))
    return found


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
    if len(topology.boxes) <= 1:
        return None
    boxes = (topology.nodes[node].box for node in topology.ranks)
    return tuple(-1 if box is None else box for box in boxes)


def _largest_message(chunks: int, target: Target) -> int:
    """Return the bytes of the largest message that the file serves; never without a limit.

    A message of more tiles than flags count would hang (rule K03), so it must not select the
    file.
    """
    profile, asked = target.profile, target.max_bytes
    most = profile.largest_message(target.protocol, chunks)
    option, least = ("min", target.min_bytes) if asked is None else ("max", asked)
    if least > most:
        phrase = f"--{option}-bytes {least} is too large for {target.protocol}"
        note = f"{plural(chunks, 'chunk')} of at most {profile.max_tiles} tiles: {most} bytes"
        advice = f"give a smaller --{option}-bytes, or more chunks with --instances or --trees"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help=advice))
    return most if asked is None else asked
