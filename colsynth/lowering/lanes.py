"""Lanes: the threadblocks of every rank while they are being filled.

A lane is one threadblock: a rank, a channel, at most one peer to send to and one to
receive from. A connection (channel, source, target) belongs to exactly one lane at each
end (contract 4.7). Every lane keeps its operations in the global order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

MANY = 2**31
"""Chunks of a lane where nothing limits them."""


class Hop(NamedTuple):
    """One step of a chain, on one rank: fused when it both receives and sends.

    Parameters
    ----------
    rank : int
    recv, send : int or None
        Peers.
    ops : tuple of int
        Operations the step performs: one, or the two of a fused step.
    weight : int
        Steps it needs, nops for extra dependencies included.
    chunks : int
        What it moves.
    """

    rank: int
    recv: int | None
    send: int | None
    ops: tuple[int, ...]
    weight: int
    chunks: int = 1


@dataclass(slots=True)
class Lane:
    """A threadblock being filled."""

    rank: int
    channel: int
    recv: int | None
    send: int | None
    hops: list[Hop] = field(default_factory=list)
    load: int = 0
    chunks: int = 0
    copied: int = 0

    def add(self, hop: Hop) -> None:
        """Append a hop and take over its peers."""
        self.recv = self.recv if hop.recv is None else hop.recv
        self.send = self.send if hop.send is None else hop.send
        self.hops.append(hop)
        self.load += hop.weight
        if hop.recv is not None or hop.send is not None:
            self.chunks += hop.chunks


@dataclass(frozen=True, slots=True)
class Limits:
    """What lanes must respect; see `colsynth.runtimes.profile.Profile`.

    With `share`, one lane may serve two unrelated connections, one in each direction.
    That halves the threadblocks and is as free of deadlock as two lanes, since both
    directions follow the global order; but they take turns. A lane that moves something
    takes no more than `chunks`. With `paired`, the two have to be partners
    (`colsynth.lowering.paired`).
    """

    threadblocks: int
    steps: int
    channels: int
    per_channel: int
    share: bool = False
    chunks: int = MANY
    paired: bool = False


@dataclass(slots=True)
class Lanes:
    """All lanes of a program.

    Where `needs` says how many lanes each connection needs (by first channel, source and
    target, `colsynth.lowering.demand`), they share its chunks evenly; else as few as suffice
    are opened; `serving` tells the channels of each connection.

    Lanes are numbered in the order they were opened; `receiver` and `sender` find them by
    (rank, channel, peer), `holder` by the operation they perform.
    """

    limits: Limits
    needs: Mapping[tuple[int, int, int], int] | None = None
    lanes: list[Lane] = field(default_factory=list)
    receiver: dict[tuple[int, int, int], int] = field(default_factory=dict)
    sender: dict[tuple[int, int, int], int] = field(default_factory=dict)
    local: dict[int, list[int]] = field(default_factory=dict)
    spare: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    holder: dict[int, int] = field(default_factory=dict)
    on_rank: dict[int, int] = field(default_factory=dict)
    on_channel: dict[tuple[int, int], int] = field(default_factory=dict)
    serving: dict[tuple[int, int, int], set[int]] = field(default_factory=dict)

    def choose(self, chain: Sequence[Hop], channels: Sequence[int]) -> int | None:
        """Return the channel that takes a whole chain with the fewest new lanes.

        Where lanes share the chunks of connections evenly, it is the one with the least on
        the fullest of its lanes, among as many lanes per connection as it needs if possible.
        """
        if self.needs is not None:
            return self._least(chain, channels, self.needs)
        best: tuple[int, int] | None = None
        for channel in channels:
            new = self._new_lanes(chain, channel)
            if new is not None and (best is None or (new, channel) < best):
                best = new, channel
                if new == 0:
                    break
        return None if best is None else best[1]

    def _least(
        self,
        chain: Sequence[Hop],
        channels: Sequence[int],
        needs: Mapping[tuple[int, int, int], int],
    ) -> int | None:
        """Return the channel on which a chain finds the least chunks, None where it fits none."""
        if not channels:
            return None
        ways = [(channels[0], here.rank, there.rank) for here, there in pairwise(chain)]
        serving = [self.serving.get(way, set()) for way in ways]
        known = sorted(set().union(*serving))
        full = [len(have) >= needs[way] for way, have in zip(ways, serving, strict=True)]
        best: tuple[bool, int, int, int] | None = None
        for channel in (*known, *(other for other in channels if other not in known)):
            if channel not in known and all(full) and best is not None and not best[0]:
                break
            new = self._new_lanes(chain, channel)
            if new is None:
                continue
            more = any(
                done and channel not in have for done, have in zip(full, serving, strict=True)
            )
            key = more, self._peak(chain, channel), new, channel
            best = key if best is None else min(best, key)
            if channel not in known:
                break
        return None if best is None else best[-1]

    def _peak(self, chain: Sequence[Hop], channel: int) -> int:
        """Return the most chunks that a lane of a chain has before it is there."""
        found = (self._find(hop, channel) for hop in chain)
        return max(0 if number is None else self.lanes[number].chunks for number in found)

    def _new_lanes(self, chain: Sequence[Hop], channel: int) -> int | None:
        """Return how many lanes a chain would open on a channel, None where it cannot go."""
        new = 0
        for hop in chain:
            found = self._find(hop, channel)
            if found == -1:
                return None
            if found is None:
                new += 1
                if self.on_channel.get((hop.rank, channel), 0) >= self.limits.per_channel:
                    return None
                if self.on_rank.get(hop.rank, 0) >= self.limits.threadblocks:
                    return None
            elif not self._has_room(self.lanes[found], hop):
                return None
        return new

    def _has_room(self, lane: Lane, hop: Hop) -> bool:
        full = lane.chunks and lane.chunks + hop.chunks > self.limits.chunks
        return not full and lane.load + hop.weight <= self.limits.steps

    def _find(self, hop: Hop, channel: int) -> int | None:
        """Return the lane a hop must use, None for a new one, -1 where peers conflict."""
        receiver = sender = None
        if hop.recv is not None:
            receiver = self.receiver.get((hop.rank, channel, hop.recv))
        if hop.send is not None:
            sender = self.sender.get((hop.rank, channel, hop.send))
        if hop.recv is None or hop.send is None or receiver == sender:
            found = receiver if sender is None else sender
            return self._spare(hop, channel) if found is None else found
        if receiver is not None and sender is not None:
            return -1
        if receiver is not None:
            return receiver if self.lanes[receiver].send is None else -1
        return sender if sender is not None and self.lanes[sender].recv is None else -1

    def _spare(self, hop: Hop, channel: int) -> int | None:
        """Return a lane of the channel whose other direction is free, where lanes share."""
        if not self.limits.share:
            return None
        for number in self.spare.get((hop.rank, channel), ()):
            lane = self.lanes[number]
            taken = (hop.recv is not None and lane.recv is not None) or (
                hop.send is not None and lane.send is not None
            )
            if not taken and self._has_room(lane, hop):
                return number
        return None

    def put(self, chain: Sequence[Hop], channel: int, first: int = 0) -> None:
        """Add a chain that `choose` has placed on a channel."""
        for here, there in pairwise(chain):
            way = first, here.rank, there.rank
            self.serving.setdefault(way, set()).add(channel)
        for hop in chain:
            found = self._find(hop, channel)
            number = self._open(hop.rank, channel) if found is None else found
            self._add(hop, number)
            if hop.recv is not None:
                self.receiver[hop.rank, channel, hop.recv] = number
            if hop.send is not None:
                self.sender[hop.rank, channel, hop.send] = number

    def put_behind(self, hop: Hop, number: int) -> bool:
        """Add a local hop to a given lane; return whether it had room."""
        if self.lanes[number].load + hop.weight > self.limits.steps:
            return False
        self._add(hop, number)
        return True

    def put_local(self, hop: Hop, channel: int) -> None:
        """Add a local hop to a lane that has no peers: the one with least, if there is room.

        Where a limit of chunks spreads the work, a further lane is opened beyond it as long as
        there may be more.
        """
        lanes = sorted(self.local.setdefault(hop.rank, []), key=lambda n: self.lanes[n].copied)
        more = self.on_rank.get(hop.rank, 0) < self.limits.threadblocks
        for number in lanes:
            full = self.lanes[number].copied + hop.chunks > self.limits.chunks and more
            if not full and self.put_behind(hop, number):
                self.lanes[number].copied += hop.chunks
                return
        number = self._open(hop.rank, self._roomy(hop.rank, channel))
        self.local[hop.rank].append(number)
        self.lanes[number].copied += hop.chunks
        self._add(hop, number)

    def _roomy(self, rank: int, channel: int) -> int:
        """Return the first channel from the given one on that takes another lane of a rank."""
        for other in range(channel, self.limits.channels):
            if self.on_channel.get((rank, other), 0) < self.limits.per_channel:
                return other
        return channel

    def _add(self, hop: Hop, number: int) -> None:
        self.lanes[number].add(hop)
        for op in hop.ops:
            self.holder[op] = number

    def _open(self, rank: int, channel: int) -> int:
        self.on_rank[rank] = self.on_rank.get(rank, 0) + 1
        key = rank, channel
        self.on_channel[key] = self.on_channel.get(key, 0) + 1
        self.spare.setdefault(key, []).append(len(self.lanes))
        self.lanes.append(Lane(rank, channel, None, None))
        return len(self.lanes) - 1
