"""Values of threadblock allocation: threadblocks with their steps, and limits.

A placed threadblock is a rank, a channel, at most one peer to send to and one to receive from.
A connection (channel, source, target) belongs to exactly one threadblock at each end (contract
4.7). Every threadblock keeps its operations in the global order.
"""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.model import Threadblock

MANY = 2**31
"""Chunks of a threadblock where nothing limits them."""


@dataclass(slots=True)
class PlacedThreadblock:
    """A threadblock with the operations of each of its steps."""

    rank: int
    channel: int
    recv: int | None
    send: int | None
    steps: list[tuple[int, ...]]


def place_of(block: PlacedThreadblock | Threadblock) -> tuple[int, int, int]:
    """Return what threadblocks of a rank are sorted by: channel and peers, none first."""
    none = -1
    send, recv = (none if peer is None else peer for peer in (block.send, block.recv))
    return block.channel, send, recv


@dataclass(frozen=True, slots=True)
class Limits:
    """What threadblocks must respect; see `colsynth.runtimes.profile.Profile`.

    With `duplex`, one threadblock may serve two unrelated connections, one in each direction.
    That halves the threadblocks and is as free of deadlock as two, since both directions
    follow the global order; but only one of them moves at a time. A threadblock with peers
    takes no more than `chunks`.
    """

    threadblocks: int
    steps: int
    channels: int
    per_channel: int
    duplex: bool = False
    chunks: int = MANY
