"""Pass build-rails: Problem -> ChunkProgram of sums in boxes, then on rails between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import ChunkProgram, Collective, Ordering, Problem
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.selection import dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.rails_writer import Boxes, RailsWriter
from colsynth.synthesis.baselines.refusals import equal_boxes, require_collective, require_ways
from colsynth.synthesis.baselines.unequal import Cells, spread

_INSTANCES = "build-rails.instances"


def _instances(basis: Basis) -> Iterator[Proposal]:
    """Yield other numbers of channels; in rounds, more so that links are loaded more evenly."""
    for number in (1, 4, 16) if basis.profile.rounds else (0, 1, 2, 4):
        if number != basis.values[_INSTANCES]:
            yield ({_INSTANCES: number},)


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
        Channels, each with its own part of every shard. 0: as many as threadblocks suffice for;
        in rounds, one.
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
    choices: ClassVar[tuple[Choice, ...]] = (Choice("instances", propose=_instances),)

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
        pieces = self._pieces(value, boxes, target)
        cells = Cells(tuple(pieces))
        writer = RailsWriter(boxes, cells, profile.fuses)
        if scatters:
            for channel in range(len(pieces)):
                writer.scatter(channel)
        else:
            writer.add_channels()
        rooms = len(boxes) * (len(boxes[0]) + 1) if scatters else len(boxes[0]) + len(boxes)
        scratch = (rooms * cells.room,) * topology.size
        chunks = (len(boxes) if scatters else 1) * cells.chunks
        return ChunkProgram(
            value, chunks, tuple(writer.transfers), scratch=scratch, ordering=Ordering.FIXED
        )

    def _pieces(self, problem: Problem, boxes: Boxes, target: Target) -> list[tuple[int, ...]]:
        """Return the pieces of each place in each channel.

        By default, they divide messages; where equal shards do not, they differ by one.
        """
        blocks, places, count = target.profile.usable_threadblocks, len(boxes[0]), len(boxes)
        if target.profile.rounds:
            return [(self.pieces or 1,) * places] * (self.instances or 1)
        scatters = problem.collective is Collective.REDUCE_SCATTER
        parts = target.parts(problem, len(problem.topology.ranks) if scatters else places)
        shares = count if scatters else 1  # what a GPU sends to another of its box
        ends = (1 if self.strategy == "paired" else 2) * (places + count - 2)
        sums = 0 if self.strategy in ("paired", "shared") else min(2, count)
        loose = target.loose_parts(problem, places)
        room = blocks // (ends + sums)
        channels = self.instances or max(1, room if loose else dividing(parts, room))
        if self.strategy == "paired":
            most = min(places, target.profile.fifo_calls[target.protocol] // shares)
        elif self.strategy == "shared":  # sums of a phase for half of them: more take many steps
            most = blocks // (2 * channels * shares)
        else:
            most = min(places, (blocks - channels * ends) // (channels * sums))
        if loose:
            whole = dividing(loose, channels * places * (self.pieces or max(1, most)), places)
            if whole >= places:
                return spread(whole, min(channels, whole // places), places)
        pieces = self.pieces or max(1, dividing(parts // channels, max(0, most)))
        return [(pieces,) * places] * channels
