"""A schedule as static rounds of point-to-point messages, with local work between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from colsynth.model.chunks import Slot
from colsynth.model.program import Header, ThreadblockProgram


@dataclass(frozen=True, slots=True)
class Message:
    """`count` adjacent chunks from `read` on `source` to `write` on `target`."""

    source: int
    target: int
    read: Slot
    write: Slot
    count: int


@dataclass(frozen=True, slots=True)
class LocalStep:
    """Copy `count` adjacent chunks within a rank, or add two runs of them.

    Parameters
    ----------
    rank : int
    read, write : Slot
    operand : Slot or None
        Where it is given, `write` becomes `operand` plus `read`; else a copy of `read`.
    count : int
    """

    rank: int
    read: Slot
    write: Slot
    operand: Slot | None
    count: int


@dataclass(frozen=True, slots=True)
class Round:
    """Messages that are all in flight at once, then local steps.

    Parameters
    ----------
    messages : tuple of Message
        All read what was there before the round. Both ends post the messages of a pair in this
        order.
    local : tuple of LocalStep
        Executed in this order on each rank, when its messages are complete.
    """

    messages: tuple[Message, ...]
    local: tuple[LocalStep, ...] = ()

    def ranks(self) -> Iterator[int]:
        """Yield the rank of every end of a message, and of every local step."""
        for message in self.messages:
            yield from (message.source, message.target)
        for step in self.local:
            yield step.rank


@dataclass(frozen=True, slots=True)
class RoundProgram:
    """A whole schedule file for all ranks.

    A rank begins a round when its own part of the round before is complete; it waits for no
    others.

    Parameters
    ----------
    header : Header
    scratch : tuple of int
        Chunks of scratch per rank.
    rounds : tuple of Round
    """

    header: Header
    scratch: tuple[int, ...]
    rounds: tuple[Round, ...]

    def headed(self, header: Header) -> RoundProgram:
        """Return the program with another header; the rounds are the same."""
        return replace(self, header=header)

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Source and target ranks of all messages."""
        return {(m.source, m.target) for found in self.rounds for m in found.messages}

    @property
    def messages(self) -> int:
        """Messages of all rounds."""
        return sum(len(found.messages) for found in self.rounds)

    @property
    def most_operations(self) -> int:
        """Most messages and local steps of a rank, both ends of a message counted."""
        count = Counter(rank for found in self.rounds for rank in found.ranks())
        return max(count.values(), default=0)


Program = ThreadblockProgram | RoundProgram
"""What a schedule file says."""
