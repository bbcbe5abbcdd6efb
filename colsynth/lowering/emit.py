"""Spell allocated threadblocks and their steps."""

from __future__ import annotations

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.allocate_threadblocks import Allocator
from colsynth.lowering.allocation import PlacedThreadblock, place_of
from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.hazards import Op, Waits
from colsynth.lowering.layout import Layout
from colsynth.model import (
    ChunkProgram,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Topology,
    Transfer,
    Wait,
)
from colsynth.runtimes.target import Target
from colsynth.runtimes.titles import title
from colsynth.units import plural


def emit(
    program: ChunkProgram,
    allocator: Allocator,
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
    size = program.problem.topology.size
    by_rank: list[list[PlacedThreadblock]] = [[] for _ in range(size)]
    for block in blocks:
        by_rank[block.rank].append(block)
    transfer = [op[0] for op in allocator.ops]
    fused = {transfer[s[0]]: transfer[s[1]] for block in blocks for s in block.steps if len(s) > 1}
    channels = {c: n for n, c in enumerate(sorted({block.channel for block in blocks}))}
    ranges = ChunkRanges(program.transfers, layout.grain)
    passing = _passing_sums(program.transfers, ranges, fused)
    spell = _Speller(program.transfers, allocator.ops, allocator.needed, passing)
    gpus = tuple(
        Gpu(
            rank,
            layout.input_chunks,
            layout.output_chunks,
            program.scratch[rank],
            spell.threadblocks(sorted(by_rank[rank], key=place_of), channels),
        )
        for rank in range(size)
    )
    return ThreadblockProgram(header_of(program, len(channels), target), gpus)


class _Speller:
    """Spells the steps of a program.

    Parameters
    ----------
    transfers : tuple of Transfer
    ops : tuple of Op
    needed : tuple of tuple of int
        The waits of each operation.
    passing : frozenset of int
        Transfers whose sum nobody needs but the send in the same step.
    """

    def __init__(
        self,
        transfers: tuple[Transfer, ...],
        ops: tuple[Op, ...],
        needed: Waits,
        passing: frozenset[int],
    ) -> None:
        self._of = [(transfers[transfer], sends) for transfer, _, sends, _ in ops]
        self._needed = needed
        self._passing = {id(transfers[number]) for number in passing}
        self._block, self._step = [-1] * len(ops), [-1] * len(ops)

    def threadblocks(
        self, blocks: list[PlacedThreadblock], channels: dict[int, int]
    ) -> tuple[Threadblock, ...]:
        """Return the threadblocks of one rank, their channels renumbered."""
        for number, block in enumerate(blocks):
            for place, ops in enumerate(block.steps):
                for op in ops:
                    self._block[op], self._step[op] = number, place
        return tuple(
            Threadblock(
                number,
                block.send,
                block.recv,
                channels[block.channel],
                tuple([self._spelt(ops, self._waits(ops, number)) for ops in block.steps]),
            )
            for number, block in enumerate(blocks)
        )

    def _waits(self, ops: tuple[int, ...], number: int) -> tuple[Wait, ...]:
        """Return what a step of a threadblock waits for: the last step of each other one."""
        needed = self._needed[ops[0]]
        if len(ops) > 1:
            needed += self._needed[ops[1]]
        if not needed:
            return ()
        if len(needed) == 1:
            block = self._block[needed[0]]
            return () if block == number else (Wait(block, self._step[needed[0]]),)
        last: dict[int, int] = {}
        for op in needed:
            block = self._block[op]
            if block != number and self._step[op] > last.get(block, -1):
                last[block] = self._step[op]
        return tuple([Wait(*wait) for wait in sorted(last.items())])

    def _spelt(self, ops: tuple[int, ...], waits: tuple[Wait, ...]) -> Step:
        """Return the instruction of a step (contract 4.1)."""
        transfer, sends = self._of[ops[0]]
        read, write, operand = transfer.read, transfer.write, transfer.operand
        if transfer.source == transfer.target:
            kind = "cpy" if operand is None else "re"
        elif sends:
            kind, write = "s", None
        elif len(ops) == 1:
            kind, read = "rrc" if transfer.reduces else "r", operand
        elif not transfer.reduces:
            kind, read = "rcs", None
        elif id(transfer) in self._passing:
            kind, read, write = "rrs", operand, None
        else:
            kind, read = "rrcs", operand
        return Step(kind, read, write, transfer.count, waits, False, transfer.origin)


def _passing_sums(
    transfers: tuple[Transfer, ...], ranges: ChunkRanges, fused: dict[int, int]
) -> frozenset[int]:
    """Return reducing transfers whose sum nobody needs but the send in the same step.

    Nothing else reads it before it is overwritten, and it is no part of the result:
    it lies in scratch, or is overwritten.
    """
    if not any(transfers[first].reduces for first in fused):
        return frozenset()
    readers: dict[int, set[int]] = {}
    writer: dict[tuple[int, Slot], int] = {}
    for number, transfer in enumerate(transfers):
        for slot in ranges.slots(transfer, transfer.read):
            readers.setdefault(writer.get((transfer.source, slot), -1), set()).add(number)
        for slot in ranges.slots(transfer, transfer.operand):
            readers.setdefault(writer.get((transfer.target, slot), -1), set()).add(number)
        for slot in ranges.slots(transfer, transfer.write):
            writer[transfer.target, slot] = number
    lasting = {number for (_, slot), number in writer.items() if slot.buffer != "s"}
    return frozenset(
        first
        for first, second in sorted(fused.items())
        if transfers[first].reduces and first not in lasting and readers.get(first) == {second}
    )


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
