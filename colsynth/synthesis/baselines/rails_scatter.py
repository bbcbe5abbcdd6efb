"""The transfers and sums of `build-rails` for a reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter

Arrivals = dict[tuple[int, int], dict[Slot, Ends]]
"""Where shards have arrived, and by which steps, by the GPU that has them and the shard's rank."""

Collected = list[tuple[int, Arrivals]]
"""What has arrived of some parts, by part."""

Sums = dict[tuple[int, int], tuple[Slot, Ends]]
"""Where the sum of a box is, and its last steps, by the GPU that has it and the shard's rank."""


@dataclass(slots=True)
class ScatterWriter(RailsWriter):
    """Transfers of a reduce-scatter so far.

    In its scratch, a GPU has room for the shards of each box from each place of its own, once for
    each turn: those of its own place, and of GPUs on no rail for which it adds up. Behind them is
    room for what arrives from each box, for itself and to be passed on; in a ring, for what arrives
    of each box. The sum of a GPU's own shard is in its output from the start.

    Parameters
    ----------
    adds : bool
        Whether the sum of another box is added to that of the GPU's own as it arrives. Otherwise a
        GPU adds it up with its own shard, and waits for it.
    ring : bool
        Whether sums go from box to box, and each adds its own; every GPU is on a rail then.
    """

    adds: bool = False
    ring: bool = False

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a shard."""
        return self.rails.turns * len(self.boxes) * (self.rails.places + 1)

    def write(self) -> None:
        """Write down a reduce-scatter."""
        self._add_all_up()

    def _add_all_up(self) -> list[Sums]:
        """Write down a reduce-scatter; return by part where sums are, those of all boxes last."""
        return self._around() if self.ring else self._scatter()

    def _scatter(self) -> list[Sums]:
        """Write down a reduce-scatter; return by part where sums are, those of all boxes last.

        In every other box, the shard of a GPU is added up in the same place, or if that is on no
        rail, by a GPU of one, beside the shard of its own place. Such sums have one more hop.

        Shards of other boxes are added up first, in all segments: while their sums are on their
        way, boxes send each other their own. All channels send a segment before any adds it up.
        """
        segments = self._segments()
        sums: list[Sums] = [{} for _ in self.cells.counts]
        landed: list[Arrivals] = [{} for _ in self.cells.counts]
        others = product(range(1, len(self.boxes)), segments)
        for distance, collected in self._stages(others, ahead=False):
            for part, arrived in collected:
                sums[part] |= self._add_up(part, distance, arrived)
        if not self.adds:
            self._exchange(sums, landed)
        for _, collected in self._stages(product((0,), segments), ahead=False):
            for part, arrived in collected:
                for target, far in landed[part].items():
                    arrived[target] = arrived.get(target, {}) | far
                sums[part] |= self._add_up(part, 0, arrived)
        if self.adds:
            self._exchange(sums, landed)
            for part, found in enumerate(landed):
                for own, far in found.items():
                    sums[part][own] = sums[part][own][0], far[sums[part][own][0]]
        return sums

    def _around(self) -> list[Sums]:
        """Write down a reduce-scatter in which sums go from box to box; return as `_scatter` does.

        The sum of a shard begins in the box before its own. What a box passes on first, it adds up
        first. It collects the next shards before it adds up any, so that threadblocks have data to
        move while sums wait for what the box behind has added up.
        """
        sums: list[Sums] = [{} for _ in self.cells.counts]
        landed: list[Arrivals] = [{} for _ in self.cells.counts]
        every = product((*range(1, len(self.boxes)), 0), self._segments())
        for distance, collected in self._stages(every, ahead=True):
            for part, arrived in collected:
                sums[part] |= self._add_up(part, distance, arrived)
            for part, _ in collected:
                self._pass_on(part, distance, sums[part], landed[part])
        return sums

    def _pass_on(self, part: int, distance: int, sums: Sums, landed: Arrivals) -> None:
        """Add what has landed to the sums for boxes so many on; send these to the box before."""
        for home, box in enumerate(self.boxes):
            index = (home + distance) % len(self.boxes)
            ways = zip(box, self.boxes[index], self.boxes[home - 1], strict=True)
            for rank, shard, target in ways:
                chunks, origin = self._shard(shard, part), self._origin(1, shard, part)
                total, ends = sums[rank, shard]
                if far := landed.get((rank, shard)):
                    ends = self._sum(rank, chunks, origin, {total: ends} | far, total)
                    sums[rank, shard] = total, ends
                if distance:
                    lands = self._far_room(0, index, part)
                    sent = self._send(rank, target, chunks, origin, total, lands, ends)
                    landed[target, shard] = {lands: sent}

    def _stages(
        self, stages: Iterable[tuple[int, range]], *, ahead: bool
    ) -> Iterator[tuple[int, Collected]]:
        """Send segments to who adds them up, stage by stage; yield these, by how many boxes on.

        If ahead, each is yielded when the next one has been sent.
        """
        waiting: list[tuple[int, Collected]] = []
        for distance, segment in stages:
            waiting.append((distance, [(part, self._collect(part, distance)) for part in segment]))
            if len(waiting) > ahead:
                yield waiting.pop(0)
        yield from waiting

    def _exchange(self, sums: Sequence[Sums], landed: Sequence[Arrivals]) -> None:
        """Bring the sums of all boxes to those whose shards they are, and note where they land."""
        for part, place in product(range(len(sums)), range(self.rails.places)):
            for index, box in enumerate(self.boxes):
                if place < len(box):
                    own = box[place], box[place]
                    landed[part][own] = self._deliver(place, index, part, sums[part])

    def _shard(self, rank: int, part: int) -> range:
        """Return the chunks of a GPU's shard that a part has."""
        return self.cells.ranges[part][rank]

    def _own(self, rank: int, part: int) -> Slot:
        """Return where a GPU's own shard is added up."""
        return Slot("o", self.cells.begins[part])

    def _shares(self, home: int, place: int, distance: int) -> Iterator[tuple[int, int, int]]:
        """Yield turn, box and rank of the shards of a box that a GPU adds up, so many boxes on."""
        index = (home + distance) % len(self.boxes)
        served, step = self.boxes[index][place:], self.rails.count
        if home == index:
            yield 0, index, served[0]
        elif place < self.rails.count:
            yield from ((turn, index, shard) for turn, shard in enumerate(served[::step]))

    def _room(self, turn: int, index: int, place: int, part: int) -> Slot:
        """Return where shards of a box from a place land; sums of a GPU are in its own place."""
        return self.cells.slot((turn * len(self.boxes) + index) * self.rails.places + place, part)

    def _into(self, turn: int, home: int, index: int, place: int, part: int) -> Slot:
        """Return where shards of a box are added up: in the output, those of the GPU itself."""
        if home == index:
            return self._own(self.boxes[home][place], part)
        return self._room(turn, index, place, part)

    def _far_room(self, turn: int, far: int, part: int) -> Slot:
        """Return where the sum of another box lands: of the own shard, or one to pass on.

        In a ring, `far` is the box whose shard it is.
        """
        before = self.rails.turns * self.rails.places + turn
        return self.cells.slot(before * len(self.boxes) + far, part)

    def _collect(self, part: int, distance: int) -> Arrivals:
        """Send shards of GPUs that are so many boxes on to those that add them up."""
        arrived: Arrivals = {}
        for home, a, b in self._within(self.rails.places, self.rails.places):
            source, target = self.boxes[home][a], self.boxes[home][b]
            for turn, index, shard in self._shares(home, b, distance):
                chunks, origin = self._shard(shard, part), self._origin(0, shard, part)
                ways = self._room(turn, index, a, part), self._into(turn, home, index, b, part)
                landed = arrived.setdefault((target, shard), {})
                self._arrive(source, target, chunks, origin, *ways, landed)
        return arrived

    def _add_up(self, part: int, distance: int, arrived: Arrivals) -> Sums:
        """Add up what `_collect` sent."""
        found: Sums = {}
        for home, box in enumerate(self.boxes):
            for place, rank in enumerate(box):
                for turn, index, shard in self._shares(home, place, distance):
                    chunks, origin = self._shard(shard, part), self._origin(0, shard, part)
                    into = self._into(turn, home, index, place, part)
                    parts = self._parts(chunks.start, arrived.get((rank, shard), {}), into)
                    found[rank, shard] = into, self._sum(rank, chunks, origin, parts, into)
        return found

    def _origin(self, phase: int, shard: int, part: int) -> Origin:
        return Origin(phase, Direction.IN, shard, self._channel(part))

    def _deliver(self, place: int, index: int, part: int, sums: Sums) -> dict[Slot, Ends]:
        """Bring the sums of other boxes for a shard to its GPU; return where they are."""
        turn, on_rail = divmod(place, self.rails.count)
        rank, home = self.boxes[index][place], self.boxes[index][on_rail]
        chunks, origin = self._shard(rank, part), self._origin(1, rank, part)
        own = self._own(rank, part)
        landed: dict[Slot, Ends] = {}
        for distance in range(1, len(self.boxes)):
            far = (index + distance) % len(self.boxes)
            source = self.boxes[far][on_rail]
            read, needed = sums[source, rank]
            if home != rank:
                passing = self._far_room(turn, far, part)
                needed = self._send(source, home, chunks, origin, read, passing, needed)
                source, read = home, passing
            lands, operand = (own, own) if self.adds else (self._far_room(0, far, part), None)
            landed[lands] = self._send(
                *(source, rank, chunks, origin, read, lands, needed, operand)
            )
        return landed
