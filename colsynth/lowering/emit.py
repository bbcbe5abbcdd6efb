"""Spell filled lanes as threadblocks and steps."""

from __future__ import annotations

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.hazards import Op
from colsynth.lowering.lanes import Hop, Lane
from colsynth.lowering.layout import Layout
from colsynth.lowering.segments import Segments
from colsynth.lowering.staffing import Staffing
from colsynth.model import (
    ChunkProgram,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Transfer,
    Wait,
)
from colsynth.runtimes.target import Target
from colsynth.runtimes.titles import title
from colsynth.units import plural


def emit(
    program: ChunkProgram, staffing: Staffing, layout: Layout, target: Target
) -> ThreadblockProgram:
    """Spell lanes as threadblocks, rank by rank.

    Channels are numbered without gaps, since runtimes give buffers to every one below the
    highest. So far they had places of their own for each instance and phase.

    Raises
    ------
    LimitError
        CS222: the runtime cannot count the tiles of the largest message.
    """
    size = program.problem.topology.size
    by_rank: list[list[Lane]] = [[] for _ in range(size)]
    for lane in staffing.lanes.lanes:
        by_rank[lane.rank].append(lane)
    channels = {c: n for n, c in enumerate(sorted({x.channel for x in staffing.lanes.lanes}))}
    segments = Segments(program.transfers, layout.grain)
    passing = _passing_sums(program.transfers, segments, _fused(staffing))
    gpus = tuple(
        Gpu(
            rank,
            layout.input_chunks,
            layout.output_chunks,
            program.scratch[rank],
            _threadblocks(_sorted_lanes(by_rank[rank]), program, staffing, passing, channels),
        )
        for rank in range(size)
    )
    return ThreadblockProgram(_header(program, len(channels), target), gpus)


def _sorted_lanes(lanes: list[Lane]) -> list[Lane]:
    def key(lane: Lane) -> tuple[int, int, int]:
        none = -1
        recv = none if lane.recv is None else lane.recv
        return lane.channel, none if lane.send is None else lane.send, recv

    return sorted(lanes, key=key)


def _threadblocks(
    lanes: list[Lane],
    program: ChunkProgram,
    staffing: Staffing,
    passing: frozenset[int],
    channels: dict[int, int],
) -> tuple[Threadblock, ...]:
    needed = staffing.needed
    place = {
        op: Wait(number, step)
        for number, lane in enumerate(lanes)
        for step, hop in enumerate(lane.hops)
        for op in hop.ops
    }
    blocks = []
    for number, lane in enumerate(lanes):
        steps = tuple(
            _step(hop, program.transfers, staffing.ops, passing, _waits(hop, number, place, needed))
            for hop in lane.hops
        )
        blocks.append(Threadblock(number, lane.send, lane.recv, channels[lane.channel], steps))
    return tuple(blocks)


def _waits(
    hop: Hop, block: int, place: dict[int, Wait], needed: tuple[tuple[int, ...], ...]
) -> tuple[Wait, ...]:
    """Return what a hop of a threadblock waits for in others."""
    found = [place[p] for op in hop.ops for p in needed[op]]
    return _latest([wait for wait in found if wait.threadblock != block])


def _latest(needed: list[Wait]) -> tuple[Wait, ...]:
    """Keep the last step of each threadblock: it comes after the others."""
    if len(needed) < 2:
        return tuple(needed)
    last: dict[int, int] = {}
    for wait in needed:
        last[wait.threadblock] = max(wait.step, last.get(wait.threadblock, -1))
    return tuple(Wait(block, step) for block, step in sorted(last.items()))


def _step(
    hop: Hop,
    transfers: tuple[Transfer, ...],
    ops: tuple[Op, ...],
    passing: frozenset[int],
    waits: tuple[Wait, ...],
) -> Step:
    """Return the instruction of a hop (contract 4.1)."""
    transfer = transfers[ops[hop.ops[0]].transfer]
    read: Slot | None
    write: Slot | None
    if transfer.is_local:
        kind = "re" if transfer.operand is not None else "cpy"
        read, write = transfer.read, transfer.write
    elif hop.recv is None:
        kind, read, write = "s", transfer.read, None
    elif hop.send is None:
        kind = "rrc" if transfer.reduces else "r"
        read, write = transfer.operand, transfer.write
    elif not transfer.reduces:
        kind, read, write = "rcs", None, transfer.write
    elif ops[hop.ops[0]].transfer in passing:
        kind, read, write = "rrs", transfer.operand, None
    else:
        kind, read, write = "rrcs", transfer.operand, transfer.write
    return Step(kind, read, write, transfer.count, waits, origin=transfer.origin)


def _fused(staffing: Staffing) -> dict[int, int]:
    """Map each transfer that is passed on in the step that receives it to the one behind."""
    return {
        staffing.ops[hop.ops[0]].transfer: staffing.ops[hop.ops[1]].transfer
        for lane in staffing.lanes.lanes
        for hop in lane.hops
        if hop.recv is not None and hop.send is not None
    }


def _passing_sums(
    transfers: tuple[Transfer, ...], segments: Segments, fused: dict[int, int]
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
        for slot in segments.slots(transfer, transfer.read):
            readers.setdefault(writer.get((transfer.source, slot), -1), set()).add(number)
        for slot in segments.slots(transfer, transfer.operand):
            readers.setdefault(writer.get((transfer.target, slot), -1), set()).add(number)
        for slot in segments.slots(transfer, transfer.write):
            writer[transfer.target, slot] = number
    lasting = {number for (_, slot), number in writer.items() if slot.buffer != "s"}
    return frozenset(
        first
        for first, second in sorted(fused.items())
        if transfers[first].reduces and first not in lasting and readers.get(first) == {second}
    )


def _header(program: ChunkProgram, channels: int, target: Target) -> Header:
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
    )


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
