"""The transfers and sums of `build-rails` for an allreduce in two shots at each level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter

Arrivals = dict[int, dict[Slot, Ends]]
"""By rank, what it adds up, and the steps by which the pieces are there."""

Held = dict[int, Ends]
"""By rank, the steps by which it has the pieces of its rail's shard, or of its share."""

Rail = tuple[Sequence[int], range, Sequence[slice]]
"""The ranks of a rail by box, the chunks of its shard, and the share of each box in these."""


@dataclass(slots=True)
class TwoShotWriter(RailsWriter):
    """Transfers of an allreduce so far in which a rail scatters and gathers the sums of its boxes.

    The shard of a rail has a share for each box. A GPU gets its own from all others of its rail,
    adds it up in the output, and sends it back. So little data changes boxes, in few channels, and
    threadblocks are left to those within boxes. Channels cut the shard as it lies in the message,
    at each level by themselves: what goes round a box in one step has shares of several boxes.

    In its scratch, a GPU has room for its shard from each place of its box, for the sum of its box,
    and for its share from each other box.

    Parameters
    ----------
    far : int
        Channels between boxes; `channels` are those within.
    """

    far: int = 1

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a shard."""
        return self.rails.places + len(self.boxes)

    def write(self) -> None:
        """Write down an allreduce: while a segment is at a stage, the next is at the one before."""
        segments = [self._segment(*numbered) for numbered in enumerate(self.cells.ranges)]
        stages = 4
        for time in range(len(segments) + stages - 1):
            for segment in reversed(segments[max(0, time - stages + 1) : time + 1]):
                next(segment, None)

    def _segment(self, part: int, shards: Sequence[range]) -> Iterator[None]:
        """Write down a segment with the chunks of each rail, a stage at a time."""
        arrived = self._collect(part, shards)
        yield
        sums = self._add_up(part, shards, arrived)
        shares = self._scatter(part, shards, sums)
        yield
        held = self._gather(shards, shares)
        yield
        self._spread(shards, held)

    def _collect(self, part: int, shards: Sequence[range]) -> Arrivals:
        """Send those of a box what they add up; where sends add, the first to the GPU's own."""
        landing = self._rooms_of_places(part)
        arrived: Arrivals = {rank: {} for box in self.boxes for rank in box}
        for channel in range(self.channels):
            for home, a, b in self._within(self.rails.places, self.rails.count):
                source, target = self.boxes[home][a], self.boxes[home][b]
                adds = self.profile.fuses and (b - a) % len(self.boxes[home]) == 1
                own, into = Slot("i", shards[b].start), self._summed(part) if adds else landing[a]
                origin = Origin(0, Direction.IN, target, channel)
                where = source, target, shards[b], origin, own, into
                sent = self._cut(where, channel, self.channels, (), own if adds else None)
                arrived[target][into] = arrived[target].get(into, ()) + sent
        return arrived

    def _add_up(self, part: int, shards: Sequence[range], arrived: Arrivals) -> Held:
        """Add up the shards of boxes."""
        into, found = self._summed(part), {}
        for rail, shard, _ in self._along(shards):
            for rank in rail:
                parts = self._parts(shard.start, arrived[rank], into)
                found[rank] = self._sums(rank, shard, 0, parts, into)
        return found

    def _scatter(self, part: int, shards: Sequence[range], sums: Held) -> Arrivals:
        """Send sums of boxes to those whose shares they are."""
        summed, places = self._summed(part), self.rails.places
        found: Arrivals = {}
        for rail, _, shares in self._along(shards):
            for rank, share in zip(rail, shares, strict=True):
                found[rank] = {summed.behind(share.start): sums[rank][share]}
        for channel, distance in self._rounds():
            for rail, shard, shares in self._along(shards):
                for index, share in enumerate(shares):
                    source, target = rail[(index + distance) % len(rail)], rail[index]
                    origin = Origin(1, Direction.IN, target, channel)
                    lands = self.cells.slot(places + distance, part)
                    ways = summed.behind(share.start), lands
                    where = source, target, shard[share], origin, *ways
                    sent = self._cut(where, channel, self.far, sums[source][share])
                    found[target][lands] = found[target].get(lands, ()) + sent
        return found

    def _gather(self, shards: Sequence[range], arrived: Arrivals) -> Held:
        """Add up shares, and send all of a rail the sums; return when GPUs have its shard."""
        own: Held = {}
        for rail, shard, shares in self._along(shards):
            for rank, share in zip(rail, shares, strict=True):
                into = Slot("o", shard[share].start)
                own[rank] = self._sums(rank, shard[share], 1, arrived[rank], into)
        found = {rank: {rank: ends} for rank, ends in own.items()}
        for channel, distance in self._rounds():
            for rail, shard, shares in self._along(shards):
                for index, share in enumerate(shares):
                    source, target = rail[index], rail[(index + distance) % len(rail)]
                    origin = Origin(1, Direction.OUT, source, channel)
                    slot = Slot("o", shard[share].start)
                    where = source, target, shard[share], origin, slot, slot
                    sent = self._cut(where, channel, self.far, own[source])
                    found[target][source] = found[target].get(source, ()) + sent
        rails = ((rank, rail) for rail in self.rails for rank in rail)
        return {rank: sum((found[rank][source] for source in rail), ()) for rank, rail in rails}

    def _spread(self, shards: Sequence[range], held: Held) -> None:
        """Send all of a box the shards of rails."""
        for channel in range(self.channels):
            for home, a, b in self._within(self.rails.count, self.rails.places):
                source, target, shard = self.boxes[home][a], self.boxes[home][b], shards[a]
                origin, slot = Origin(2, Direction.OUT, source, channel), Slot("o", shard.start)
                where = source, target, shard, origin, slot, slot
                self._cut(where, channel, self.channels, held[source])

    def _summed(self, part: int) -> Slot:
        """Return where the sum of the own box is."""
        return self.cells.slot(self.rails.places, part)

    def _along(self, shards: Sequence[range]) -> Iterator[Rail]:
        """Yield all rails."""
        for rail, shard in zip(self.rails, shards, strict=True):
            yield rail, shard, tuple(self._slices(len(shard), len(rail)))

    def _rounds(self) -> Iterator[tuple[int, int]]:
        """Yield channels between boxes, and how many boxes on."""
        return product(range(self.far), range(1, len(self.boxes)))

    def _sums(
        self, rank: int, chunks: range, phase: int, parts: dict[Slot, Ends], into: Slot
    ) -> Ends:
        """Add up pieces one by one, in threadblocks of all channels."""
        found: Ends = ()
        for channel, own in enumerate(self._slices(len(chunks), self.channels)):
            origin = Origin(phase, Direction.IN, rank, channel)
            each = {slot.behind(own.start): ends[own] for slot, ends in parts.items()}
            found += self._sum(rank, chunks[own], origin, each, into.behind(own.start))
        return found

    def _cut(
        self,
        where: tuple[int, int, range, Origin, Slot, Slot],
        channel: int,
        channels: int,
        after: Ends,
        operand: Slot | None = None,
    ) -> Ends:
        """Send what a channel has of some chunks; return the steps by which they are there."""
        source, target, chunks, origin, read, write = where
        own = list(self._slices(len(chunks), channels))[channel]
        slots = read.behind(own.start), write.behind(own.start)
        added = operand and operand.behind(own.start)
        return self._send(source, target, chunks[own], origin, *slots, after[own], added)
