"""The transfers and sums of `build-rails` for an allreduce in two shots at each level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter

Parts = dict[Slot, Ends]
"""What a GPU adds up, and the steps by which the pieces are there."""

Held = dict[int, Ends]
"""By rank, the steps by which it has the pieces of its rail's shard, or of its share."""


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

    def _collect(self, part: int, shards: Sequence[range]) -> dict[tuple[int, int], Parts]:
        """Send those of a box what they add up, by rank and channel."""
        landing, summed = self._rooms_of_places(part), self._summed(part)
        arrived: dict[tuple[int, int], Parts] = defaultdict(dict)
        for channel in range(self.channels):
            for home, a, b in self._within(self.rails.places, self.rails.count):
                source, target = self.boxes[home][a], self.boxes[home][b]
                cut = self._cut(shards[b], channel, self.channels)
                origin = Origin(0, Direction.IN, target, channel)
                ways = landing[a].behind(cut.start), summed.behind(cut.start)
                landed = arrived[target, channel]
                self._arrive(source, target, shards[b][cut], origin, *ways, landed)
        return arrived

    def _add_up(
        self, part: int, shards: Sequence[range], arrived: dict[tuple[int, int], Parts]
    ) -> Held:
        """Add up the shards of boxes."""
        found: Held = defaultdict(tuple)
        for rail, shard in zip(self.rails, shards, strict=True):
            for rank, channel in product(rail, range(self.channels)):
                cut = self._cut(shard, channel, self.channels)
                into, chunks = self._summed(part).behind(cut.start), shard[cut]
                parts = self._parts(chunks.start, arrived[rank, channel], into)
                origin = Origin(0, Direction.IN, rank, channel)
                found[rank] += self._sum(rank, chunks, origin, parts, into)
        return found

    def _scatter(self, part: int, shards: Sequence[range], sums: Held) -> dict[int, Parts]:
        """Send sums of boxes to those whose shares they are; return what these add up."""
        summed = self._summed(part)
        found = {
            rank: {summed.behind(share.start): sums[rank][share]}
            for rank, _, share in self._shares(shards)
        }
        for channel, distance, owner, other, chunks, share in self._across(shards):
            cut = self._cut(chunks, channel, self.far)
            lands = self.cells.slot(self.rails.places + distance, part)
            ways = summed.behind(share.start + cut.start), lands.behind(cut.start)
            origin = Origin(1, Direction.IN, owner, channel)
            after = sums[other][share][cut]
            sent = self._send(other, owner, chunks[cut], origin, *ways, after)
            found[owner][lands] = found[owner].get(lands, ()) + sent
        return found

    def _gather(self, shards: Sequence[range], arrived: dict[int, Parts]) -> Held:
        """Add up shares, and send all of a rail the sums; return when GPUs have its shard."""
        own: Held = defaultdict(tuple)
        for rank, chunks, _ in self._shares(shards):
            for channel in range(self.channels):
                cut = self._cut(chunks, channel, self.channels)
                parts = {slot.behind(cut.start): ends[cut] for slot, ends in arrived[rank].items()}
                into = Slot("o", chunks[cut].start)
                origin = Origin(1, Direction.IN, rank, channel)
                own[rank] += self._sum(rank, chunks[cut], origin, parts, into)
        found: dict[tuple[int, int], Ends] = defaultdict(tuple)
        found |= {(rank, rank): ends for rank, ends in own.items()}
        for channel, _, owner, other, chunks, _ in self._across(shards):
            cut = self._cut(chunks, channel, self.far)
            slot = Slot("o", chunks[cut].start)
            origin = Origin(1, Direction.OUT, owner, channel)
            sent = self._send(owner, other, chunks[cut], origin, slot, slot, own[owner][cut])
            found[other, owner] += sent
        rails = ((rank, rail) for rail in self.rails for rank in rail)
        return {rank: sum((found[rank, owner] for owner in rail), ()) for rank, rail in rails}

    def _spread(self, shards: Sequence[range], held: Held) -> None:
        """Send all of a box the shards of rails."""
        for channel in range(self.channels):
            for home, a, b in self._within(self.rails.count, self.rails.places):
                source, target, shard = self.boxes[home][a], self.boxes[home][b], shards[a]
                cut = self._cut(shard, channel, self.channels)
                origin, slot = (
                    Origin(2, Direction.OUT, source, channel),
                    Slot("o", shard[cut].start),
                )
                self._send(source, target, shard[cut], origin, slot, slot, held[source][cut])

    def _summed(self, part: int) -> Slot:
        """Return where the sum of the own box is."""
        return self.cells.slot(self.rails.places, part)

    def _shares(self, shards: Sequence[range]) -> Iterator[tuple[int, range, slice]]:
        """Yield all GPUs of rails, the chunks of their shares, and where these are in shards."""
        for rail, shard in zip(self.rails, shards, strict=True):
            for rank, share in zip(rail, self._slices(len(shard), len(rail)), strict=True):
                yield rank, shard[share], share

    def _across(self, shards: Sequence[range]) -> Iterator[tuple[int, int, int, int, range, slice]]:
        """Yield channels, how many boxes on, whose share, the GPU there, and as `_shares`."""
        for channel, distance in product(range(self.far), range(1, len(self.boxes))):
            for rail, shard in zip(self.rails, shards, strict=True):
                for index, share in enumerate(self._slices(len(shard), len(rail))):
                    other = rail[(index + distance) % len(rail)]
                    yield channel, distance, rail[index], other, shard[share], share

    def _cut(self, chunks: range, channel: int, channels: int) -> slice:
        """Return which of some chunks a channel has."""
        return list(self._slices(len(chunks), channels))[channel]
