"""The transfers and sums of `build-rails` for an allreduce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter


class AllreduceWriter(RailsWriter):
    """Transfers of an allreduce so far.

    In its scratch, a GPU has room for its shard from each place of its box, and from each box: its
    own sum, and those that arrive. Sums of boxes are added by box, in the room of its own place,
    so that all get the same bits. The sum of two is the same either way: the GPU's own is added
    to what arrived. GPUs on no rail have no shard.
    """

    __slots__ = ()

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a shard."""
        return self.rails.places + len(self.boxes)

    def write(self) -> None:
        """Write down an allreduce.

        In one box, all channels send before any adds up, and so on: threadblocks also add up for
        other channels, which must not wait for what they send on themselves. Between boxes, the
        exchange of a channel takes so long that the sums of the next come in between.

        With several segments, all channels send one before any adds it up. All segments are added
        up and exchanged before any is spread: nobody waits for an exchange with sums to do.
        """
        order: Iterable[object]
        parts = [self._add_part(*numbered) for numbered in enumerate(self.cells.ranges)]
        segments = [zip_longest(*(parts[part] for part in own)) for own in self._segments()]
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
        landing, sums = self._rooms_of_places(part), self._rooms_of_boxes(part)
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
                total[rank] = sums[index] if count > 1 else Slot("o", first)
                parts = self._parts(first, arrived[rank], total[rank])
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
                parts[sums[box]] = self._send(
                    *(source, rank, chunks, origin, *ways, within[source], own)
                )
            total[rank] = sums[1 - index] if count == 2 else spare
            first = 0 if count > 2 else 1 - index
            ordered = {slot: parts[slot] for slot in (*sums[first:], *sums[:first])}
            if adds:
                ordered = {total[rank]: parts[total[rank]]}
            ends[rank] = self._sum(rank, chunks, origin, ordered, total[rank], whole=True)
            if count == 2:
                self._publish(rank, chunks, origin, total[rank], ends[rank])
        for rank in rail if count > 2 else ():  # a copy right behind a chain would be part of it
            origin = Origin(1, Direction.IN, rank, channel)
            self._publish(rank, chunks, origin, total[rank], ends[rank])

    def _publish(self, rank: int, chunks: range, origin: Origin, total: Slot, ends: Ends) -> None:
        """Append the copy of a sum to the output."""
        self._sum(rank, chunks, origin, {total: ends}, Slot("o", chunks.start), whole=True)
