"""How `build-rails` divides a message: channels, pieces of sums, and calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from colsynth.cost import model_of
from colsynth.model import Collective, Problem
from colsynth.runtimes.selection import LARGE, dividing, power_of_two
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.rails import Rails
from colsynth.synthesis.baselines.unequal import Cells, spread

_FINER = 8
"""Times as many pieces in rounds, where shards are unequal. A message still carries all of a shard.

On two DGX H100 with a GPU missing, an allreduce of 16 MiB takes 777 us with 8, 807 with 2.
"""

_CALLS = (1, 2, 4, 8, 16, 32)

_PIECES = 16
"""Pieces for calls alone: half as many add 2 % to an allgather of 1 GiB by rccl on two MI300X."""

_ENOUGH, _ENOUGH_RELAYED = 1.03, 1.12
"""Times the least time for which fewer calls are taken: sums wait for one after the other, and so
does who passes them on (the latter). An allgather in one box has neither, and takes the least.

A reduce-scatter of 16 MiB by rccl on two MI300X takes 109 us with two calls, and 118 with the four
that are 10 % faster from threadblock to threadblock.
"""


class Exchange(Enum):
    """How sums of boxes are exchanged: all to all, from box to box, or scattered and gathered."""

    DIRECT = "direct"
    RING = "ring"
    TWO_SHOT = "two-shot"


class Shards(Enum):
    """What the message is divided into: nothing, shards of rails, or shards of GPUs."""

    NONE = "none"
    RAIL = "rail"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Division:
    """What the numbers follow from.

    Parameters
    ----------
    problem : Problem
    rails : Rails
    target : Target
    shards : Shards
    segments : int
    strategy : str
        The options of `build-rails`.
    exchange : Exchange
        How GPUs of a rail exchange shards.
    radix : int
        Of two shots, the boxes that exchange shares at a time; 0: all.
    """

    problem: Problem
    rails: Rails
    target: Target
    shards: Shards
    segments: int
    strategy: str
    exchange: Exchange = Exchange.DIRECT
    radix: int = 0

    @property
    def ring(self) -> bool:
        """Whether shards go from box to box."""
        return self.exchange is Exchange.RING

    @property
    def _number(self) -> int:
        """Shards of a message."""
        ranks = self.problem.topology.size
        return {Shards.NONE: 1, Shards.RAIL: self.rails.count, Shards.GPU: ranks}[self.shards]

    @property
    def _turns(self) -> int:
        """What a GPU sends to another before it receives."""
        return self.rails.turns if self.shards is Shards.GPU else 1

    def cells(self, channels: int, pieces: int) -> Cells:
        """Return the pieces of each shard in each channel, once for each segment.

        By default, they divide messages; where equal shards do not, they differ by one.

        Parameters
        ----------
        channels, pieces : int
            As asked for; 0: as many as suit the runtime.
        """
        # Without shards, nothing is divided by rails.
        target = self.target
        if self.shards is not Shards.NONE:
            target = self.rails.aimed(self.problem, target)
        loose = target.loose_parts(self.problem, self._number)
        if target.profile.rounds:
            each, pieces = (channels or 1) * self.segments, pieces or 1
            most = _FINER * each * self._number * pieces
            return self._unequal(loose, most, each) or self._equal(each, pieces)
        most = max(1, self._most_channels())
        if loose:
            number = channels or most
            finest = number * self.segments * self._number * (pieces or self._finest(number))
            if found := self._unequal(loose, finest, number * self.segments):
                return found
        parts = target.parts(self.problem, self._number)
        if pieces:
            number = channels or dividing(parts // self.segments, most)
            return self._equal(number * self.segments, pieces)
        tried = (channels,) if channels else range(1, most + 1)
        ways = [counts for number in tried if (counts := self._about_equal(number, parts))]
        if not ways:  # no more pieces than parts
            return self._equal((channels or 1) * self.segments, 1)
        counts = min(ways, key=lambda each: Fraction(max(each), sum(each)))
        return Cells(tuple((count,) * self._number for count in counts))

    def _about_equal(self, channels: int, parts: int) -> list[int]:
        """Return the pieces of a shard by part, which differ by one; none where a part has none.

        They are in all as many as divide messages, whatever the number of channels.
        """
        each = channels * self.segments
        whole = dividing(parts, each * self._finest(channels))
        return [count for (count,) in spread(whole, each, 1)] if whole >= each else []

    def _finest(self, channels: int) -> int:
        """Return the most pieces of a part: one or more."""
        return max(1, self._most_pieces(channels))

    def _equal(self, each: int, pieces: int) -> Cells:
        return Cells(((pieces,) * self._number,) * each)

    def _unequal(self, loose: int, most: int, each: int) -> Cells | None:
        """Return unequal pieces of each shard by part, `most` in all; None where equal ones do."""
        shards = self._number
        whole = dividing(loose, most, shards) if loose else 0
        if whole < shards:
            return None
        return Cells(tuple(spread(whole, min(each, whole // shards), shards)))

    @property
    def _far_peers(self) -> int:
        """GPUs of other boxes that a GPU sends to."""
        others = len(self.rails.boxes) - 1
        return min(1, others) if self.ring else others

    @property
    def _ends(self) -> int:
        """Threadblocks with peers in a channel."""
        peers = self.rails.places - 1 + self._far_peers
        return peers * (1 if self.strategy == "paired" else 2)

    @property
    def _apart(self) -> int:
        """Threadblocks for sums alone that a channel has at least."""
        return 0 if self.strategy in ("paired", "shared") else min(2, len(self.rails.boxes))

    def _most_channels(self) -> int:
        profile = self.target.profile
        return min(profile.usable_threadblocks // (self._ends + self._apart), profile.max_channels)

    def _most_pieces(self, channels: int) -> int:
        profile, places = self.target.profile, self.rails.places
        blocks = profile.usable_threadblocks
        if not self._sums and not profile.xml:
            return 1  # more serve sums, or several calls, and plans have one
        if self.strategy == "paired":
            return min(places, profile.fifo_calls[self.target.protocol] // self._turns)
        if not self._sums:
            return _PIECES
        if self.strategy == "shared":
            far = self._far_peers if self.shards is Shards.GPU else 1
            due = max(self._turns, far) * self.segments  # parts that are added up at a time
            if not profile.xml:
                return blocks // (channels * 2 * self._turns)
            return self._fitting(channels, blocks // (channels * due))
        return min(places, (blocks - channels * self._ends) // (channels * self._apart))

    @property
    def _sums(self) -> bool:
        """Whether anything is added up."""
        return self.problem.collective is not Collective.ALLGATHER

    @property
    def _adders(self) -> int:
        """Sums of each piece in a box, at one GPU."""
        if not self._sums:
            return 0
        return len(self.rails.boxes) * self._turns if self.shards is Shards.GPU else 1

    @property
    def _chain(self) -> int:
        """Steps of a sum: a wait and an addition for each arrival."""
        return 2 * (self.rails.places + self._far_peers) - 1

    def _waits(self, pieces: int) -> int:
        """Return how many waits for pieces of sums a threadblock has that sends them on."""
        boxes = len(self.rails.boxes)
        if not self._sums or (boxes == 1 and self._halves == 1):
            return 0
        return pieces * (self.segments * (boxes - 1) if self.ring and boxes > 1 else 1)

    def _fitting(self, channels: int, most: int) -> int:
        """Return the number of pieces, or half of it and so on, for whose sums there are steps.

        A threadblock that sends sums on waits for each of their pieces, and may add some up.
        """
        profile, moves = self.target.profile, self._moves
        blocks = profile.usable_threadblocks
        far_alone = self._halves == 1 and self._turns == 1
        waiting = self._far_peers if far_alone else self._ends // 2
        each = (profile.max_steps - moves) // self._chain
        while most > 1:
            sums = channels * most * self.segments * self._adders
            apart = sums <= (blocks - channels * waiting) * each
            busiest = -(-sums // blocks) * self._chain + self._waits(most) + moves
            if apart or busiest <= profile.max_steps:
                break
            most //= 2
        return most

    @property
    def _halves(self) -> int:
        """Times that a GPU sends to each other one: an allreduce adds up, then spreads."""
        return 2 if self.problem.collective is Collective.ALLREDUCE else 1

    @property
    def _moves(self) -> int:
        """Steps in which a threadblock sends what it has for a peer of its box, or receives it."""
        return self._halves * len(self.rails.boxes) * self.segments

    def calls(self, cells: Cells) -> int:
        """Return in how many calls a part is sent: a power of two that fits the steps.

        One where a file is for messages of several sizes, as each call is a step for small ones
        too; a ring, which is for large ones, counts on 1 GiB. One with strategy ``paired``, whose
        threadblocks send all before they receive. Between boxes, several are for strategy
        ``shared`` with a shard for each GPU: with others, sums that wait for one call keep
        threadblocks from the next. An allgather has no sums.
        """
        profile, boxes = self.target.profile, len(self.rails.boxes)
        size = self.target.size or (LARGE if self.ring else None)
        suited = self.strategy != "paired"
        if boxes > 1 and self._sums:
            suited = (self.shards, self.strategy, self._turns) == (Shards.GPU, "shared", 1)
        if size is None or not profile.xml or not suited:
            return 1
        pieces = max(map(max, cells.counts))
        part = Fraction(size * pieces, cells.chunks)
        room = self._room(cells.room * self._adders, pieces)
        enough = _ENOUGH_RELAYED if boxes > 1 else _ENOUGH if self._sums else 1
        found = best_calls(part, pieces, self.target, relayed=boxes > 1, enough=enough)
        return min(found, power_of_two(room))

    def _room(self, sums: int, pieces: int) -> int:
        """Return in how many calls parts may be sent: one or more.

        There are steps for so many sums beside them, and lines of the file. In a ring, who sends
        to another box waits for all pieces of what it passes on; others are to add up.
        """
        profile, boxes = self.target.profile, len(self.rails.boxes)
        blocks = profile.usable_threadblocks
        left = profile.max_steps - self._chain * -(-sums // blocks)
        lines = profile.max_xml_nodes - 2 * blocks - self._chain * sums
        room = min(left // self._moves, lines // (self._moves * blocks))
        if self.ring and boxes > 1:
            waits = profile.max_steps - self._waits(pieces)
            room = min(room, waits // (self._halves * self.segments * (boxes - 1)))
        return max(1, room)


def best_calls(
    message: Fraction, chunks: int, target: Target, *, relayed: bool, enough: float
) -> int:
    """Return in how many calls a message takes about the least time between two threadblocks.

    It is a power of two. The receiver begins when the first slice of the first call is there, and
    each call is a step for both.

    Parameters
    ----------
    message : Fraction
        Bytes.
    chunks : int
        Chunks of the message. A step moves a tile of each of its chunks.
    target : Target
    relayed : bool
        Whether it goes on from there to others, which begin when a whole call is there.
    enough : float
        Times the least time for which fewer calls are taken.
    """
    model, protocol = model_of(target), target.protocol
    rate, step = model.rate[protocol] * 1e9, model.step[protocol] / 1e6
    slices, least = model.slices[protocol], model.least_slice[protocol]
    tile, size = target.profile.tile_bytes[protocol], float(message)

    def seconds(calls: int) -> float:
        call = min(size / calls, tile * max(1, chunks / calls))
        first = call if relayed else min(call, max(call / slices, least))
        return max(calls, size / tile) * step + (first + size) / rate

    longest = min(map(seconds, _CALLS)) * enough
    return next(calls for calls in _CALLS if seconds(calls) <= longest)
