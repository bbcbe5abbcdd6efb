"""Pass build-rails: Problem -> ChunkProgram of sums or copies in boxes and on rails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.model import ChunkProgram, Collective, Ordering, Problem
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.rails import meets, rails_of, require_whole
from colsynth.synthesis.baselines.rails_allreduce import AllreduceWriter
from colsynth.synthesis.baselines.rails_gather import GatherWriter
from colsynth.synthesis.baselines.rails_halves import HalvesWriter
from colsynth.synthesis.baselines.rails_numbers import Division, Exchange, Shards
from colsynth.synthesis.baselines.rails_scatter import ScatterWriter
from colsynth.synthesis.baselines.rails_straight import StraightWriter
from colsynth.synthesis.baselines.rails_two_shot import TwoShotWriter
from colsynth.synthesis.baselines.rails_two_shot_numbers import two_shot
from colsynth.synthesis.baselines.rails_writer import RailsWriter
from colsynth.synthesis.baselines.refusals import require_collective, unfit

SERVED = (Collective.ALLREDUCE, Collective.REDUCE_SCATTER, Collective.ALLGATHER)

_NAMES = tuple(one.value for one in Exchange)

_INSTANCES, _SEGMENTS = "build-rails.instances", "build-rails.segments"


def _instances(basis: Basis) -> Iterator[Proposal]:
    """Yield other numbers of channels; in rounds, more so that links are loaded more evenly.

    Elsewhere as many as threadblocks suffice for are hardly ever slower than others.
    """
    elsewhere = (0, 1, 2, 4) if basis.thorough else ()
    for number in (1, 4, 16) if basis.profile.rounds else elsewhere:
        if number != basis.values[_INSTANCES]:
            yield ({_INSTANCES: number},)


def _segments(basis: Basis) -> Iterator[Proposal]:
    """Yield twice and half as many segments, where something can be done meanwhile.

    A reduce-scatter between boxes has own shards to send while sums are on their way. Otherwise,
    threadblocks have to do one thing each. An allgather has no sums.
    """
    now, sums = basis.values[_SEGMENTS], basis.problem.collective is not Collective.ALLGATHER
    apart = basis.values["build-rails.strategy"] == "spread" and not basis.profile.rounds
    if (apart and sums) or meets(basis.problem):
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

    In an allgather, every GPU sends its shard to those in its place of other boxes first. All GPUs
    then send all others of their box what they have: their own shard, and those that came.

    Pairs without a way through no third GPU take connections that pass others, as far as the
    runtime has them (`Profile.passes_on`). Where a NIC or a GPU is missing, GPUs without a partner
    in each box have no shard of an allreduce, and the others have more (`Rails`). An allgather has
    them refused.

    Parameters
    ----------
    instances : int
        Channels, each with its own part of every shard. 0: as many as there are, and
        threadblocks suffice for; in rounds, one.
    pieces : int
        Pieces in which a segment of a channel is added up. 0: as many as there are threadblocks
        for; in an allgather, as many as calls may need.
    segments : int
        Segments of a channel's part, one after the other: while one is on its way, another is
        added up. The message has to be divided by so many more.
    calls : int
        Messages in which a part is sent, at most one for each piece, so that threadblocks of its
        receiver begin with the first. 0: as many as suit a message of the size that the program is
        for, and the strategy; without a size, a ring counts on 1 GiB (`Division.calls`).
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
    shards : str
        Of an allreduce in two shots, who has a shard. ``"rail"``: the GPUs of a rail have one
        together. ``"gpu"``: each GPU has its own, so that it is a reduce-scatter and then an
        allgather: four hops in all instead of three, but some data changes boxes while other is
        added up or spread.
    exchange : str
        How GPUs of a rail exchange shards. ``"direct"``: all to all, in one hop.
        ``"ring"``: from box to box, and each adds its own sum, or keeps what it passes on. That is
        as many hops as there are other boxes, but one connection for each GPU, which leaves
        threadblocks to those within the box. Each GPU has a shard of its own then. ``"two-shot"``:
        of an allreduce, a rail scatters its sums and gathers those of all boxes: two hops for less
        data, in fewer channels than within boxes. The latter two are not for strategy
        ``"paired"``.
    radix : int
        Of two shots, how many boxes exchange shares at a time; 0: all. With fewer, boxes do so in
        several stages, one inside the other: more hops for fewer connections. 2 is halving and
        doubling. Stages are as many as the number of boxes has such factors.
    """

    instances: int = 0
    pieces: int = 0
    segments: int = 1
    calls: int = 0
    strategy: str = "paired"
    shots: int = 2
    shards: Literal["rail", "gpu"] = "rail"
    exchange: Literal["direct", "ring", "two-shot"] = "direct"
    radix: int = 0

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
        require_least("radix", self.radix, 0)
        if self.shards not in ("rail", "gpu"):
            phrase = f"shards: {self.shards!r}, but a shard is of a rail or of a gpu"
            raise _wrong(phrase, "valid: rail, gpu")
        if self.exchange not in _NAMES:
            phrase = f"exchange: {self.exchange!r}, but boxes exchange shards in one of three ways"
            raise _wrong(phrase, f"valid: {', '.join(_NAMES)}")
        if self.radix == 1:
            raise _wrong("radix: 1, but no box exchanges with itself alone", "valid: 0, 2 or more")
        if self.radix and self.exchange != "two-shot":
            phrase = f"radix: {self.radix}, but only two shots between boxes have stages"
            raise _wrong(phrase, "add exchange=two-shot")
        if self.exchange == "direct":
            return
        if self.shots == 1:
            phrase = f"exchange: {self.exchange!r}, but whole messages are exchanged directly"
            raise _wrong(phrase, "leave shots at 2")
        if self.strategy == "paired":
            phrase = (
                f"exchange: {self.exchange!r}, but paired threadblocks would wait for other boxes"
            )
            raise _wrong(phrase, "add strategy=shared to both passes")
        if self.exchange == "two-shot" and self.shards == "gpu":
            phrase = "exchange: 'two-shot', but it is the shards of rails that boxes share"
            raise _wrong(phrase, "leave shards at rail")

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the transfers and sums, with their slots.

        Raises
        ------
        InputError
            CS311: it neither sums up for all nor gathers. CS312: GPUs of a box are not joined, or
            boxes have no rail; an allreduce of more boxes than the runtime adds up in one go, but
            with a shard for each GPU; such shards, an allgather, a ring or one shot, without a rail
            for every GPU; one shot in one box; exchange=two-shot for other collectives.
        """
        require_collective("rails", value, SERVED)
        topology, shards = value.topology, self._shards(value)
        rails = rails_of("rails", topology, target.profile)
        exchange = Exchange(self.exchange)
        options = self.segments, self.strategy, exchange, self.radix
        division = Division(value, rails, target, shards, *options)
        _require_fit(division)
        writer = self._writer(division)
        writer.write()
        return ChunkProgram(
            value,
            writer.cells.chunks,
            tuple(writer.transfers),
            scratch=(writer.rooms * writer.cells.room,) * topology.size,
            ordering=Ordering.FIXED,
        )

    def _shards(self, problem: Problem) -> Shards:
        if problem.collective is not Collective.ALLREDUCE or self.exchange == "ring":
            return Shards.GPU
        return Shards.NONE if self.shots == 1 else Shards(self.shards)

    def _writer(self, division: Division) -> RailsWriter:
        """Return what writes the transfers down."""
        rails, target = division.rails, division.target
        profile = target.profile
        if division.exchange is Exchange.TWO_SHOT:
            numbers = two_shot(division, self.instances)
            cells, calls = numbers.cells(division, self.pieces), self.calls or 1
            where = rails, cells, numbers.near, profile, calls
            return TwoShotWriter(*where, stages=numbers.stages)
        cells = division.cells(self.instances, self.pieces)
        calls = self.calls or division.calls(cells)
        where = rails, cells, -(-len(cells.counts) // self.segments), profile, calls
        collective = division.problem.collective
        if collective is Collective.ALLGATHER:
            return GatherWriter(*where, ring=division.ring)
        if division.shards is Shards.NONE:
            return StraightWriter(*where, aside=target.in_place and target.sends_read_late)
        if division.shards is Shards.RAIL:
            return AllreduceWriter(*where)
        # A threadblock that only receives may well wait for the sum that it adds to.
        alone = self.strategy == "spread" and not division.ring
        adds = profile.fuses and len(rails.boxes) == 2 and alone
        scatters = collective is Collective.REDUCE_SCATTER
        writer = ScatterWriter if scatters else HalvesWriter
        return writer(*where, adds=adds, ring=division.ring)


def _wrong(phrase: str, advice: str) -> InputError:
    """Return the refusal of an option (CS210)."""
    return InputError(Diagnostic("CS210", phrase, help=advice))


def _require_fit(division: Division) -> None:
    """Refuse rails that a collective cannot use (CS312).

    One shot at each level needs several boxes. It needs every GPU on a rail, as shards of GPUs do.
    An allgather has such shards. A reduce-scatter needs it only in a ring. Without shards of GPUs,
    all to all, sums of boxes are added up in one go: several chains would add to what a GPU still
    sends. A plan has chains of any length. Only an allreduce has two shots.
    """
    problem, rails, shards = division.problem, division.rails, division.shards
    topology, profile = problem.topology, division.target.profile
    longest = profile.longest_chain
    twice = division.exchange is Exchange.TWO_SHOT
    if twice and problem.collective is not Collective.ALLREDUCE:
        advice = "leave exchange at direct"
        raise unfit("rails", topology, "only an allreduce has two shots", advice=advice)
    if twice or (problem.collective is Collective.REDUCE_SCATTER and not division.ring):
        return
    if shards is Shards.NONE and len(rails.boxes) == 1:
        advice = "use '-a allpairs'"
        raise unfit("rails", topology, "one shot at each level needs several boxes", advice=advice)
    if shards is not Shards.RAIL:
        require_whole("rails", topology, rails)
    if shards is not Shards.GPU and longest is not None and len(rails.boxes) - 1 > longest:
        reason = f"{profile.name} adds up the sums of {longest + 1} boxes at most in one go"
        raise unfit("rails", topology, reason)
