"""Pass build-pipelined: Problem -> ChunkProgram, one task per threadblock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import (
    ChunkProgram,
    Collective,
    Direction,
    Ordering,
    Origin,
    Problem,
    Slot,
    Transfer,
)
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.pipelined_numbers import Numbers, cells_of, numbers, owners
from colsynth.synthesis.baselines.rails import Rails, rails_of, require_whole
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.unequal import Cells

_SERVED = Collective.ALLREDUCE, Collective.REDUCE_SCATTER, Collective.ALLGATHER

_LAGS = Fraction(3, 8), Fraction(5, 8)
_LAGS_OF_TURNS = Fraction(5, 16), Fraction(3, 4)
"""Shares of the segments by which sums of boxes are added, and copied in a box, after the rest.

The second pair is for boxes that take turns, where results cross the network once more. The shards
of an allgather need no such time, as nobody adds them up.

An allreduce of 1 GiB on two MI300X boxes takes 8.3 ms with 1/4 and 7/16, 7.9 ms with 3/8 and 5/8;
by rccl on four DGX H100 10.0 ms with 3/8 and 5/8, 8.9 ms with 5/16 and 3/4.
"""


@dataclass(frozen=True, slots=True)
class BuildPipelined:
    """Reduce shards among all pairs of a box, exchange the sums on rails, and spread them.

    The way of the data is that of `build-rails`. But each threadblock does one thing all the time:
    send to a peer, receive from one, or add up. Each shard travels in segments, and channels take
    them in turn. A threadblock sends sums of segments that went out long ago, so it never waits
    for them. Where a runtime does not add while it receives, all threadblocks have about the same
    work so, and links are used evenly.

    From three boxes on, boxes take turns: each adds up every so many segments for all, and sends
    them the result. GPUs on no rail have no shard of an allreduce.

    An allgather does without sums: GPUs exchange their shards on rails and pass them on in their
    box. A reduce-scatter is served within one box only. Between boxes a whole number of
    threadblocks for each task leaves too few for sums, and threadblocks in rounds
    (`colsynth.lowering.paired`) are faster.

    Parameters
    ----------
    within, between : int
        Channels within boxes and between them. 0: as many as share the work best.
    pieces : int
        Segments of a shard. 0: as many as fit and divide messages, or where ranks do not divide
        the message of an allreduce, as many as fit: they differ by a chunk then, of many.
    """

    within: int = 0
    between: int = 0
    pieces: int = 0

    name: ClassVar[str] = "build-pipelined"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram

    def __post_init__(self) -> None:
        for option in ("within", "between", "pieces"):
            require_least(option, getattr(self, option), 0)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers and sums, with their slots.

        Raises
        ------
        InputError
            CS311: another collective. CS312: the runtime adds while it receives, GPUs of a box are
            not joined, boxes have no rail, threadblocks do not suffice, it is a reduce-scatter of
            several boxes, or an allgather where a GPU is on no rail.
        """
        require_collective("pipelined", value, _SERVED)
        topology, profile = value.topology, target.profile
        if not profile.xml:
            reason = f"{profile.name} adds up several messages at once, as '-a rails' has it"
            raise unfit("pipelined", topology, reason)
        rails = rails_of("pipelined", topology, profile)
        if value.collective is Collective.REDUCE_SCATTER and len(rails.boxes) > 1:
            raise unfit("pipelined", topology, "it serves a reduce-scatter only within one box")
        if value.collective is Collective.ALLGATHER:
            require_whole("pipelined", topology, rails)
        target = rails.aimed(value, target)
        found = numbers(value, rails, target)
        if found is None:
            reason = f"{profile.usable_threadblocks} threadblocks per GPU do not suffice"
            raise unfit("pipelined", topology, reason)
        asked = self.within, self.between, self.pieces
        chosen = Numbers(*(mine or most for mine, most in zip(asked, found, strict=True)))
        cells = cells_of(value, rails, chosen.segments, target)
        writer = _Writer(value.collective, rails, chosen, cells)
        writer.write()
        scratch = (writer.rooms * cells.room,) * topology.size
        return ChunkProgram(
            value, cells.chunks, tuple(writer.transfers), scratch=scratch, ordering=Ordering.FIXED
        )


