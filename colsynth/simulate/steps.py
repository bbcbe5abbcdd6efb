"""The steps of a program as the runtime takes them, or why it could not execute them."""

from __future__ import annotations

from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Gpu, Step, Threadblock, ThreadblockProgram, Topology
from colsynth.text import listed

SENDS = ("s", "rcs", "rrs", "rrcs")
RECEIVES = ("r", "rcs", "rrs", "rrc", "rrcs")
_MOST = 1 << 15
"""Chunks that a step can reach: offsets are int16 on every runtime (`Profile.max_offset`)."""
_EXECUTED = {*SENDS, *RECEIVES, "cpy", "re", "nop"}


class Unit(NamedTuple):
    """A step other than a nop, with all the dependencies it waits for.

    Parameters
    ----------
    block, ordinal : int
        Threadblock, numbered over the whole program, and place in it, nops included.
    step : Step
    waits : tuple of (int, int)
        Threadblock (number over the program) and ordinal.
    joined : bool
        Whether the runtime does it in one go with the local reduction before it.
    """

    block: int
    ordinal: int
    step: Step
    waits: tuple[tuple[int, int], ...]
    joined: bool


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


def check(program: ThreadblockProgram, topology: Topology) -> None:
    """Refuse what no runtime could execute on a topology, whatever the order of steps.

    Raises
    ------
    Unfit
        CS600: the ranks of both differ; CS602: the program cannot be executed.
    """
    ranks = program.header.ranks
    if ranks != topology.size:
        phrase = f"the program is for {ranks} ranks, {topology.name} has {topology.size}"
        hint = f"choose a topology of {ranks} GPUs with -t, --nodes or --group"
        raise Unfit(Diagnostic("CS600", phrase, help=hint))
    if program.header.chunks < 1:
        raise unfit(f"messages are cut into {program.header.chunks} chunks")
    if len(program.gpus) != program.header.ranks:
        raise unfit(f"of {program.header.ranks} ranks {len(program.gpus)} have a program")
    for rank, gpu in enumerate(program.gpus):
        if gpu.rank != rank:
            raise unfit(f"there is no rank {rank}, or there are two of one number", gpu.rank)
        _check_scratch(gpu)
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                text = f"rank {rank} has no threadblock {place}, or two of one number"
                raise unfit(text, rank, block.id)
            _check_block(block, rank, program.header.ranks)
    _check_connections(program)


def _check_scratch(gpu: Gpu) -> None:
    """Refuse a scratch buffer of which no step can reach the end."""
    if gpu.scratch_chunks > 2 * _MOST:
        text = f"rank {gpu.rank} asks for {gpu.scratch_chunks} chunks of scratch buffer"
        raise unfit(f"{text}; steps can reach {2 * _MOST}", gpu.rank)


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
                    raise unfit(f"{text} on channel {block.channel}", gpu.rank, block.id)
                seen.add(end)


def _check_block(block: Threadblock, rank: int, ranks: int) -> None:
    """Refuse steps without a peer, peers that are no ranks, and steps that are none."""
    ops = {step.op for step in block.steps}
    where = f"rank {rank}, threadblock {block.id}"
    if not ops <= _EXECUTED:
        strange = listed(sorted(ops - _EXECUTED))
        raise unfit(f"{where} has steps that no runtime executes: {strange}", rank, block.id)
    for place, step in enumerate(block.steps):
        if not 0 <= step.count <= _MOST:
            text = f"{where} has a step that moves {step.count} chunks; a step moves 0 to {_MOST}"
            raise unfit(text, rank, block.id, place)
    for peer, kinds in ((block.send, SENDS), (block.recv, RECEIVES)):
        if peer is None and not ops.isdisjoint(kinds):
            text = f"{where} has no peer for {', '.join(sorted(ops & set(kinds)))}"
            raise unfit(text, rank, block.id)
        if peer is not None and (not 0 <= peer < ranks or peer == rank):
            text = f"{where} has rank {peer} as its peer; ranks are 0 to {ranks - 1}"
            raise unfit(text, rank, block.id)


def units_of(program: ThreadblockProgram) -> list[Unit]:
    """Return the units of a program in the order of threadblocks and steps."""
    number: dict[tuple[int, int], int] = {}
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            number[gpu.rank, block.id] = len(number)
    units: list[Unit] = []
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            pending: tuple[tuple[int, int], ...] = ()
            before: Unit | None = None
            for ordinal, step in enumerate(block.steps):
                pending += tuple(
                    (number.get((gpu.rank, wait.threadblock), len(number)), wait.step)
                    for wait in step.waits
                )
                if step.op == "nop":
                    continue
                joined = before is not None and not pending and _joins(before.step, step)
                before = Unit(number[gpu.rank, block.id], ordinal, step, pending, joined)
                units.append(before)
                pending = ()
    return units


def _joins(before: Step, step: Step) -> bool:
    """Whether the runtime fuses two local reductions (contract 4.5)."""
    if before.op != "re" or step.op != "re" or before.signals:
        return False
    letters = (before.source and before.source.buffer, step.source and step.source.buffer)
    return before.target == step.target and letters[0] == letters[1]


def unfit(
    note: str, rank: int | None = None, block: int | None = None, step: int | None = None
) -> Unfit:
    """Return the refusal of a program that cannot be executed (CS602)."""
    advice = "`colsynth verify` names everything that is wrong with the file"
    phrase = "the program cannot be executed"
    return Unfit(Diagnostic("CS602", phrase, notes=(note,), help=advice), rank, block, step)
