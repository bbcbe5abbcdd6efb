"""The steps of a program as the runtime takes them, or why it could not execute them."""

from __future__ import annotations

from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Step, Threadblock, ThreadblockProgram

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


def check(program: ThreadblockProgram) -> None:
    """Refuse what no runtime could execute, whatever the order of steps (CS602)."""
    if program.header.chunks < 1:
        raise unfit(f"messages are cut into {program.header.chunks} chunks")
    if len(program.gpus) != program.header.ranks:
        raise unfit(f"of {program.header.ranks} ranks {len(program.gpus)} have a program")
    for rank, gpu in enumerate(program.gpus):
        if gpu.rank != rank:
            raise unfit(f"there is no rank {rank}, or there are two of one number")
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                raise unfit(f"rank {rank} has no threadblock {place}, or two of one number")
            _check_block(block, rank, program.header.ranks)


def _check_block(block: Threadblock, rank: int, ranks: int) -> None:
    """Refuse steps without a peer, peers that are no ranks, and steps that are none."""
    ops = {step.op for step in block.steps}
    where = f"rank {rank}, threadblock {block.id}"
    if not ops <= _EXECUTED:
        raise unfit(
            f"{where} has steps that no runtime executes: {', '.join(sorted(ops - _EXECUTED))}"
        )
    wrong = [step.count for step in block.steps if not 0 <= step.count <= _MOST]
    if wrong:
        raise unfit(f"{where} has a step that moves {wrong[0]} chunks")
    for peer, kinds in ((block.send, SENDS), (block.recv, RECEIVES)):
        if peer is None and not ops.isdisjoint(kinds):
            raise unfit(f"{where} has no peer for {', '.join(sorted(ops & set(kinds)))}")
        if peer is not None and (not 0 <= peer < ranks or peer == rank):
            raise unfit(f"{where} has rank {peer} as its peer")


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


def unfit(note: str) -> InputError:
    """Return the refusal of a program that cannot be executed (CS602)."""
    advice = "`colsynth verify` says everything that is wrong with the file"
    phrase = "the program cannot be executed"
    return InputError(Diagnostic("CS602", phrase, notes=(note,), help=advice))
