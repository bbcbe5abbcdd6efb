"""Pass build-pipelined: Problem -> ChunkProgram of an allreduce, one task per threadblock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import ClassVar, NamedTuple

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
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import power_of_two
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.refusals import (
    equal_boxes,
    require_collective,
    require_ways,
    unfit,
)

_SPARE = Fraction(19, 20)
"""The share of the steps of threadblocks for sums that is planned with: not all get as many."""

_LATE = Fraction(3, 8)
_COPIED = Fraction(5, 8)
"""Shares of the segments by which sums of boxes are added, and copied in a box, after the rest.

An allreduce of 1 GiB on two MI300X boxes takes 8.3 ms with 1/4 and 7/16, 7.9 ms with these.
"""


class Numbers(NamedTuple):
    """Channels within boxes and between them, and segments of a shard."""

    within: int
    between: int
    segments: int


@dataclass(frozen=True, slots=True)
class BuildPipelined:
    """Reduce shards among all pairs of a box, exchange the sums on rails, and spread them.

    The way of the data is that of `build-rails`. But each threadblock does one thing all the time:
    send to a peer, receive from one, or add up. Each shard travels in segments, and channels take
    them in turn. A threadblock sends sums of segments that went out long ago, so it never waits
    for them. Where a runtime does not add while it receives, all threadblocks have about the same
    work so, and links are used evenly.

    Parameters
    ----------
    within, between : int
        Channels within boxes and between them. 0: as many as share the work best.
    pieces : int
        Segments of a shard. 0: as many as fit, a power of two.
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
            CS311: it is no allreduce. CS312: the runtime adds while it receives, boxes differ in
            size, pairs are not joined, or threadblocks do not suffice.
        """
        require_collective("pipelined", value, (Collective.ALLREDUCE,))
        topology, profile = value.topology, target.profile
        if profile.fuses or not profile.xml:
            reason = f"{profile.name} adds while it receives, which '-a rails' makes use of"
            raise unfit("pipelined", topology, reason)
        boxes = equal_boxes("pipelined", topology)
        groups = (*boxes, *zip(*boxes, strict=True))
        pairs = [(a, b) for group in groups for a, b in product(group, group) if a != b]
        require_ways("pipelined", topology, pairs, profile=profile)
        found = numbers(len(boxes[0]), len(boxes), profile)
        if found is None:
            reason = f"{profile.usable_threadblocks} threadblocks per GPU do not suffice"
            raise unfit("pipelined", topology, reason)
        asked = self.within, self.between, self.pieces
        chosen = Numbers(*(mine or most for mine, most in zip(asked, found, strict=True)))
        writer = _Writer(boxes, chosen)
        writer.write()
        scratch = (writer.rooms * chosen.segments,) * topology.size
        chunks = len(boxes[0]) * chosen.segments
        return ChunkProgram(
            value, chunks, tuple(writer.transfers), scratch=scratch, ordering=Ordering.FIXED
        )


def numbers(places: int, boxes: int, profile: Profile) -> Numbers | None:
    """Return the numbers with which the most loaded threadblock has least to do, if there are any.

    Among equals, the next threadblock has least to do, and so on.

    Parameters
    ----------
    places : int
        GPUs of a box.
    boxes : int
    profile : Profile
    """
    blocks = profile.usable_threadblocks
    adds = places - 1 + boxes if boxes > 1 else places
    found: list[tuple[list[Fraction], Numbers]] = []
    for within, between in product(range(1, blocks), range(1, blocks) if boxes > 1 else (1,)):
        left = blocks - 2 * within * (places - 1) - 2 * between * (boxes - 1)
        if left < 1 or places < 2:
            continue
        loads = [Fraction(2, within), Fraction(int(boxes > 1), between), Fraction(adds, left)]
        segments = _segments(places, boxes, within, left, profile)
        if segments:
            number = Numbers(within, between, segments)
            found.append((sorted(loads, reverse=True), number))
    return min(found)[1] if found else None


def _segments(places: int, boxes: int, within: int, left: int, profile: Profile) -> int:
    """Return how many segments fit threadblocks of which some are left for sums, or 0.

    A sum waits for each arrival but the last with a nop. Sums of boxes are a sum of their own.
    """
    sums = 2 * places - 2 if boxes == 1 else 2 * places - 4 + 2 * boxes
    others = 4 * (places - 1) + 2 * (boxes - 1)
    room = profile.max_xml_nodes - places * boxes - profile.usable_threadblocks
    most = min(
        profile.max_steps // 2 * within,
        int(profile.max_steps * left * _SPARE) // sums,
        room // (sums + others),
    )
    return power_of_two(most)


@dataclass(slots=True)
class _Writer:
    """Transfers so far.

    In its scratch, a GPU has room for its shard from each place of its box, and from each box. Its
    own box's sum is added up where the first arrival landed, or with one box in the output.

    Parameters
    ----------
    boxes : tuple of tuple of int
    numbers : Numbers
    transfers : list of Transfer
    box_sums, sums : dict
        Number of the last step, and slot, of the sum of a box and of all, by rank and segment.
    """

    boxes: Sequence[Sequence[int]]
    numbers: Numbers
    transfers: list[Transfer] = field(default_factory=list)
    box_sums: dict[tuple[int, int], tuple[int, Slot]] = field(default_factory=dict)
    sums: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def rooms(self) -> int:
        """Rooms for a shard in scratch."""
        return len(self.boxes[0]) + (len(self.boxes) if len(self.boxes) > 1 else 0)

    def write(self) -> None:
        """Write down all segments, each of their parts some segments behind the one before."""
        number = self.numbers.segments
        late, copied = (int(number * share) for share in (_LATE, _COPIED))
        if len(self.boxes) == 1:
            late = 0
        arrivals: dict[int, dict[int, dict[Slot, int]]] = {}
        for beat in range(number + copied):
            if beat < number:
                self._reduce(beat)
                arrivals[beat] = self._exchange(beat)
            if 0 <= beat - late < number:
                self._join(beat - late, arrivals.pop(beat - late))
            if beat >= copied:
                self._copy(beat - copied)

    def _chunk(self, place: int, segment: int) -> int:
        return place * self.numbers.segments + segment

    def _reduce(self, segment: int) -> None:
        """Add up a segment of every shard in every box."""
        arrived: dict[int, dict[Slot, int]] = {}
        for box, a, b in self._pairs():
            chunk = self._chunk(b, segment)
            origin = Origin(0, Direction.IN, b, segment % self.numbers.within, segment)
            landing = Slot("s", self._chunk(a, segment))
            number = self._move(box[a], box[b], chunk, origin, Slot("i", chunk), landing)
            arrived.setdefault(box[b], {})[landing] = number
        for box in self.boxes:
            for place, rank in enumerate(box):
                chunk = self._chunk(place, segment)
                own = {Slot("i", chunk): -1}
                first, *others = arrived[rank].items()
                if len(self.boxes) == 1:
                    into, parts = Slot("o", chunk), {**own, **arrived[rank]}
                else:
                    into, parts = first[0], dict([first]) | own | dict(others)
                last = self._sum(rank, chunk, 0, segment, parts, into)
                self.box_sums[rank, segment] = last, into

    def _exchange(self, segment: int) -> dict[int, dict[Slot, int]]:
        """Send sums of boxes on rails; return what arrives at each rank, by slot."""
        found: dict[int, dict[Slot, int]] = {}
        places, count = len(self.boxes[0]), len(self.boxes)
        for place, rail in enumerate(zip(*self.boxes, strict=True)):
            for distance, box in product(range(1, count), range(count)):
                source, target = rail[box], rail[(box + distance) % count]
                last, read = self.box_sums[source, segment]
                origin = Origin(1, Direction.IN, place, segment % self.numbers.between, segment)
                landing = Slot("s", self._chunk(places + box, segment))
                chunk = self._chunk(place, segment)
                number = self._move(source, target, chunk, origin, read, landing, (last,))
                found.setdefault(target, {})[landing] = number
        return found

    def _join(self, segment: int, arrivals: dict[int, dict[Slot, int]]) -> None:
        """Add up sums of boxes in the order of boxes, so that all get the same bits."""
        places = len(self.boxes[0])
        for index, box in enumerate(self.boxes):
            for place, rank in enumerate(box):
                last, own = self.box_sums[rank, segment]
                if len(self.boxes) > 1:
                    parts: dict[Slot, int] = {}
                    for other in range(len(self.boxes)):
                        landing = Slot("s", self._chunk(places + other, segment))
                        if other == index:
                            parts[own] = last
                        else:
                            parts[landing] = arrivals[rank][landing]
                    chunk = self._chunk(place, segment)
                    last = self._sum(rank, chunk, 1, segment, parts, Slot("o", chunk))
                self.sums[rank, segment] = last

    def _copy(self, segment: int) -> None:
        """Send a segment of every sum to all of the box."""
        for box, a, b in self._pairs():
            chunk = self._chunk(a, segment)
            origin = Origin(2, Direction.OUT, a, segment % self.numbers.within, segment)
            slot = Slot("o", chunk)
            self._move(box[a], box[b], chunk, origin, slot, slot, (self.sums[box[a], segment],))

    def _pairs(self) -> Iterator[tuple[Sequence[int], int, int]]:
        """Yield boxes and two places, in rounds in which everyone sends to one place."""
        places = len(self.boxes[0])
        for distance in range(1, places):
            for box in self.boxes:
                for place in range(places):
                    yield box, place, (place + distance) % places

    def _sum(
        self, rank: int, chunk: int, phase: int, segment: int, parts: dict[Slot, int], into: Slot
    ) -> int:
        """Add up parts, each there behind a step; the first is copied unless it is in place."""
        origin = Origin(phase, Direction.IN, chunk // self.numbers.segments, 0, segment)
        last: tuple[int, ...] = ()
        for number, (part, arrival) in enumerate(parts.items()):
            after = (*last, arrival) if arrival >= 0 else last
            if part == into:
                last = after
                continue
            operand = into if number else None
            self.transfers.append(
                Transfer(
                    *(rank, rank, chunk, 1, number > 0, tuple(sorted(set(after))), origin),
                    *(part, into, operand),
                )
            )
            last = (len(self.transfers) - 1,)
        return last[0]

    def _move(
        self,
        source: int,
        target: int,
        chunk: int,
        origin: Origin,
        read: Slot,
        write: Slot,
        after: tuple[int, ...] = (),
    ) -> int:
        """Append a transfer and return its number."""
        self.transfers.append(Transfer(source, target, chunk, 1, False, after, origin, read, write))
        return len(self.transfers) - 1
