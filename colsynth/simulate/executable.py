"""Whether a program can be executed at all: what simulation, drawings and exports rely on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InputError
from colsynth.model import (
    RECEIVES,
    SENDS,
    Gpu,
    Program,
    RoundProgram,
    Threadblock,
    ThreadblockProgram,
    Topology,
)
from colsynth.text import listed

_MOST = 1 << 15
"""Chunks that a step can reach: offsets are int16 on every runtime (`Profile.max_offset`)."""
_EXECUTED = frozenset({*SENDS, *RECEIVES, "cpy", "re", "nop"})


class Unfit(InputError):
    """A program that cannot be executed.

    Parameters
    ----------
    diagnostic : Diagnostic
    rank, block, step : int, optional
        What it is about: rank, id of the threadblock, place of the step; None is the header.
    """

    def __init__(
        self,
        diagnostic: Diagnostic,
        rank: int | None = None,
        block: int | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__(diagnostic)
        self.rank, self.block, self.step = rank, block, step


def check(program: Program) -> None:
    """Refuse what no runtime could execute, whatever the order of steps.

    Raises
    ------
    Unfit
        CS602: the program cannot be executed.
    """
    if program.header.chunks < 1:
        raise _unfit(f"messages are cut into {program.header.chunks} chunks")
    if isinstance(program, RoundProgram):
        _check_rounds(program)
        return
    if len(program.gpus) != program.header.ranks:
        raise _unfit(f"of {program.header.ranks} ranks {len(program.gpus)} have a program")
    if not program.multicasts:
        _check_threadblocks(program)


def _check_threadblocks(program: ThreadblockProgram) -> None:
    """Refuse GPUs, threadblocks and steps that do not fit each other."""
    odd = iter(_odd(program).tolist())
    for rank, gpu in enumerate(program.gpus):
        if gpu.rank != rank:
            raise _unfit(f"there is no rank {rank}, or there are two of one number", gpu.rank)
        _check_buffers(gpu)
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                text = f"rank {rank} has no threadblock {place}, or two of one number"
                raise _unfit(text, rank, block.id)
            if next(odd):
                _check_block(block, rank, program.header.ranks)
    _check_connections(program)


def require_ranks(ranks: int, topology: Topology) -> None:
    """Refuse a program for another number of ranks (CS600)."""
    if ranks != topology.size:
        phrase = f"the program is for {ranks} ranks, {topology.name} has {topology.size}"
        hint = f"choose a topology of {ranks} GPUs with -t, --nodes or --group"
        raise Unfit(Diagnostic("CS600", phrase, help=hint))


def _check_buffers(gpu: Gpu) -> None:
    """Refuse a buffer of which no step can reach the end."""
    for name, chunks in (
        ("input", gpu.input_chunks),
        ("output", gpu.output_chunks),
        ("scratch", gpu.scratch_chunks),
    ):
        if chunks > 2 * _MOST:
            text = f"rank {gpu.rank} asks for {chunks} chunks of {name} buffer"
            raise _unfit(f"{text}; steps can reach {2 * _MOST}", gpu.rank)


def _check_connections(program: ThreadblockProgram) -> None:
    """Refuse two threadblocks on one end of a connection."""
    seen: set[tuple[str, int, int, int]] = set()
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            for verb, peer in (("send to", block.send), ("receive from", block.recv)):
                if peer is None:
                    continue
                end = (verb, gpu.rank, peer, block.channel)
                if end in seen:
                    text = f"two threadblocks of rank {gpu.rank} {verb} rank {peer}"
                    raise _unfit(f"{text} on channel {block.channel}", gpu.rank, block.id)
                seen.add(end)


def _odd(program: ThreadblockProgram) -> NDArray[np.bool_]:
    """Return which threadblocks `_check_block` may refuse."""
    steps, lengths, ranks = program.steps, program.lengths, program.header.ranks
    own = [(gpu.rank, block) for gpu in program.gpus for block in gpu.threadblocks]
    wrong = ~steps.among(_EXECUTED) | (steps.count < 0) | (steps.count > _MOST)
    found = np.zeros(len(own), dtype=np.bool_)
    for kinds, peers in ((SENDS, [b.send for _, b in own]), (RECEIVES, [b.recv for _, b in own])):
        absent = np.array([peer is None for peer in peers], np.bool_)
        wrong |= steps.among(kinds) & np.repeat(absent, lengths)
        for number, ((rank, _), peer) in enumerate(zip(own, peers, strict=True)):
            found[number] |= peer is not None and (peer == rank or not 0 <= peer < ranks)
    found[np.repeat(np.arange(len(own)), lengths)[wrong]] = True
    return found


def _check_block(block: Threadblock, rank: int, ranks: int) -> None:
    """Refuse steps without a peer, peers that are no ranks, and steps that are none."""
    ops = {step.op for step in block.steps}
    where = f"rank {rank}, threadblock {block.id}"
    if not ops <= _EXECUTED:
        strange = listed(sorted(ops - _EXECUTED))
        raise _unfit(f"{where} has steps that no runtime executes: {strange}", rank, block.id)
    counts = [step.count for step in block.steps]
    if counts and not 0 <= min(counts) <= max(counts) <= _MOST:
        place = next(n for n, count in enumerate(counts) if not 0 <= count <= _MOST)
        text = f"{where} has a step that moves {counts[place]} chunks; a step moves 0 to {_MOST}"
        raise _unfit(text, rank, block.id, place)
    for peer, kinds in ((block.send, SENDS), (block.recv, RECEIVES)):
        if peer is None and not ops.isdisjoint(kinds):
            text = f"{where} has no peer for {', '.join(sorted(ops & kinds))}"
            raise _unfit(text, rank, block.id)
        if peer is not None and (not 0 <= peer < ranks or peer == rank):
            text = f"{where} has rank {peer} as its peer; ranks are 0 to {ranks - 1}"
            raise _unfit(text, rank, block.id)


def _check_rounds(program: RoundProgram) -> None:
    """Refuse messages and local steps of ranks that do not exist, or of less than no chunks."""
    ranks = range(program.header.ranks)
    for number, found in enumerate(program.rounds):
        strange = next((rank for rank in found.ranks() if rank not in ranks), None)
        if strange is not None:
            raise _unfit(f"round {number} has rank {strange}; ranks are 0 to {len(ranks) - 1}")
        counts = [m.count for m in found.messages] + [step.count for step in found.local]
        if counts and min(counts) < 0:
            raise _unfit(f"round {number} moves {min(counts)} chunks")


def _unfit(
    note: str, rank: int | None = None, block: int | None = None, step: int | None = None
) -> Unfit:
    """Return the refusal of a program that cannot be executed (CS602)."""
    advice = "`colsynth verify` names everything that is wrong with the file"
    phrase = "the program cannot be executed"
    return Unfit(Diagnostic("CS602", phrase, notes=(note,), help=advice), rank, block, step)
