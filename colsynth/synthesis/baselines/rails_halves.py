"""The transfers and sums of `build-rails` for an allreduce with a shard for each GPU."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.model import Slot
from colsynth.synthesis.baselines.rails_gather import GatherWriter
from colsynth.synthesis.baselines.rails_scatter import ScatterWriter


@dataclass(slots=True)
class HalvesWriter(ScatterWriter):
    """Transfers of an allreduce so far: of a reduce-scatter, then of an allgather.

    Every GPU is on a rail. The sum of a shard is in the output of its GPU, which sends it on.
    """

    def write(self) -> None:
        """Write down an allreduce: all segments are added up before any is spread."""
        sums = self._add_all_up()
        own = [rank for rail in self.rails for rank in rail]
        held = [{(rank, rank): found[rank, rank][1] for rank in own} for found in sums]
        numbers = self.rails, self.cells, self.channels, self.profile, self.calls
        GatherWriter(*numbers, self.transfers, self.ring, halved=True).spread(held)

    def _own(self, rank: int, part: int) -> Slot:
        return Slot("o", self._shard(rank, part).start)
