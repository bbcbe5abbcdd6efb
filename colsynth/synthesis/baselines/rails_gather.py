"""The transfers of `build-rails` for an allgather, or for the second half of an allreduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from colsynth.model import Direction, Origin, Slot, Transfer
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter

Held = dict[tuple[int, int], Ends]
"""By which steps a GPU has a shard, by the GPU and the rank whose shard it is."""


@dataclass(slots=True)
class GatherWriter(RailsWriter):
    """Transfers of an allgather so far.

    Every GPU is on a rail. It sends its shard to the GPUs in its place of other boxes first. These
    spread it in their boxes, as the GPU itself does. It copies its own shard to the output behind
    all that it sends of it.

    Parameters
    ----------
    ring : bool
        Whether shards go from box to box, in the direction of `ScatterWriter`'s sums.
    halved : bool
        Whether it is the second half of an allreduce: own shards are sums, in the output.
    """

    ring: bool = False
    halved: bool = False

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a shard: none, as shards land in the output."""
        return 0

    def write(self) -> None:
        """Write down an allgather: everyone has its own shard, in the input."""
        own: Held = {(rank, rank): () for box in self.boxes for rank in box}
        self.spread([own] * len(self.cells.counts))

    def spread(self, held: Sequence[Held]) -> None:
        """Send all shards to everyone, a segment of all channels at a time.

        Parameters
        ----------
        held : sequence of Held
            By part, the own shards of GPUs.
        """
        for parts in self._segments():
            landed = {part: self._cross(part, held[part]) for part in parts}
            for part in parts:
                self._within_boxes(part, landed[part], far=False)
            for part in () if self.halved else parts:
                self._keep(part)
            for part in parts:
                self._within_boxes(part, landed[part], far=True)

    def _cross(self, part: int, held: Held) -> Held:
        """Send shards to other boxes; return all that GPUs have then."""
        found = dict(held)
        for distance, rail in product(range(1, len(self.boxes)), self.rails):
            for index, rank in enumerate(rail):
                source, target = rank, rail[(index + distance) % len(rail)]
                if self.ring:
                    source, target = rail[index - distance + 1], rail[index - distance]
                found[target, rank] = self._pass(source, target, rank, part, found[source, rank])
        return found

    def _within_boxes(self, part: int, held: Held, *, far: bool) -> None:
        """Send shards within boxes: those of their own GPUs, or those that came from far."""
        shards: dict[int, list[int]] = {}
        for rank, shard in held:
            if (rank != shard) == far:
                shards.setdefault(rank, []).append(shard)
        for home, a, b in self._within(self.rails.places, self.rails.places):
            source, target = self.boxes[home][a], self.boxes[home][b]
            for shard in shards.get(source, ()):
                self._pass(source, target, shard, part, held[source, shard])

    def _keep(self, part: int) -> None:
        """Copy the own shard of each GPU to its output."""
        origin = Origin(0, Direction.OUT, -1)
        for rank, chunks in enumerate(self.cells.ranges[part]):
            where = rank, rank, chunks.start, len(chunks)
            slots = Slot("i", self.cells.begins[part]), Slot("o", chunks.start)
            self.transfers.append(Transfer(*where, False, (), origin, *slots))

    def _pass(self, source: int, target: int, shard: int, part: int, after: Ends) -> Ends:
        chunks = self.cells.ranges[part][shard]
        origin = Origin(2 if self.halved else 0, Direction.OUT, shard, self._channel(part))
        slots = self._kept(source, shard, part), Slot("o", chunks.start)
        return self._send(source, target, chunks, origin, *slots, after)

    def _kept(self, rank: int, shard: int, part: int) -> Slot:
        """Return where a GPU reads a shard: its own in the input, unless that is a sum."""
        if rank == shard and not self.halved:
            return Slot("i", self.cells.begins[part])
        return Slot("o", self.cells.ranges[part][shard].start)
