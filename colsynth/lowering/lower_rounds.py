"""Pass lower-rounds: few, balanced rounds of point-to-point messages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from colsynth.errors import Diagnostic, InputError
from colsynth.lowering.columns import BUFFERS
from colsynth.lowering.emit import header_of
from colsynth.lowering.layout import Layout
from colsynth.model import (
    ChunkProgram,
    LocalStep,
    Message,
    Round,
    RoundProgram,
    Slot,
    Transfer,
)
from colsynth.runtimes.target import Target

Cell = tuple[int, str, int]
"""A rank, a buffer and an offset."""


@dataclass(frozen=True, slots=True)
class LowerRounds:
    """Put every transfer into a round, with local copies and sums behind the messages.

    There are as few rounds as the longest chain of transfers has links. A transfer that may go
    in several of them takes the round where it adds least to the busiest rank, so rounds are
    balanced. What arrives to be added up lands in scratch first. Adjacent
    chunks between two ranks become one message.
    """

    name: ClassVar[str] = "lower-rounds"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = RoundProgram

    def run(self, value: ChunkProgram, target: Target) -> RoundProgram:
        """Return the program in rounds; slots must be placed."""
        layout = Layout(value.problem, value.chunks)
        moves = _Moves(value.transfers, layout, target.in_place)
        numbers = balanced(value.transfers, moves.before(), len(value.scratch))
        rows: list[list[Transfer]] = [[] for _ in range(max(numbers, default=-1) + 1)]
        for transfer, number in zip(value.transfers, numbers, strict=True):
            rows[number].append(transfer)
        speller = _Speller(value.scratch)
        rounds = tuple(speller.round(row) for row in rows)
        return RoundProgram(header_of(value, 1, target), tuple(speller.scratch), rounds)


@dataclass(frozen=True)
class _Moves:
    """Which transfers must be rounds apart: by their chunks, and by the memory they touch."""

    transfers: tuple[Transfer, ...]
    layout: Layout
    in_place: bool

    def before(self) -> list[dict[int, int]]:
        """Return per transfer the earlier ones, with how many rounds it comes after each.

        A message reads before its round and is there after the messages, local steps follow in
        order. So a message comes a round after whatever it needs or disturbs, a local step may
        share that round.
        """
        found: list[dict[int, int]] = []
        wrote: dict[Cell, int] = {}
        read: defaultdict[Cell, list[int]] = defaultdict(list)
        for number, transfer in enumerate(self.transfers):
            reads, writes, adds = self._cells(transfer)
            apart = 0 if transfer.is_local else 1
            mine = dict.fromkeys(transfer.after, apart)
            for cell in reads:
                _join(mine, wrote.get(cell), apart)
                read[cell].append(number)
            for cell in (*adds, *writes):  # touched behind the messages where it is a sum
                late = 0 if adds else apart
                _join(mine, wrote.get(cell), late)
                for other in read[cell] if cell in writes else ():
                    _join(mine, other if other != number else None, late)
            for cell in adds:
                read[cell].append(number)
            for cell in writes:
                wrote[cell] = number
                read[cell] = []
            found.append(mine)
        return found

    def _cells(self, transfer: Transfer) -> tuple[list[Cell], list[Cell], list[Cell]]:
        """Return the cells that a transfer reads, writes, and adds to what it moves."""
        ends = (transfer.source, transfer.target, transfer.target)
        slots = (transfer.read, transfer.write, transfer.operand)
        reads, writes, adds = (
            [] if slot is None else self._run(rank, slot, transfer.count)
            for rank, slot in zip(ends, slots, strict=True)
        )
        return reads, writes, adds

    def _run(self, rank: int, slot: Slot, count: int) -> list[Cell]:
        """Return the cells of adjacent chunks; buffers that may be one memory share cells."""
        if not self.in_place:
            return [(rank, slot.buffer, slot.offset + k) for k in range(count)]
        offsets = slot.offset + np.arange(count)
        kinds = np.full(count, BUFFERS.index(slot.buffer))
        buffers, places = self.layout.in_place_aliases(np.full(count, rank), kinds, offsets)
        pairs = zip(buffers.tolist(), places.tolist(), strict=True)
        return [(rank, BUFFERS[kind], place) for kind, place in pairs]


def _join(found: dict[int, int], other: int | None, apart: int) -> None:
    if other is not None:
        found[other] = max(found.get(other, 0), apart)


def balanced(
    transfers: tuple[Transfer, ...], before: list[dict[int, int]], ranks: int
) -> list[int]:
    """Return the round of every transfer: as few as chains allow, the busiest ranks relieved.

    Parameters
    ----------
    transfers : tuple of Transfer
    before : list of dict
        Per transfer, earlier ones and the least distance in rounds.
    ranks : int
    """
    first: list[int] = []
    for needs in before:
        first.append(max((first[u] + apart for u, apart in needs.items()), default=0))
    end = max(first, default=0)
    last = [end] * len(transfers)
    for number in range(len(transfers) - 1, -1, -1):
        for u, apart in before[number].items():
            last[u] = min(last[u], last[number] - apart)
    load = np.zeros((end + 1, 2, ranks), np.int64)
    busiest = np.zeros(end + 1, np.int64)
    taken: list[int] = []
    for number, transfer in enumerate(transfers):
        begin = max((taken[u] + apart for u, apart in before[number].items()), default=0)
        if transfer.is_local:
            taken.append(begin)
            continue
        window = slice(begin, last[number] + 1)
        mine = np.maximum(load[window, 0, transfer.source], load[window, 1, transfer.target])
        after = mine + transfer.count
        growth = np.maximum(after - busiest[window], 0)
        place = begin + int(np.lexsort((after, growth))[0])
        load[place, 0, transfer.source] += transfer.count
        load[place, 1, transfer.target] += transfer.count
        ends = load[place, [0, 1], [transfer.source, transfer.target]]
        busiest[place] = max(busiest[place], *ends)
        taken.append(place)
    return taken


class _Speller:
    """Spells rounds; `scratch` grows by what lands before it is added up.

    The landings of a round are free in the next one.
    """

    def __init__(self, scratch: tuple[int, ...]) -> None:
        self._placed = scratch
        self.scratch = list(scratch)

    def round(self, row: list[Transfer]) -> Round:
        """Return a round of the transfers in it, given in the order of the program."""
        landings = list(self._placed)
        messages: list[Message] = []
        landed: dict[int, Slot] = {}
        moving = [(place, t) for place, t in enumerate(row) if not t.is_local]
        moving.sort(key=lambda item: (item[1].source, item[1].target, item[1].read, item[0]))
        for place, transfer in moving:
            read, write = _placed(transfer)
            if transfer.operand is not None:
                write = landed[place] = Slot("s", landings[transfer.target])
                landings[transfer.target] += transfer.count
            ends = transfer.source, transfer.target
            messages.append(Message(*ends, read, write, transfer.count))
        for rank, used in enumerate(landings):
            self.scratch[rank] = max(self.scratch[rank], used)
        steps = []
        for place, transfer in enumerate(row):
            if transfer.is_local or place in landed:
                read, write = _placed(transfer)
                read = landed.get(place, read)
                count = transfer.count
                steps.append(LocalStep(transfer.target, read, write, transfer.operand, count))
        return Round(tuple(_merged(messages)), tuple(_merged_steps(steps)))


def _placed(transfer: Transfer) -> tuple[Slot, Slot]:
    """Return where a transfer reads and writes, as the pass place-slots has set it."""
    if transfer.read is None or transfer.write is None:
        phrase = "'lower-rounds' takes a program with slots"
        raise InputError(Diagnostic("CS205", phrase, help="put 'place-slots' before it"))
    return transfer.read, transfer.write


def _merged(messages: list[Message]) -> list[Message]:
    """Join messages of a pair that are adjacent on both ends; they come sorted."""
    found: list[Message] = []
    for message in messages:
        if found:
            last = found[-1]
            same = (last.source, last.target) == (message.source, message.target)
            ends = ((last.read, message.read), (last.write, message.write))
            if same and all(_follows(a, last.count, b) for a, b in ends):
                found[-1] = replace(last, count=last.count + message.count)
                continue
        found.append(message)
    return found


def _merged_steps(steps: list[LocalStep]) -> list[LocalStep]:
    """Sort steps by rank, whose order they keep, and join those that follow each other."""
    found: list[LocalStep] = []
    for step in sorted(steps, key=lambda step: step.rank):
        if found:
            last = found[-1]
            ends = ((last.read, step.read), (last.write, step.write), (last.operand, step.operand))
            if last.rank == step.rank and all(_follows(a, last.count, b) for a, b in ends):
                found[-1] = replace(last, count=last.count + step.count)
                continue
        found.append(step)
    return found


def _follows(one: Slot | None, count: int, other: Slot | None) -> bool:
    """Whether a run of chunks begins where another of `count` ends; also where neither is."""
    if one is None or other is None:
        return one is other
    return one.buffer == other.buffer and one.offset + count == other.offset