@dataclass(slots=True)
class _Writer:
    """Transfers so far.

    In its scratch, a GPU has room for what arrives from each place of its box, and from each box. A
    box's sum is added up where the first arrival landed, or with one box in the output.

    Parameters
    ----------
    collective : Collective
    rails : Rails
    numbers : Numbers
    cells : Cells
        By segment.
    transfers : list of Transfer
    arrivals : dict
        Numbers of transfers, by slot, that brought sums of boxes, by rank and segment.
    sums : dict
        Number of the last step, and slot, of what a rank has added up or copied, by rank, shard
        and segment.
    """

    collective: Collective
    rails: Rails
    numbers: Numbers
    cells: Cells
    transfers: list[Transfer] = field(default_factory=list)
    arrivals: dict[tuple[int, int], dict[Slot, int]] = field(default_factory=dict)
    sums: dict[tuple[int, int, int], tuple[int, Slot]] = field(default_factory=dict)

    @property
    def boxes(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each box, by their places."""
        return self.rails.boxes

    @property
    def rooms(self) -> int:
        """Rooms for a shard in scratch."""
        if self.collective is Collective.ALLGATHER:
            return 0
        count = len(self.boxes)
        return self.rails.places * len(self._shards(0)) + (count if count > 1 else 0)

    def write(self) -> None:
        """Write down all segments, each of their parts some segments behind the one before."""
        if self.collective is Collective.ALLGATHER:
            for segment in range(len(self.cells.counts)):
                self._gather(segment)
            return
        number, several = len(self.cells.counts), len(self.boxes) > 1
        spreads = self.collective is Collective.ALLREDUCE
        lags = _LAGS if len(owners(len(self.boxes), 0)) == len(self.boxes) else _LAGS_OF_TURNS
        late, copied = int(number * lags[0]) * several, int(number * lags[1]) * spreads
        for beat in range(number + copied):
            if beat < number:
                self._reduce(beat)
                self._exchange(beat)
            if several and 0 <= beat - late < number:
                self._join(beat - late)
            if spreads and beat >= copied:
                self._copy(beat - copied)

    def _gather(self, segment: int) -> None:
        """Send a segment of all shards everywhere."""
        for rank in sorted(rank for box in self.boxes for rank in box):
            parts = {Slot("i", segment): -1}
            output = self._output(rank, segment)
            self.sums[rank, rank, segment] = self._sum(rank, rank, 0, segment, parts, output)
        self._exchange(segment)
        for distance in range(len(self.boxes)):
            self._copy(segment, distance)

    def _shards(self, place: int) -> Sequence[int]:
        """Return the shards that the GPUs of a place work on: one, or one for each box."""
        if self.collective is Collective.ALLREDUCE:
            return (place,)
        return [box[place] for box in self.boxes]

    def _place(self, buffer: str, shard: int, segment: int) -> Slot:
        """Return where a part of the whole message is."""
        return Slot(buffer, self.cells.ranges[segment][shard].start)

    def _output(self, shard: int, segment: int) -> Slot:
        """Return where a GPU leaves a part of the result."""
        scatters = self.collective is Collective.REDUCE_SCATTER
        return Slot("o", segment) if scatters else self._place("o", shard, segment)

    def _reduce(self, segment: int) -> None:
        """Add up a segment of every shard in every box."""
        arrived: dict[int, dict[Slot, int]] = {}
        for number, a, b in self._pairs(self.rails.places, self.rails.count):
            box = self.boxes[number]
            shard = self._shards(b)[0]
            origin = Origin(0, Direction.IN, shard, segment % self.numbers.within, segment)
            read, landing = self._place("i", shard, segment), self.cells.slot(a, segment)
            sent = self._move(box[a], box[b], origin, read, landing)
            arrived.setdefault(box[b], {})[landing] = sent
        for box in self.boxes:
            for place, rank in enumerate(box[: self.rails.count]):
                shard = self._shards(place)[0]
                own = {self._place("i", shard, segment): -1}
                if len(self.boxes) == 1:
                    into, parts = self._output(shard, segment), {**own, **arrived[rank]}
                elif rank not in arrived:
                    into, parts = self.cells.slot(place, segment), own
                else:
                    first, *others = arrived[rank].items()
                    into, parts = first[0], dict([first]) | own | dict(others)
                self.sums[rank, shard, segment] = self._sum(rank, shard, 0, segment, parts, into)

    def _exchange(self, segment: int) -> None:
        """Send sums of boxes on rails to those that add them up, or own shards of an allgather."""
        places, count = self.rails.places, len(self.boxes)
        gathers = self.collective is Collective.ALLGATHER
        takers = range(count) if gathers else owners(count, segment)
        for place, rail in enumerate(self.rails):
            for distance, taker in product(range(1, count), takers):
                box = (taker - distance) % count
                source, target = rail[box], rail[taker]
                shard = source if gathers else place
                last, read = self.sums[source, shard, segment]
                landing = read if gathers else self.cells.slot(places + box, segment)
                origin = Origin(1, Direction.IN, shard, segment % self.numbers.between, segment)
                number = self._move(source, target, origin, read, landing, (last,))
                if gathers:
                    self.sums[target, shard, segment] = number, landing
                else:
                    self.arrivals.setdefault((target, segment), {})[landing] = number

    def _join(self, segment: int) -> None:
        """Add up the sums of all boxes in their order, so that all get the same bits.

        The second box begins with its own, which gives the same bits and waits for less. Where
        one box adds up for all, it sends the result to them.
        """
        places = self.rails.places
        adding = owners(len(self.boxes), segment)
        for index in adding:
            for place, rank in enumerate(self.boxes[index][: self.rails.count]):
                arrivals = self.arrivals.pop((rank, segment))
                last, own = self.sums[rank, place, segment]
                parts: dict[Slot, int] = {}
                order = (1, 0, *range(2, len(self.boxes))) if index == 1 else range(len(self.boxes))
                for other in order:
                    landing = self.cells.slot(places + other, segment)
                    mine = other == index
                    parts[own if mine else landing] = last if mine else arrivals[landing]
                output = self._output(place, segment)
                last, _ = self._sum(rank, place, 1, segment, parts, output)
                self.sums[rank, place, segment] = last, output
                for distance in range(1, len(self.boxes)) if len(adding) == 1 else ():
                    target = self.boxes[(index + distance) % len(self.boxes)][place]
                    origin = Origin(1, Direction.IN, place, segment % self.numbers.between, segment)
                    number = self._move(rank, target, origin, output, output, (last,))
                    self.sums[target, place, segment] = number, output

    def _copy(self, segment: int, distance: int = 0) -> None:
        """Send a segment to all of the box: every sum, or shards from a box so far ahead."""
        count = len(self.boxes)
        for number, a, b in self._pairs(self.rails.count, self.rails.places):
            box = self.boxes[number]
            shards = self._shards(a)
            shard = shards[(number + distance) % count if len(shards) > 1 else 0]
            origin = Origin(2, Direction.OUT, shard, segment % self.numbers.within, segment)
            last, slot = self.sums[box[a], shard, segment]
            self._move(box[a], box[b], origin, slot, slot, (last,))

    def _pairs(self, sources: int, targets: int) -> Iterator[tuple[int, int, int]]:
        """Yield boxes and two of their first places, in rounds with one target for each."""
        for distance in range(1, self.rails.places):
            for number, box in enumerate(self.boxes):
                for place in range(min(sources, len(box)) if distance < len(box) else 0):
                    target = (place + distance) % len(box)
                    if target < targets:
                        yield number, place, target

    def _sum(
        self, rank: int, shard: int, phase: int, segment: int, parts: dict[Slot, int], into: Slot
    ) -> tuple[int, Slot]:
        """Add up parts, each there behind a step; return the last step, and `into`.

        The first part is copied unless it is in place. Instances alternate, so that runtimes do not
        add all parts in one go: each waits for its own arrival, which takes no nop.
        """
        chunks = self.cells.ranges[segment][shard]
        last: tuple[int, ...] = ()
        for number, (part, arrival) in enumerate(parts.items()):
            after = (*last, arrival) if arrival >= 0 else last
            if part == into:
                last = after
                continue
            origin = Origin(phase, Direction.IN, shard, number % 2, segment)
            needed, operand = tuple(sorted(set(after))), into if number else None
            where = rank, rank, chunks.start, len(chunks)
            self.transfers.append(Transfer(*where, number > 0, needed, origin, part, into, operand))
            last = (len(self.transfers) - 1,)
        return last[0], into

    def _move(
        self,
        source: int,
        target: int,
        origin: Origin,
        read: Slot,
        write: Slot,
        after: tuple[int, ...] = (),
    ) -> int:
        """Append a transfer of the origin's part and return its number."""
        chunks = self.cells.ranges[origin.segment][origin.tree]
        where = source, target, chunks.start, len(chunks)
        self.transfers.append(Transfer(*where, False, after, origin, read, write))
        return len(self.transfers) - 1
