"""Pass lower-rounds: few, balanced rounds of point-to-point messages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeVar

from colsynth.cost.pair_routes import pair_routes
from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.lowering.emit import header_of
from colsynth.lowering.layout import Layout
from colsynth.lowering.proposals import spreads
from colsynth.lowering.round_numbers import Wires, fewest, spread_out
from colsynth.model import (
    ChunkProgram,
    LocalStep,
    Message,
    Round,
    RoundProgram,
    Slot,
    Topology,
    Transfer,
)
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target

_Item = TypeVar("_Item", Message, LocalStep)
_NOTHING = range(0)
_UNIT = 10**18
"""Picoseconds in a second, times bytes of a megabyte: times of a chunk as whole numbers."""


@dataclass(frozen=True, slots=True)
class LowerRounds:
    """Put every transfer into a round, with local copies and sums behind the messages.

    By default, there are as few rounds as the longest chain of transfers has links, and a transfer
    with time to spare takes the round where it adds least to the busiest link. With `spread`,
    links carry a part of their load in each round, so that chunks follow each other through tall
    trees. What arrives to be added up lands in scratch first. Adjacent chunks between two ranks
    become one message.

    Parameters
    ----------
    spread : int
        A link carries at most this part, 1 / `spread`, of the load of the busiest link in a round;
        0: as few rounds as possible.
    """

    spread: int = 0

    name: ClassVar[str] = "lower-rounds"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = RoundProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("spread", propose=spreads),)

    def __post_init__(self) -> None:
        require_least("spread", self.spread, 0)

    def run(self, value: ChunkProgram, target: Target) -> RoundProgram:
        """Return the program in rounds; slots must be placed."""
        layout = Layout(value.problem, value.chunks)
        moves = _Moves(value.transfers, layout, target.in_place)
        wires = _wires(value.transfers, value.problem.topology)
        if self.spread:
            numbers = spread_out(value.transfers, moves.before(), wires, self.spread)
        else:
            numbers = fewest(value.transfers, moves.before(), wires)
        rows: list[list[Transfer]] = [[] for _ in range(max(numbers, default=-1) + 1)]
        for transfer, number in zip(value.transfers, numbers, strict=True):
            rows[number].append(transfer)
        speller = _Speller(value.scratch, moves)
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
        wrote: dict[int, int] = {}
        read: defaultdict[int, list[int]] = defaultdict(list)
        for number, transfer in enumerate(self.transfers):
            reads, writes, adds = self._cells(transfer)
            apart = 0 if transfer.is_local else 1
            mine = dict.fromkeys(transfer.after, apart)
            late = 0 if adds else apart  # a sum is touched behind the messages
            for cell in reads:
                read[cell].append(number)
            for cells, distance in ((reads, apart), (adds, late), (writes, late)):
                for other in [wrote[cell] for cell in cells if cell in wrote]:
                    mine[other] = max(mine.get(other, 0), distance)
            for cell in writes:
                for other in read.pop(cell, ()):
                    if other != number:
                        mine[other] = max(mine.get(other, 0), late)
                wrote[cell] = number
            for cell in adds:
                if cell not in writes:
                    read[cell].append(number)
            found.append(mine)
        return found

    def _cells(self, transfer: Transfer) -> tuple[range, range, range]:
        """Return the cells that a transfer reads, writes, and adds to what it moves."""
        source, target, count = transfer.source, transfer.target, transfer.count
        return (
            self.cells(source, transfer.read, count),
            self.cells(target, transfer.write, count),
            self.cells(target, transfer.operand, count),
        )

    def cells(self, rank: int, slot: Slot | None, count: int) -> range:
        """Return the cells of adjacent chunks; buffers that may be one memory share cells."""
        if slot is None:
            return _NOTHING
        first = self._memory[rank][slot.buffer] + slot.offset
        return range(first, first + count)

    @cached_property
    def _memory(self) -> tuple[dict[str, int], ...]:
        """Where the buffers of each rank begin."""
        ranks = range(self.layout.problem.topology.size)
        return tuple(self.layout.memory(rank, self.in_place) for rank in ranks)


def _wires(transfers: tuple[Transfer, ...], topology: Topology) -> Wires:
    """Return the links of every pair, and the picoseconds of a megabyte on each.

    Equal routes share a message.
    """
    pairs = {(t.source, t.target) for t in transfers if not t.is_local}
    found = {}
    for pair, routes in pair_routes(topology, pairs).items():
        times: dict[int, Fraction] = defaultdict(Fraction)
        for link in (link for route in routes for link in route):
            times[link] += Fraction(_UNIT) / topology.links[link].bandwidth / len(routes)
        found[pair] = tuple((link, round(times[link])) for link in sorted(times))
    return found


class _Speller:
    """Spells rounds; `scratch` grows by what lands before it is added up.

    The landings of a round are free in the next one.
    """

    def __init__(self, scratch: tuple[int, ...], moves: _Moves) -> None:
        self._placed, self._moves = scratch, moves
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
        return Round(tuple(_merged(messages)), tuple(_merged_steps(steps, self._moves)))


def _placed(transfer: Transfer) -> tuple[Slot, Slot]:
    """Return where a transfer reads and writes, as the pass place-slots has set it."""
    if transfer.read is None or transfer.write is None:
        phrase = "'lower-rounds' takes a program with slots"
        raise InputError(Diagnostic("CS205", phrase, help="put 'place-slots' before it"))
    return transfer.read, transfer.write


def _merged(messages: list[Message]) -> list[Message]:
    """Join messages of a pair that are adjacent on both ends; they come sorted."""
    found: list[Message] = []
    counts: list[int] = []
    for message in messages:
        if found:
            last, count = found[-1], counts[-1]
            same = last.source == message.source and last.target == message.target
            if (
                same
                and _follows(last.read, count, message.read)
                and _follows(last.write, count, message.write)
            ):
                counts[-1] = count + message.count
                continue
        found.append(message)
        counts.append(message.count)
    return _counted(found, counts)


def _merged_steps(steps: list[LocalStep], moves: _Moves) -> list[LocalStep]:
    """Sort steps by rank and by what they must follow, and join those that are adjacent."""
    wrote: dict[int, int] = {}
    read: dict[int, int] = {}
    keyed = []
    for step in steps:
        operand = moves.cells(step.rank, step.operand, step.count)
        reads = (*moves.cells(step.rank, step.read, step.count), *operand)
        writes = moves.cells(step.rank, step.write, step.count)
        before = [wrote.get(cell, -1) for cell in (*reads, *writes)]
        level = 1 + max((*before, *(read.get(cell, -1) for cell in writes)))
        wrote.update(dict.fromkeys(writes, level))
        for cell in reads:
            read[cell] = max(level, read.get(cell, -1))
        keyed.append((step.rank, level, step.write, step.read, step))
    found: list[LocalStep] = []
    counts: list[int] = []
    place = -1, 0
    for rank, level, *_, step in sorted(keyed, key=lambda key: key[:4]):
        if place == (rank, level):
            last, count = found[-1], counts[-1]
            ends = ((last.read, step.read), (last.write, step.write), (last.operand, step.operand))
            if all(_follows(a, count, b) for a, b in ends):
                counts[-1] = count + step.count
                continue
        place = rank, level
        found.append(step)
        counts.append(step.count)
    return _counted(found, counts)


def _counted(found: list[_Item], counts: list[int]) -> list[_Item]:
    """Return messages or local steps with other numbers of chunks."""
    pairs = zip(found, counts, strict=True)
    return [item if item.count == count else replace(item, count=count) for item, count in pairs]


def _follows(one: Slot | None, count: int, other: Slot | None) -> bool:
    """Whether a run of chunks begins where another of `count` ends; also where neither is."""
    if one is None or other is None:
        return one is other
    return one.buffer == other.buffer and one.offset + count == other.offset
