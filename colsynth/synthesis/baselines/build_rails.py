"""Pass build-rails: Problem -> ChunkProgram of sums in boxes, then on rails between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import ChunkProgram, Collective, Ordering, Problem, Topology
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import LARGE, dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.rails import Rails, meets, rails_of, require_whole
from colsynth.synthesis.baselines.rails_allreduce import AllreduceWriter
from colsynth.synthesis.baselines.rails_calls import best_calls
from colsynth.synthesis.baselines.rails_scatter import ScatterWriter
from colsynth.synthesis.baselines.rails_straight import StraightWriter
from colsynth.synthesis.baselines.rails_writer import RailsWriter
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.unequal import Cells, spread

_INSTANCES, _SEGMENTS = "build-rails.instances", "build-rails.segments"
_FINER = 8
"""Times as many pieces in rounds, where shards are unequal. A message still carries all of a shard.

On two DGX H100 with a GPU missing, an allreduce of 16 MiB takes 777 us with 8, 807 with 2.
"""


def _instances(basis: Basis) -> Iterator[Proposal]:
    """Yield other numbers of channels; in rounds, more so that links are loaded more evenly."""
    for number in (1, 4, 16) if basis.profile.rounds else (0, 1, 2, 4):
        if number != basis.values[_INSTANCES]:
            yield ({_INSTANCES: number},)


def _segments(basis: Basis) -> Iterator[Proposal]:
    """Yield twice and half as many segments, where something can be done meanwhile.

    A reduce-scatter between boxes has own shards to send while sums are on their way. Otherwise,
    threadblocks have to do one thing each.
    """
    now = basis.values[_SEGMENTS]
    apart = basis.values["build-rails.strategy"] == "spread" and not basis.profile.rounds
    if apart or meets(basis.problem):
        yield from (({_SEGMENTS: number},) for number in (2 * now, now // 2) if number)


@dataclass(frozen=True, slots=True)
class BuildRails:
    """Reduce shards among all pairs of a box, exchange the sums on rails, and spread them.

    Every GPU adds up its shard of what its box sends it. GPUs in the same place of their boxes
    then send each other these sums, all to all, so a message takes one hop between boxes instead
    of two. In a reduce-scatter, it adds up the shards of all GPUs in its place and sends each its
    own; the shards of other boxes come first, so that their sums are on their way while boxes add
    up their own. Arrivals land in scratch and are added in one go, in pieces for which threadblocks
    work side by side; where steps can add to what arrives, the first is added to the GPU's own on
    its way. With one box, it is two-shot all-pairs.

    Pairs without a way through no third GPU take connections that pass others, as far as the
    runtime has them (`Profile.passes_on`). Where a NIC or a GPU is missing, GPUs without a partner
    in each box have no shard of an allreduce, and the others have more (`Rails`).

    Parameters
    ----------
    instances : int
        Channels, each with its own part of every shard. 0: as many as there are, and
        threadblocks suffice for; in rounds, one.
    pieces : int
        Pieces in which a segment of a channel is added up. 0: as many as there are threadblocks
        for.
    segments : int
        Segments of a channel's part, one after the other: while one is on its way, another is
        added up. The message has to be divided by so many more.
    calls : int
        Messages in which a part is sent, so that threadblocks of its receiver begin with the first.
        0: as many as suit the message. Threadblocks that serve a peer in each direction send all
        before they receive, and take one.
    strategy : str
        The strategy of `assign-threadblocks` that channels and pieces are counted for. With
        ``"paired"``, a threadblock serves a peer in each direction, so there may be the most
        channels, and as many pieces as a FIFO holds calls: no send then waits for a receive.
        ``"paired"`` and ``"shared"`` have threadblocks with peers share the sums; any other
        leaves some for sums alone.
    shots : int
        Of an allreduce, the hops at each level. 2: shards are added up, and then spread. 1: every
        GPU adds up the whole message of its box, and GPUs in the same place exchange these sums:
        two hops in all instead of three, for more data.
    """

    instances: int = 0
    pieces: int = 0
    segments: int = 1
    calls: int = 0
    strategy: str = "paired"
    shots: int = 2

    name: ClassVar[str] = "build-rails"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("instances", propose=_instances),
        Choice("segments", propose=_segments),
    )

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 0)
        require_least("segments", self.segments, 1)
        require_least("pieces", self.pieces, 0)
        require_least("calls", self.calls, 0)
        require_least("shots", self.shots, 1, 2)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers and sums, with their slots.

        Raises
        ------
        InputError
            CS311: it sums up nothing for all. CS312: GPUs of a box are not joined, or boxes have no
            rail; an allreduce of more boxes than the runtime adds up in one go; one shot in one
            box, or without a rail for every GPU.
        """
        require_collective("rails", value, (Collective.ALLREDUCE, Collective.REDUCE_SCATTER))
        topology, profile = value.topology, target.profile
        rails = rails_of("rails", topology, profile)
        scatters = value.collective is Collective.REDUCE_SCATTER
        if not scatters:
            _require_one_go(topology, rails, profile)
        pieces = self._pieces(value, rails, target)
        cells = Cells(tuple(pieces))
        calls = self.calls or self._calls(value, cells, target)
        writer: RailsWriter
        where = rails, cells, -(-len(pieces) // self.segments), profile, calls
        if self._straight(value):
            _require_several(topology, rails)
            aside = target.in_place and target.sends_read_late
            writer = StraightWriter(*where, aside=aside)
        elif scatters:
            # A threadblock that only receives may well wait for the sum that it adds to.
            adds = profile.fuses and len(rails.boxes) == 2 and self.strategy == "spread"
            writer = ScatterWriter(*where, adds=adds)
        else:
            writer = AllreduceWriter(*where)
        writer.write()
        scratch = (writer.rooms * cells.room,) * topology.size
        chunks = _chunks(value, cells)
        return ChunkProgram(
            value, chunks, tuple(writer.transfers), scratch=scratch, ordering=Ordering.FIXED
        )

    def _straight(self, problem: Problem) -> bool:
        return self.shots == 1 and problem.collective is Collective.ALLREDUCE

    def _calls(self, problem: Problem, cells: Cells, target: Target) -> int:
        """Return in how many calls a part is sent by default."""
        between = len(problem.topology.ranks_by_box) > 1
        scatters = problem.collective is Collective.REDUCE_SCATTER
        suited = scatters and self.strategy == "shared" if between else self.strategy != "paired"
        if not suited or not target.profile.xml:
            return 1
        size = LARGE if target.size is None else target.size
        most = max(map(max, cells.counts))
        return best_calls(Fraction(size * most, _chunks(problem, cells)), target)

    def _pieces(self, problem: Problem, rails: Rails, target: Target) -> list[tuple[int, ...]]:
        """Return the pieces of each rail in each channel, once for each segment.

        By default, they divide messages; where equal shards do not, they differ by one.
        """
        straight = self._straight(problem)  # nothing is divided by rails
        target = target if straight else rails.aimed(problem, target)
        shards, count = 1 if straight else rails.count, len(rails.boxes)
        loose = target.loose_parts(problem, shards)
        if target.profile.rounds:
            channels, pieces = self.instances or 1, self.pieces or 1
            each = channels * self.segments
            most = _FINER * each * shards * pieces
            return _spread(loose, most, each, shards) or [(pieces,) * shards] * each
        blocks = target.profile.usable_threadblocks
        scatters = problem.collective is Collective.REDUCE_SCATTER
        parts = target.parts(problem, len(problem.topology.ranks) if scatters else shards)
        shares = rails.turns if scatters else 1  # what a GPU sends to another before it receives
        ends = (1 if self.strategy == "paired" else 2) * (rails.places + count - 2)
        sums = 0 if self.strategy in ("paired", "shared") else min(2, count)
        room = min(blocks // (ends + sums), target.profile.max_channels)
        channels = self.instances or max(
            1, room if loose else dividing(parts // self.segments, room)
        )
        if self.strategy == "paired":
            most = min(rails.places, target.profile.fifo_calls[target.protocol] // shares)
        elif self.strategy == "shared":
            due = max(shares, count - 1) if scatters else 1  # sums at a time, of a piece
            due = due * self.segments if target.profile.xml else 2 * shares
            most = blocks // (channels * due)
        else:
            most = min(rails.places, (blocks - channels * ends) // (channels * sums))
        each = channels * self.segments
        unequal = _spread(loose, each * shards * (self.pieces or max(1, most)), each, shards)
        if unequal:
            return unequal
        pieces = self.pieces or max(1, dividing(parts // each, max(0, most)))
        return [(pieces,) * shards] * each


def _chunks(problem: Problem, cells: Cells) -> int:
    """Return the chunks of a message."""
    scatters = problem.collective is Collective.REDUCE_SCATTER
    return problem.topology.size * cells.room if scatters else cells.chunks


def _require_one_go(topology: Topology, rails: Rails, profile: Profile) -> None:
    """Refuse more boxes than are added up in one go (CS312).

    Several chains would add to what a GPU still sends. A plan has chains of any length.
    """
    longest = profile.longest_chain
    if longest is not None and len(rails.boxes) - 1 > longest:
        reason = f"{profile.name} adds up the sums of {longest + 1} boxes at most in one go"
        raise unfit("rails", topology, reason)


def _require_several(topology: Topology, rails: Rails) -> None:
    """Refuse one shot at each level of one box, or of GPUs that are on no rail (CS312)."""
    if len(rails.boxes) == 1:
        advice = "use '-a allpairs'"
        raise unfit("rails", topology, "one shot at each level needs several boxes", advice=advice)
    require_whole("rails", topology, rails)


def _spread(loose: int, most: int, parts: int, shards: int) -> list[tuple[int, ...]]:
    """Return unequal pieces of each shard by part, `most` in all; none where equal ones do."""
    whole = dividing(loose, most, shards) if loose else 0
    return spread(whole, min(parts, whole // shards), shards) if whole >= shards else []
