"""The transfers and sums of `build-rails` for an allreduce in two shots at each level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter

Parts = dict[Slot, Ends]
"""What a GPU adds up, and the steps by which the pieces are there."""

Held = dict[int, Ends]
"""By rank, the steps by which it has the pieces of its share."""


class Stage(NamedTuple):
    """An exchange among some boxes, those whose numbers differ in one digit.

    Parameters
    ----------
    radix : int
        How many they are.
    stride : int
        From the number of one to that of the next.
    channels : int
    """

    radix: int
    stride: int
    channels: int

    def digit(self, box: int) -> int:
        """Return which of them a box is."""
        return box // self.stride % self.radix

    def on(self, box: int, distance: int) -> int:
        """Return the box so many of them on."""
        digit = self.digit(box)
        return box + ((digit + distance) % self.radix - digit) * self.stride


class Share(NamedTuple):
    """What a GPU has of its rail's shard in a stage.

    Parameters
    ----------
    rank, box : int
    chunks : range
    start : int
        Pieces of the shard before it.
    cut : slice
        Its pieces among those of the share that the boxes of the stage have together.
    """

    rank: int
    box: int
    chunks: range
    start: int
    cut: slice


@dataclass(slots=True)
class TwoShotWriter(RailsWriter):
    """Transfers of an allreduce so far in which a rail scatters and gathers the sums of its boxes.

    The shard of a rail has a share for each box. A GPU gets its own from all others of its rail,
    adds it up in the output, and sends it back. So little data changes boxes, in few channels, and
    threadblocks are left to those within boxes. Channels cut the shard as it lies in the message,
    at each level by themselves: what goes round a box in one step has shares of several boxes.

    Many boxes do so in several stages, each among those whose numbers differ in one digit: they
    divide what they have in common, and gather it in the opposite order. With two boxes in each,
    that is halving and doubling (Thakur, Rabenseifner, Gropp 2005).

    In its scratch, a GPU has room for its shard from each place of its box, for the sum of its box,
    and for its shares from each other box that it exchanges with.

    Parameters
    ----------
    stages : tuple of Stage
        The exchanges between boxes; `channels` are those within.
    """

    stages: tuple[Stage, ...] = ()

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a shard."""
        return self._rooms_before(len(self.stages) + 1)

    def _rooms_before(self, depth: int) -> int:
        """Return the places in scratch before those for what arrives in a stage."""
        return self.rails.places + 1 + sum(stage.radix - 1 for stage in self.stages[: depth - 1])

    def write(self) -> None:
        """Write down an allreduce: while a segment is at a step, the next is at the one before."""
        segments = [self._segment(*numbered) for numbered in enumerate(self.cells.ranges)]
        steps = 2 + 2 * len(self.stages)
        for time in range(len(segments) + steps - 1):
            for segment in reversed(segments[max(0, time - steps + 1) : time + 1]):
                next(segment, None)

    def _segment(self, part: int, shards: Sequence[range]) -> Iterator[None]:
        """Write down a segment with the chunks of each rail, a step at a time."""
        arrived = self._collect(part, shards)
        yield
        held = self._add_up(part, shards, arrived)
        depths = range(1, len(self.stages) + 1)
        for depth in depths:
            shares = self._scatter(part, shards, depth, held)
            yield
            held = self._add_shares(shards, depth, shares)
        for depth in reversed(depths):
            held = self._gather(shards, depth, held)
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

    def _scatter(
        self, part: int, shards: Sequence[range], depth: int, sums: Held
    ) -> dict[int, Parts]:
        """Send sums to those whose shares they are; return what these add up."""
        summed = self._summed(part)
        found = {
            share.rank: {summed.behind(share.start): sums[share.rank][share.cut]}
            for share in self._shares(shards, depth)
        }
        first = self._rooms_before(depth)
        for channel, distance, share, other in self._across(shards, depth):
            cut = self._cut(share.chunks, channel, self.stages[depth - 1].channels)
            lands = self.cells.slot(first + distance - 1, part)
            ways = summed.behind(share.start + cut.start), lands.behind(cut.start)
            origin = Origin(depth, Direction.IN, share.rank, channel)
            after = sums[other][share.cut][cut]
            sent = self._send(other, share.rank, share.chunks[cut], origin, *ways, after)
            found[share.rank][lands] = found[share.rank].get(lands, ()) + sent
        return found

    def _add_shares(self, shards: Sequence[range], depth: int, arrived: dict[int, Parts]) -> Held:
        """Add up shares where the sum of the own box is, and the last of them in the output."""
        found: Held = defaultdict(tuple)
        for share in self._shares(shards, depth):
            for channel in range(self.channels):
                cut = self._cut(share.chunks, channel, self.channels)
                parts = {
                    slot.behind(cut.start): ends[cut] for slot, ends in arrived[share.rank].items()
                }
                chunks = share.chunks[cut]
                into = Slot("o", chunks.start) if depth == len(self.stages) else next(iter(parts))
                origin = Origin(depth, Direction.IN, share.rank, channel)
                found[share.rank] += self._sum(share.rank, chunks, origin, parts, into)
        return found

    def _gather(self, shards: Sequence[range], depth: int, held: Held) -> Held:
        """Send all of a stage the sums; return when GPUs have what they divided."""
        stage = self.stages[depth - 1]
        found: dict[tuple[int, int], Ends] = defaultdict(tuple)
        for share in self._shares(shards, depth):
            found[share.rank, stage.digit(share.box)] = held[share.rank]
        for channel, _, share, other in self._across(shards, depth):
            cut = self._cut(share.chunks, channel, stage.channels)
            slot = Slot("o", share.chunks[cut].start)
            origin = Origin(depth, Direction.OUT, share.rank, channel)
            after = held[share.rank][cut]
            found[other, stage.digit(share.box)] += self._send(
                share.rank, other, share.chunks[cut], origin, slot, slot, after
            )
        digits = range(stage.radix)
        return {rank: sum((found[rank, digit] for digit in digits), ()) for rank in held}

    def _spread(self, shards: Sequence[range], held: Held) -> None:
        """Send all of a box the shards of rails."""
        phase = len(self.stages) + 1
        for channel in range(self.channels):
            for home, a, b in self._within(self.rails.count, self.rails.places):
                source, target, shard = self.boxes[home][a], self.boxes[home][b], shards[a]
                cut = self._cut(shard, channel, self.channels)
                origin = Origin(phase, Direction.OUT, source, channel)
                slot = Slot("o", shard[cut].start)
                self._send(source, target, shard[cut], origin, slot, slot, held[source][cut])

    def _summed(self, part: int) -> Slot:
        """Return where the sum of the own box is."""
        return self.cells.slot(self.rails.places, part)

    def _shares(self, shards: Sequence[range], depth: int) -> Iterator[Share]:
        """Yield what all GPUs of rails have after so many stages."""
        for rail, shard in zip(self.rails, shards, strict=True):
            for box, rank in enumerate(rail):
                chunks = shard
                for stage in self.stages[:depth]:
                    cut = list(self._slices(len(chunks), stage.radix))[stage.digit(box)]
                    chunks = chunks[cut]
                yield Share(rank, box, chunks, chunks.start - shard.start, cut)

    def _across(self, shards: Sequence[range], depth: int) -> Iterator[tuple[int, int, Share, int]]:
        """Yield channels of a stage, how many of its boxes on, whose share, and the GPU there."""
        stage = self.stages[depth - 1]
        shares = list(self._shares(shards, depth))
        rails = [rail for rail in self.rails for _ in rail]
        for channel, distance in product(range(stage.channels), range(1, stage.radix)):
            for rail, share in zip(rails, shares, strict=True):
                yield channel, distance, share, rail[stage.on(share.box, distance)]

    def _cut(self, chunks: range, channel: int, channels: int) -> slice:
        """Return which of some chunks a channel has."""
        return list(self._slices(len(chunks), channels))[channel]
