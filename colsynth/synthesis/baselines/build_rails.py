"""Pass build-rails: Problem -> ChunkProgram of sums in boxes, then on rails between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.long_sums import additions
from colsynth.runtimes.profile import LONGEST
from colsynth.runtimes.selection import dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.refusals import (
    equal_boxes,
    require_collective,
    require_ways,
)

Boxes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class BuildRails:
    """Reduce shards among all pairs of a box, exchange the sums on rails, and spread them.

    Every GPU adds up its shard of what its box sends it straight away. GPUs in the same place of
    their boxes then send each other these sums, all to all, so a message takes one hop between
    boxes instead of two. In a reduce-scatter, it adds up the shards of all GPUs in its place and
    sends each its own. Arrivals land in scratch and are added in one go, in pieces for which
    threadblocks work side by side. With one box, it is two-shot all-pairs.

    Pairs without a way through no third GPU take connections that pass others, as far as the
    runtime has them (`Profile.passes_on`).

    Parameters
    ----------
    instances : int
        Channels, each with its own part of every shard. 0: as many as threadblocks suffice for.
    pieces : int
        Pieces in which a channel's part is added up. 0: as many as there are threadblocks for.
    strategy : str
        The strategy of `assign-threadblocks` that channels and pieces are counted for. With
        ``"paired"``, a threadblock serves a peer in each direction, so there may be the most
        channels, and as many pieces as a FIFO holds calls: no send then waits for a receive.
        ``"paired"`` and ``"shared"`` have threadblocks with peers share the sums; any other
        leaves some for sums alone.
    """

    instances: int = 0
    pieces: int = 0
    strategy: str = "paired"

    name: ClassVar[str] = "build-rails"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("instances", (0, 1, 2, 4)),)

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 0)
        require_least("pieces", self.pieces, 0)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers and sums, with their slots.

        Raises
        ------
        InputError
            CS311: it sums up nothing for all. CS312: boxes differ in size, or pairs are not joined.
        """
        require_collective("rails", value, (Collective.ALLREDUCE, Collective.REDUCE_SCATTER))
        topology, profile = value.topology, target.profile
        boxes = equal_boxes("rails", topology)
        groups = (*boxes, *zip(*boxes, strict=True))
        pairs = [(a, b) for group in groups for a, b in product(group, group) if a != b]
        require_ways("rails", topology, pairs, profile=profile)
        scatters = value.collective is Collective.REDUCE_SCATTER
        channels, pieces = self._numbers(value, boxes, target)
        writer = _Writer(boxes, pieces, channels * pieces, profile.fuses)
        for channel in range(channels):
            (writer.scatter if scatters else writer.add_channel)(channel)
        rooms = len(boxes) * (len(boxes[0]) + 1) if scatters else len(boxes[0]) + len(boxes)
        scratch = (rooms * writer.shard,) * topology.size
        chunks = (topology.size if scatters else len(boxes[0])) * writer.shard
        return ChunkProgram(
            value, chunks, tuple(writer.transfers), scratch=scratch, ordering=Ordering.FIXED
        )

    def _numbers(self, problem: Problem, boxes: Boxes, target: Target) -> tuple[int, int]:
        """Return channels and pieces, by default such that they divide messages."""
        blocks, places, count = target.profile.usable_threadblocks, len(boxes[0]), len(boxes)
        scatters = problem.collective is Collective.REDUCE_SCATTER
        parts = target.parts(problem, len(problem.topology.ranks) if scatters else places)
        shares = count if scatters else 1  # what a GPU sends to another of its box
        ends = (1 if self.strategy == "paired" else 2) * (places + count - 2)
        sums = 0 if self.strategy in ("paired", "shared") else min(2, count)
        channels = self.instances or max(1, dividing(parts, blocks // (ends + sums)))
        if self.strategy == "paired":
            most = min(places, target.profile.fifo_calls[target.protocol] // shares)
        elif self.strategy == "shared":  # sums of a phase for half of them: more take many steps
            most = blocks // (2 * channels * shares)
        else:
            most = min(places, (blocks - channels * ends) // (channels * sums))
        return channels, self.pieces or max(1, dividing(parts // channels, max(0, most)))


Ends = tuple[int, ...]
"""The last step of each piece of a sum, by its number."""


@dataclass(slots=True)
class _Writer:
    """Transfers so far.

    In its scratch, a GPU has room for its shard from each place of its box, and from each box: its
    own sum, and those that arrive. Sums of boxes are added by box, in the room of its own place,
    so that all get the same bits. The sum of two is the same either way: the GPU's own is added
    to what arrived.

    Parameters
    ----------
    boxes : tuple of tuple of int
    pieces : int
    shard : int
        Chunks of a shard, of all channels.
    fuses : bool
        Whether the runtime adds while it receives.
    """

    boxes: Boxes
    pieces: int
    shard: int
    fuses: bool
    transfers: list[Transfer] = field(default_factory=list)

    def add_channel(self, channel: int) -> None:
        """Write down a channel."""
        begin, places, count = channel * self.pieces, len(self.boxes[0]), len(self.boxes)
        chunks = [place * self.shard + begin for place in range(places)]
        landing = [Slot("s", chunk) for chunk in chunks]
        sums = [Slot("s", (places + box) * self.shard + begin) for box in range(count)]
        arrived: dict[int, dict[Slot, Ends]] = {rank: {} for box in self.boxes for rank in box}
        for box, a, b in self._within():
            origin = Origin(0, Direction.IN, box[b], channel)
            ways = Slot("i", chunks[b]), landing[a]
            number = self._send(box[a], box[b], chunks[b], origin, *ways)
            arrived[box[b]][landing[a]] = (number,) * self.pieces
        ends: dict[int, Ends] = {}
        total: dict[int, Slot] = {}
        for index, box in enumerate(self.boxes):
            for place, rank in enumerate(box):
                parts = {Slot("i", chunks[place]): (), **dict(sorted(arrived[rank].items()))}
                total[rank] = sums[index] if count > 1 else Slot("o", chunks[place])
                origin = Origin(0, Direction.IN, rank, channel)
                ends[rank] = self._sum(rank, chunks[place], origin, parts, total[rank])
        for place, rail in enumerate(zip(*self.boxes, strict=True) if count > 1 else ()):
            self._exchange(rail, chunks[place], landing[place], sums, ends, total, channel)
        for box, a, b in self._within():
            origin = Origin(2, Direction.OUT, box[a], channel)
            ways = total[box[a]], Slot("o", chunks[a])
            self._send(box[a], box[b], chunks[a], origin, *ways, ends[box[a]])

    def scatter(self, channel: int) -> None:
        """Write down a channel of a reduce-scatter.

        A GPU has room for what arrives for each box from each place; in the room of its own place
        are its sums. What arrives from other boxes has the rooms behind.
        """
        begin, places, count = channel * self.pieces, len(self.boxes[0]), len(self.boxes)
        room = [
            [Slot("s", (box * places + place) * self.shard + begin) for place in range(places)]
            for box in range(count)
        ]
        arrived: dict[tuple[int, int], dict[Slot, Ends]] = {}
        targets = [(place, box) for place in range(places) for box in range(count)]
        for index, other in enumerate(self.boxes):
            for box, a, b in self._within():
                chunk, landing = other[b] * self.shard + begin, room[index][a]
                origin = Origin(0, Direction.IN, other[b], channel)
                number = self._send(box[a], box[b], chunk, origin, Slot("i", chunk), landing)
                arrived.setdefault((box[b], index), {})[landing] = (number,) * self.pieces
        ends: dict[tuple[int, int], Ends] = {}
        for box in self.boxes:
            for place, index in targets:
                chunk = self.boxes[index][place] * self.shard + begin
                parts = {Slot("i", chunk): (), **arrived.get((box[place], index), {})}
                into = room[index][place] if count > 1 else Slot("o", begin)
                origin = Origin(0, Direction.IN, self.boxes[index][place], channel)
                ends[box[place], index] = self._sum(box[place], chunk, origin, parts, into)
        for place, index in targets if count > 1 else ():
            rail = [box[place] for box in self.boxes]
            rank, chunk = rail[index], rail[index] * self.shard + begin
            origin, into = Origin(1, Direction.IN, rank, channel), Slot("o", begin)
            read = room[index][place]
            landed = {read: ends[rank, index]}
            for distance in range(1, count):
                far = (index + distance) % count
                source, adds = rail[far], self.fuses and count == 2
                lands = Slot("s", (count * places + far) * self.shard + begin)
                ways = (read, into) if adds else (read, lands)
                needed, own = ends[source, index], read if adds else None
                number = self._send(source, rank, chunk, origin, *ways, needed, own)
                if not adds:
                    landed[lands] = (number,) * self.pieces
            if len(landed) > 1:
                self._sum(rank, chunk, origin, landed, into)

    def _within(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Yield boxes and two places, in rounds in which everyone sends to one place."""
        places = len(self.boxes[0])
        for distance in range(1, places):
            for place in range(places):
                for box in self.boxes:
                    yield box, place, (place + distance) % places

    def _exchange(
        self,
        rail: Sequence[int],
        chunk: int,
        spare: Slot,
        sums: Sequence[Slot],
        ends: dict[int, Ends],
        total: dict[int, Slot],
        channel: int,
    ) -> None:
        """Exchange the sums of boxes, add them, and note where and when they are there."""
        count, within = len(rail), dict(ends)
        adds = self.fuses and count == 2
        for index, rank in enumerate(rail):  # the sum stands behind the last arrival
            origin = Origin(1, Direction.IN, rank, channel)
            parts = {sums[index]: within[rank]}
            for distance in range(1, count):
                box = (index + distance) % count
                source, ways = rail[box], (sums[box], sums[box])
                own = sums[index] if adds else None
                number = self._send(source, rank, chunk, origin, *ways, within[source], own)
                parts[sums[box]] = (number,) * self.pieces
            total[rank] = sums[1 - index] if count == 2 else spare
            first = 0 if count > 2 else 1 - index
            ordered = {slot: parts[slot] for slot in (*sums[first:], *sums[:first])}
            if adds:
                ordered = {total[rank]: parts[total[rank]]}
            ends[rank] = self._sum(rank, chunk, origin, ordered, total[rank])
            if count == 2:
                self._publish(rank, chunk, origin, total[rank], ends[rank])
        for rank in rail if count > 2 else ():  # a copy right behind a chain would be part of it
            origin = Origin(1, Direction.IN, rank, channel)
            self._publish(rank, chunk, origin, total[rank], ends[rank])

    def _publish(self, rank: int, chunk: int, origin: Origin, total: Slot, ends: Ends) -> None:
        """Append the copy of a sum to the output."""
        self._sum(rank, chunk, origin, {total: ends}, Slot("o", chunk))

    def _sum(
        self, rank: int, chunk: int, origin: Origin, parts: dict[Slot, Ends], into: Slot
    ) -> Ends:
        """Add up parts, each there behind some steps; the first is copied unless it is in place.

        Within a box there are many parts, so each piece is added up by itself.
        """
        found: list[int] = []
        count = 1 if origin.phase == 0 else self.pieces
        (first, _), *others = parts.items()
        added = list(additions(others, (into, ()), LONGEST if self.fuses else None))
        for piece in range(0, self.pieces, count):
            own = slice(piece, piece + count)
            where = rank, chunk, origin, own
            last = parts[first][own]
            if first != into:
                last = self._local(*where, first, into, last, adds=False)
            for (part, ends), (total, before) in added:
                after = (*last, *ends[own], *before[own])
                last = self._local(*where, part, total, after, adds=True)
            found += last
        return tuple(found)

    def _local(
        self,
        rank: int,
        chunk: int,
        origin: Origin,
        own: slice,
        part: Slot,
        into: Slot,
        after: Ends,
        *,
        adds: bool,
    ) -> Ends:
        """Append a copy of some pieces within a GPU, or their addition; return its number."""
        read, write = (Slot(slot.buffer, slot.offset + own.start) for slot in (part, into))
        where = rank, rank, chunk + own.start, own.stop - own.start
        needed, operand = tuple(sorted(set(after))), write if adds else None
        self.transfers.append(Transfer(*where, adds, needed, origin, read, write, operand))
        return (len(self.transfers) - 1,)

    def _send(
        self,
        source: int,
        target: int,
        chunk: int,
        origin: Origin,
        read: Slot,
        write: Slot,
        after: Ends = (),
        operand: Slot | None = None,
    ) -> int:
        """Append a transfer of all pieces, which may add to an operand; return its number."""
        where, adds, needed = (
            (source, target, chunk),
            operand is not None,
            tuple(sorted(set(after))),
        )
        self.transfers.append(
            Transfer(*where, self.pieces, adds, needed, origin, read, write, operand)
        )
        return len(self.transfers) - 1
