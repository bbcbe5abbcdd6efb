"""The transfers and sums of `build-rails` for an allreduce with a shard for each GPU."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_scatter import ScatterWriter, Sums
from colsynth.synthesis.baselines.rails_writer import Ends


@dataclass(slots=True)
class HalvesWriter(ScatterWriter):
    """Transfers of an allreduce so far: of a reduce-scatter, then of an allgather.

    Every GPU is on a rail. The sum of a shard is in the output of its GPU, which sends it to the
    GPUs in its place of other boxes first. These spread it in their boxes, as the GPU itself does.
    """

    def write(self) -> None:
        """Write down an allreduce: all segments are added up before any is spread."""
        sums = self._scatter()
        segments = range(0, len(sums), self.channels)
        for parts in (range(len(sums))[first:][: self.channels] for first in segments):
            landed = {part: self._cross(part, sums[part]) for part in parts}
            for far, part in product((False, True), parts):
                self._spread(part, landed[part], far=far)

    def _shard(self, rank: int, part: int) -> range:
        return self.cells.ranges[part][rank]

    def _own(self, rank: int, part: int) -> Slot:
        return Slot("o", self._shard(rank, part).start)

    def _cross(self, part: int, sums: Sums) -> dict[tuple[int, int], Ends]:
        """Send shards to other boxes; return by which steps GPUs have them, by GPU and shard."""
        found = {(rank, rank): sums[rank, rank][1] for rail in self.rails for rank in rail}
        for distance, rail in product(range(1, len(self.boxes)), self.rails):
            for index, rank in enumerate(rail):
                target = rail[(index + distance) % len(rail)]
                found[target, rank] = self._pass(rank, target, rank, part, found[rank, rank])
        return found

    def _spread(self, part: int, landed: dict[tuple[int, int], Ends], *, far: bool) -> None:
        """Send shards within boxes: those of their own GPUs, or those that came from far."""
        held: dict[int, list[int]] = {}
        for rank, shard in landed:
            if (rank != shard) == far:
                held.setdefault(rank, []).append(shard)
        for home, a, b in self._within(self.rails.places, self.rails.places):
            source, target = self.boxes[home][a], self.boxes[home][b]
            for shard in held.get(source, ()):
                self._pass(source, target, shard, part, landed[source, shard])

    def _pass(self, source: int, target: int, shard: int, part: int, after: Ends) -> Ends:
        chunks, slot = self._shard(shard, part), self._own(shard, part)
        origin = Origin(2, Direction.OUT, shard, self._channel(part))
        return self._send(source, target, chunks, origin, slot, slot, after)
