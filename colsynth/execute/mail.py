"""The messages of a rank: those of its program, and those that keep the ranks together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from colsynth.execute.transport import Message, Transport

if TYPE_CHECKING:
    from colsynth.execute.transport import Bytes

STATE, PROBE, REPLY, VERDICT, REPORT, OWN = range(6)
"""Kinds of messages; programs number theirs from `OWN` on."""

BREATH = 0.05
"""Seconds that an idle rank waits for a message before it looks at the clock."""


class Mail:
    """Messages of one rank, session by session.

    Parameters
    ----------
    transport : Transport
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.session = 0
        self._early: deque[Message] = deque()
        self.sent = self.received = 0
        self.reports: dict[int, Bytes] = {}

    def begin(self) -> None:
        """Start a session; all its ranks do."""
        self.session += 1
        self.sent = self.received = 0
        self.reports = {}

    def send(self, target: int, kind: int, *fields: int, data: Bytes | None = None) -> None:
        """Send a message of a program."""
        self.sent += 1
        first, second, third = (*fields, 0, 0, 0)[:3]
        self.transport.send(target, (self.session, kind, first, second, third), data)

    def tell(self, target: int, kind: int, *fields: int, data: Bytes | None = None) -> None:
        """Send a message that does not count as work."""
        self.send(target, kind, *fields, data=data)
        self.sent -= 1

    def arrivals(self, seconds: float) -> Iterator[Message]:
        """Yield what has arrived for this session; wait for the first."""
        early = [self._early.popleft() for _ in range(len(self._early))]
        self._early.extend(m for m in early if m.head[0] > self.session)
        yield from (m for m in early if m.head[0] == self.session)
        message = self.transport.receive(seconds)
        while message is not None:
            if message.head[0] > self.session:
                self._early.append(message)
            elif message.head[0] == self.session:
                yield message
            message = self.transport.receive(0)

    def gather(self, ranks: int, report: Bytes) -> list[Bytes]:
        """Bring a report of every rank to rank 0, which returns them; others return none."""
        self.tell(0, REPORT, data=report)
        if self.transport.rank != 0:
            return []
        while len(self.reports) < ranks:
            for message in self.arrivals(BREATH):
                if message.head[1] == REPORT:
                    self.reports[message.source] = message.data
        return [self.reports[rank] for rank in range(ranks)]
