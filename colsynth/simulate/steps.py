"""The steps of a program as the runtime takes them, or why it could not execute them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InputError
from colsynth.model import (
    RECEIVES,
    SENDS,
    Gpu,
    Step,
    StepTable,
    Threadblock,
    ThreadblockProgram,
    Topology,
)
from colsynth.text import listed

Ints = NDArray[np.int64]

FOLDED = 1 / 3
"""Time of a further message in a sum, in that of a message that is received and added.

U: that one reads two buffers and writes one, and a further message is one more buffer to read.
"""
_MOST = 1 << 15
"""Chunks that a step can reach: offsets are int16 on every runtime (`Profile.max_offset`)."""
_EXECUTED = frozenset({*SENDS, *RECEIVES, "cpy", "re", "nop"})


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
    require_ranks(program.header.ranks, topology)
    if program.header.chunks < 1:
        raise unfit(f"messages are cut into {program.header.chunks} chunks")
    if len(program.gpus) != program.header.ranks:
        raise unfit(f"of {program.header.ranks} ranks {len(program.gpus)} have a program")
    odd = iter(_odd(program).tolist())
    for rank, gpu in enumerate(program.gpus):
        if gpu.rank != rank:
            raise unfit(f"there is no rank {rank}, or there are two of one number", gpu.rank)
        _check_scratch(gpu)
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                text = f"rank {rank} has no threadblock {place}, or two of one number"
                raise unfit(text, rank, block.id)
            if next(odd):
                _check_block(block, rank, program.header.ranks)
    _check_connections(program)


def require_ranks(ranks: int, topology: Topology) -> None:
    """Refuse a program for another number of ranks (CS600)."""
    if ranks != topology.size:
        phrase = f"the program is for {ranks} ranks, {topology.name} has {topology.size}"
        hint = f"choose a topology of {ranks} GPUs with -t, --nodes or --group"
        raise Unfit(Diagnostic("CS600", phrase, help=hint))


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
        raise unfit(f"{where} has steps that no runtime executes: {strange}", rank, block.id)
    counts = [step.count for step in block.steps]
    if counts and not 0 <= min(counts) <= max(counts) <= _MOST:
        place = next(n for n, count in enumerate(counts) if not 0 <= count <= _MOST)
        text = f"{where} has a step that moves {counts[place]} chunks; a step moves 0 to {_MOST}"
        raise unfit(text, rank, block.id, place)
    for peer, kinds in ((block.send, SENDS), (block.recv, RECEIVES)):
        if peer is None and not ops.isdisjoint(kinds):
            text = f"{where} has no peer for {', '.join(sorted(ops & kinds))}"
            raise unfit(text, rank, block.id)
        if peer is not None and (not 0 <= peer < ranks or peer == rank):
            text = f"{where} has rank {peer} as its peer; ranks are 0 to {ranks - 1}"
            raise unfit(text, rank, block.id)


@dataclass(frozen=True)
class Steps:
    """The steps of a program other than nops, in the order of threadblocks and steps.

    Parameters
    ----------
    table : StepTable
        All steps of the program.
    row : int64 (U,)
        Place in `table`.
    block, ordinal : int64 (U,)
        As of `Unit`.
    wait_first, wait_block, wait_ordinal : int64 (U + 1,), int64 (W,), int64 (W,)
        Where the waits of each begin, and for which step of which threadblock they are.
    joined : bool (U,)
        As of `Unit`.
    extra : int64 (U,)
        Which of the step's folds a unit stands for; -1 for the step itself, which comes last.
    """

    table: StepTable
    row: Ints
    block: Ints
    ordinal: Ints
    wait_first: Ints
    wait_block: Ints
    wait_ordinal: Ints
    joined: NDArray[np.bool_]
    extra: Ints

    def __len__(self) -> int:
        return len(self.row)

    def units(self) -> tuple[Unit, ...]:
        """Return the steps one by one."""
        waits = list(zip(self.wait_block.tolist(), self.wait_ordinal.tolist(), strict=True))
        each = [tuple(waits[a:b]) for a, b in pairwise(self.wait_first.tolist())]
        whole = self.table.steps(0, len(self.table))
        steps = [whole[row] for row in self.row.tolist()]
        places = self.block.tolist(), self.ordinal.tolist()
        return tuple(map(Unit, *places, steps, each, self.joined.tolist()))


def steps_of(program: ThreadblockProgram) -> Steps:
    """Return the steps of a program, waits of nops handed on to what stands behind them."""
    steps, length = program.steps, program.lengths
    block = np.repeat(np.arange(len(length)), length)
    ordinal = np.arange(len(steps)) - np.repeat(np.cumsum(length) - length, length)
    unit, extra = _parts(np.flatnonzero(~steps.among({"nop"})), steps)
    waiter, wait_block = _waits(program, steps, block)
    behind = np.searchsorted(unit, waiter)  # the unit at or behind each step that waits
    kept = behind < len(unit)
    kept[kept] = block[unit[behind[kept]]] == block[waiter[kept]]
    first = np.searchsorted(behind[kept], np.arange(len(unit) + 1))
    return Steps(
        table=steps,
        row=unit,
        block=block[unit],
        ordinal=ordinal[unit],
        wait_first=first,
        wait_block=wait_block[kept],
        wait_ordinal=steps.wait_step[kept],
        joined=_joined(steps, unit, block[unit], first),
        extra=extra,
    )


def _parts(unit: Ints, steps: StepTable) -> tuple[Ints, Ints]:
    """Return steps, each once more for each of its folds, and which fold each stands for."""
    extra = np.full(len(unit), -1)
    if not steps.folds:
        return unit, extra
    parts = np.array([1 + len(steps.folds.get(n, ())) for n in unit.tolist()], np.int64)
    extra = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    extra[np.cumsum(parts) - 1] = -1
    return np.repeat(unit, parts), extra


def _waits(program: ThreadblockProgram, steps: StepTable, block: Ints) -> tuple[Ints, Ints]:
    """Return for every wait its step, and the threadblock it is for (one too many: none)."""
    waiter = np.repeat(np.arange(len(steps)), steps.waits)
    many = np.array([len(gpu.threadblocks) for gpu in program.gpus], np.int64)
    rank = np.repeat(np.arange(len(many)), many)[block[waiter]]
    inside = (steps.wait_block >= 0) & (steps.wait_block < many[rank])
    number = (np.cumsum(many) - many)[rank] + steps.wait_block
    return waiter, np.where(inside, number, many.sum())


def _joined(steps: StepTable, unit: Ints, block: Ints, wait_first: Ints) -> NDArray[np.bool_]:
    """Return which steps the runtime does in one go with the one before.

    It fuses local reductions in a row into the same chunk, from the same buffer, unless somebody
    waits for the first (contract 4.5).
    """
    same = block[1:] == block[:-1]
    same &= wait_first[2:] == wait_first[1:-1]
    adds = steps.among({"re"})[unit]
    same &= adds[1:] & adds[:-1] & (steps.signals[unit[:-1]] == 0)
    keys = np.stack([*steps.target, steps.source[0]])[:, unit]
    same &= (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    return np.concatenate([np.zeros(min(len(unit), 1), dtype=np.bool_), same])


def unfit(
    note: str, rank: int | None = None, block: int | None = None, step: int | None = None
) -> Unfit:
    """Return the refusal of a program that cannot be executed (CS602)."""
    advice = "`colsynth verify` names everything that is wrong with the file"
    phrase = "the program cannot be executed"
    return Unfit(Diagnostic("CS602", phrase, notes=(note,), help=advice), rank, block, step)
