"""The transfers and sums of `build-rails`, part by part, with their slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product, zip_longest

from colsynth.model import Direction, Origin, Slot, Transfer
from colsynth.runtimes.long_sums import additions
from colsynth.runtimes.profile import Profile
from colsynth.synthesis.baselines.rails import Rails
from colsynth.synthesis.baselines.unequal import Cells

Ends = tuple[int, ...]
"""The last step of each piece of a sum, by its number."""

Sums = dict[tuple[int, int], tuple[Slot, Ends]]
"""Where the sum of a box is, and its last steps, by the GPU that has it and the shard's rank."""


@dataclass(slots=True)
class RailsWriter:
    """Transfers of `build-rails` so far.

    In its scratch, a GPU has room for its shard from each place of its box, and from each box: its
    own sum, and those that arrive. Sums of boxes are added by box, in the room of its own place,
    so that all get the same bits. The sum of two is the same either way: the GPU's own is added
    to what arrived. GPUs on no rail have no shard of an allreduce.

    In a reduce-scatter, it has such room for the shards of each box, once for each turn: those of
    its own place, and of GPUs on no rail for which it adds up. Behind them is room for what arrives
    from each box, for itself and to be passed on.

    Parameters
    ----------
    rails : Rails
    cells : Cells
        By part, the pieces of each rail: those of all channels for the first segment come first.
    channels : int
        Channels of a segment; the last one may have fewer.
    profile : Profile
    """

    rails: Rails
    cells: Cells
    channels: int
    profile: Profile
    transfers: list[Transfer] = field(default_factory=list)

    @property
    def boxes(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each box, by their places."""
        return self.rails.boxes

    def add_all(self) -> None:
        """Write down an allreduce.

        In one box, all channels send before any adds up, and so on: threadblocks also add up for
        other channels, which must not wait for what they send on themselves. Between boxes, the
        exchange of a channel takes so long that the sums of the next come in between.

        With several segments, all channels send one before any adds it up. All segments are added
        up and exchanged before any is spread: nobody waits for an exchange with sums to do.
        """
        order: Iterable[object]
        parts = [self._add_part(*numbered) for numbered in enumerate(self.cells.ranges)]
        begins = range(0, len(parts), self.channels)
        segments = [zip_longest(*parts[begin : begin + self.channels]) for begin in begins]
        if len(segments) > 1:
            added = (islice(segment, 2) for segment in segments)  # without the last phase
            order = chain(*added, *segments)
        else:
            order = chain(*(parts if len(self.boxes) > 1 else segments))
        for _ in order:
            pass

    def _add_part(self, part: int, shards: Sequence[range]) -> Iterator[None]:
        """Write down a segment of a channel with the chunks of each rail, a phase at a time."""
        channel = self._channel(part)
        places, count = self.rails.places, len(self.boxes)
        landing = [self.cells.slot(place, part) for place in range(places)]
        sums = [self.cells.slot(places + box, part) for box in range(count)]
        arrived: dict[int, dict[Slot, Ends]] = {rank: {} for box in self.boxes for rank in box}
        for home, a, b in self._within(places, self.rails.count):
            box = self.boxes[home]
            origin = Origin(0, Direction.IN, box[b], channel)
            into = sums[home] if count > 1 else Slot("o", shards[b].start)
            self._arrive(box[a], box[b], shards[b], origin, landing[a], into, arrived[box[b]])
        yield
        ends: dict[int, Ends] = {}
        total: dict[int, Slot] = {}
        for index, box in enumerate(self.boxes):
            for place, rank in enumerate(box[: self.rails.count]):
                first = shards[place].start
                parts = self._parts(first, arrived[rank])
                total[rank] = sums[index] if count > 1 else Slot("o", first)
                origin = Origin(0, Direction.IN, rank, channel)
                ends[rank] = self._sum(rank, shards[place], origin, parts, total[rank])
        for place, rail in enumerate(self.rails if count > 1 else ()):
            self._exchange(rail, shards[place], landing[place], sums, ends, total, channel)
        yield
        for home, a, b in self._within(self.rails.count, places):
            box = self.boxes[home]
            origin = Origin(2, Direction.OUT, box[a], channel)
            ways = total[box[a]], Slot("o", shards[a].start)
            self._send(box[a], box[b], shards[a], origin, *ways, ends[box[a]])

    def _channel(self, part: int) -> int:
        """Return the channel of a part; those of a segment lie side by side."""
        return part % self.channels

    def scatter(self) -> None:
        """Write down a reduce-scatter.

        In every other box, the shard of a GPU is added up in the same place, or if that is on no
        rail, by a GPU of one, beside the shard of its own place. Such sums have one more hop.

        Shards of other boxes are added up first, in all segments and channels: while their sums are
        on their way, boxes add up their own.
        """
        parts = range(len(self.cells.counts))
        sums: list[Sums] = [{} for _ in parts]
        for own in (False, True):
            for part in parts:
                sums[part] |= self._add_shards(part, own=own)
        for part in parts if len(self.boxes) > 1 else ():
            for place, index in self._targets():
                self._deliver(place, index, part, sums[part])

    def _shard(self, rank: int, part: int) -> range:
        """Return the chunks of a GPU's shard of a reduce-scatter that a part has."""
        first = rank * self.cells.room + self.cells.begins[part]
        return range(first, first + self.cells.counts[part][0])

    def _targets(self) -> Iterator[tuple[int, int]]:
        """Yield the place and the box of every shard."""
        for place in range(self.rails.places):
            yield from ((place, n) for n, box in enumerate(self.boxes) if place < len(box))

    def _served(self, box: int, place: int, index: int) -> Iterator[tuple[int, int]]:
        """Yield turn and place of the shards of a box that a GPU of a box adds up."""
        if box == index:
            yield 0, place
        elif place < self.rails.count:
            yield from enumerate(range(place, len(self.boxes[index]), self.rails.count))

    def _room(self, turn: int, index: int, place: int, part: int) -> Slot:
        """Return where shards of a box from a place land; sums of a GPU are in its own place."""
        return self.cells.slot((turn * len(self.boxes) + index) * self.rails.places + place, part)

    def _into(self, turn: int, index: int, place: int, part: int) -> Slot:
        """Return where shards of a box are added up."""
        if len(self.boxes) == 1:
            return Slot("o", self.cells.begins[part])
        return self._room(turn, index, place, part)

    def _arrive(
        self,
        source: int,
        target: int,
        chunks: range,
        origin: Origin,
        landing: Slot,
        into: Slot,
        landed: dict[Slot, Ends],
    ) -> None:
        """Send a shard within a box; where sends add, the first is added to the GPU's own."""
        own = Slot("i", chunks.start)
        adds = self.profile.fuses and not landed
        where = into if adds else landing
        number = self._send(source, target, chunks, origin, own, where, (), own if adds else None)
        landed[where] = (number,) * len(chunks)

    def _parts(self, first: int, landed: dict[Slot, Ends]) -> dict[Slot, Ends]:
        """Return what a GPU adds up: its own, unless the first arrival has it already."""
        own: dict[Slot, Ends] = {} if self.profile.fuses and landed else {Slot("i", first): ()}
        return own | landed

    def _far_room(self, turn: int, far: int, part: int) -> Slot:
        """Return where the sum of another box lands: of the own shard, or one to pass on."""
        before = self.rails.turns * self.rails.places + turn
        return self.cells.slot(before * len(self.boxes) + far, part)

    def _add_shards(self, part: int, *, own: bool) -> Sums:
        """Add up in every box the shards of its GPUs, or those of all others."""
        targets = [
            (home, index)
            for home, index in product(range(len(self.boxes)), repeat=2)
            if (home == index) == own
        ]
        arrived: dict[tuple[int, int], dict[Slot, Ends]] = {}
        for index, other in enumerate(self.boxes):
            for home, a, b in self._within(self.rails.places, self.rails.places):
                if (home, index) not in targets:
                    continue
                box = self.boxes[home]
                for turn, place in self._served(home, b, index):
                    chunks, landing = (
                        self._shard(other[place], part),
                        self._room(turn, index, a, part),
                    )
                    origin = Origin(0, Direction.IN, other[place], self._channel(part))
                    into = self._into(turn, index, b, part)
                    landed = arrived.setdefault((box[b], other[place]), {})
                    self._arrive(box[a], box[b], chunks, origin, landing, into, landed)
        found: Sums = {}
        for home, index in targets:
            box = self.boxes[home]
            for b, rank in enumerate(box):
                for turn, place in self._served(home, b, index):
                    shard = self.boxes[index][place]
                    chunks = self._shard(shard, part)
                    parts = self._parts(chunks.start, arrived.get((rank, shard), {}))
                    into = self._into(turn, index, b, part)
                    origin = Origin(0, Direction.IN, shard, self._channel(part))
                    found[rank, shard] = into, self._sum(rank, chunks, origin, parts, into)
        return found

    def _deliver(
        self,
        place: int,
        index: int,
        part: int,
        sums: Sums,
    ) -> None:
        """Bring the sums of all boxes for a shard to its GPU, and add them."""
        turn, on_rail = divmod(place, self.rails.count)
        rank, home = self.boxes[index][place], self.boxes[index][on_rail]
        chunks, origin = self._shard(rank, part), Origin(1, Direction.IN, rank, self._channel(part))
        into = Slot("o", self.cells.begins[part])
        adds = self.profile.fuses and len(self.boxes) == 2
        own, own_ends = sums[rank, rank]
        landed = {own: own_ends}
        for distance in range(1, len(self.boxes)):
            far = (index + distance) % len(self.boxes)
            source = self.boxes[far][on_rail]
            read, needed = sums[source, rank]
            if home != rank:
                passing = self._far_room(turn, far, part)
                last = self._send(source, home, chunks, origin, read, passing, needed)
                source, read, needed = home, passing, (last,)
            lands = into if adds else self._far_room(0, far, part)
            operand = own if adds else None
            number = self._send(source, rank, chunks, origin, read, lands, needed, operand)
            if not adds:
                landed[lands] = (number,) * len(chunks)
        if len(landed) > 1:
            self._sum(rank, chunks, origin, landed, into)

    def _within(self, sources: int, targets: int) -> Iterator[tuple[int, int, int]]:
        """Yield boxes and two of their first places, in rounds with one target for each."""
        for distance in range(1, self.rails.places):
            for place in range(sources):
                for number, box in enumerate(self.boxes):
                    target = (place + distance) % len(box)
                    if place < len(box) > distance and target < targets:
                        yield number, place, target

    def _exchange(
        self,
        rail: Sequence[int],
        chunks: range,
        spare: Slot,
        sums: Sequence[Slot],
        ends: dict[int, Ends],
        total: dict[int, Slot],
        channel: int,
    ) -> None:
        """Exchange the sums of boxes, add them, and note where and when they are there."""
        count, within = len(rail), dict(ends)
        adds = self.profile.fuses and count == 2
        for index, rank in enumerate(rail):  # the sum stands behind the last arrival
            origin = Origin(1, Direction.IN, rank, channel)
            parts = {sums[index]: within[rank]}
            for distance in range(1, count):
                box = (index + distance) % count
                source, ways = rail[box], (sums[box], sums[box])
                own = sums[index] if adds else None
                number = self._send(source, rank, chunks, origin, *ways, within[source], own)
                parts[sums[box]] = (number,) * len(chunks)
            total[rank] = sums[1 - index] if count == 2 else spare
            first = 0 if count > 2 else 1 - index
            ordered = {slot: parts[slot] for slot in (*sums[first:], *sums[:first])}
            if adds:
                ordered = {total[rank]: parts[total[rank]]}
            ends[rank] = self._sum(rank, chunks, origin, ordered, total[rank])
            if count == 2:
                self._publish(rank, chunks, origin, total[rank], ends[rank])
        for rank in rail if count > 2 else ():  # a copy right behind a chain would be part of it
            origin = Origin(1, Direction.IN, rank, channel)
            self._publish(rank, chunks, origin, total[rank], ends[rank])

    def _publish(self, rank: int, chunks: range, origin: Origin, total: Slot, ends: Ends) -> None:
        """Append the copy of a sum to the output."""
        self._sum(rank, chunks, origin, {total: ends}, Slot("o", chunks.start))

    def _sum(
        self, rank: int, chunks: range, origin: Origin, parts: dict[Slot, Ends], into: Slot
    ) -> Ends:
        """Add up parts, each there behind some steps; the first is copied unless it is in place.

        Within a box there are many parts, so each piece is added up by itself.
        """
        found: list[int] = []
        count = 1 if origin.phase == 0 else len(chunks)
        (first, _), *others = parts.items()
        added = list(additions(others, (into, ()), self.profile.longest_chain))
        for piece in range(0, len(chunks), count):
            own = slice(piece, piece + count)
            where = rank, chunks.start, origin, own
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
        chunks: range,
        origin: Origin,
        read: Slot,
        write: Slot,
        after: Ends = (),
        operand: Slot | None = None,
    ) -> int:
        """Append a transfer of all pieces, which may add to an operand; return its number."""
        where, adds, needed = (
            (source, target, chunks.start),
            operand is not None,
            tuple(sorted(set(after))),
        )
        self.transfers.append(
            Transfer(*where, len(chunks), adds, needed, origin, read, write, operand)
        )
        return len(self.transfers) - 1
