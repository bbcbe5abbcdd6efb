"""Runs the threadblocks of one rank, and finds out when no rank can go on.

Threadblocks are generators that yield what they wait for. One loop advances whichever can go on;
it is the only thread of the rank that computes. Rank 0 detects the end by counting messages
(Mattern's four counters, Distributed Computing 2, 1987): where two rounds of questions find all
ranks idle with equal numbers of messages sent and received, none is under way. Then all ranks are
done, or some are held back on purpose, or the program is stuck for good.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from colsynth.execute.mail import (
    BREATH,
    OWN,
    PROBE,
    REPLY,
    REPORT,
    STATE,
    VERDICT,
    Mail,
)
from colsynth.execute.transport import Message

OVER, RELEASE, STUCK, LATE = range(4)
_PATIENCE = 5e-4
"""Seconds without work after which a rank calls itself idle."""


class Fault(Exception):
    """A threadblock would do what no runtime survives, such as leaving a buffer."""


class Need(NamedTuple):
    """What a threadblock waits for."""

    ready: Callable[[], object]
    text: Callable[[], str]


GO = Need(lambda: True, lambda: "nothing")
"""Others may act here."""

Code = Generator[Need, None, None]


@dataclass(eq=False)
class Strand:
    """A sequence of steps with its place; threadblocks of plans have two.

    Parameters
    ----------
    threadblock : int or None
        None for a port.
    code : generator
    step : callable
        Returns what it is at.
    """

    threadblock: int | None
    code: Code
    step: Callable[[], str]
    need: Need = GO
    done: bool = False


class Program(Protocol):
    """What one rank executes."""

    def launch(self, number: int) -> list[Strand]:
        """Prepare a call, and return its strands."""

    def background(self) -> list[Strand]:
        """Return strands that live as long as the program."""

    def take(self, message: Message) -> None:
        """Accept a message of the program's own kinds."""

    def finish(self, number: int) -> None:
        """Note the end of a call."""

    def left(self) -> list[str]:
        """Return what was never taken by anybody."""


class State(NamedTuple):
    """How far a rank is."""

    sent: int
    received: int
    finished: int
    holds: int


@dataclass(frozen=True)
class Plan:
    """How to run a program.

    Parameters
    ----------
    launches : int
        Calls.
    held : int
        Strands of each rank that are held back in a call. They go on, a step at a time, when
        nothing else in any rank can: what they fail to wait for has then happened already, and
        what fails to wait for them, too.
    until : int
        First call in which none are held back; none are in the very first either.
    seed : int
        Of the order in which strands that can go on do so.
    timeout : float
        Seconds until rank 0 gives up.
    """

    launches: int
    held: int = 0
    until: int = 0
    seed: int = 0
    timeout: float = 60.0


class Session:
    """One program on one rank, from its first call to the verdict of rank 0."""

    def __init__(self, mail: Mail, ranks: int, program: Program, plan: Plan) -> None:
        self.mail, self.ranks, self.program, self.plan = mail, ranks, program, plan
        self.rng = random.Random(plan.seed * 1009 + mail.transport.rank)
        self.strands: list[Strand] = []
        self.ports = program.background()
        self.held: set[Strand] = set()
        self.number, self.token = -1, False
        self.verdict: int | None = None
        self.faults: list[str] = []
        self.told: State | None = None
        self.ends: list[float] = []
        self.states: dict[int, State] = {}
        self.asked: dict[int, State] = {}
        self.replies: dict[int, State | None] = {}
        self.wave = 0

    def run(self) -> bool:
        """Run all calls; return whether all ranks finished them."""
        end = time.perf_counter() + self.plan.timeout
        while not self._hear(0):
            if self._advance():
                continue
            if self._hear(BREATH if self.told == self._state() else _PATIENCE):
                break
            if not self._can_go_on() and self.told != self._state():
                self.told = self._state()
                self.mail.tell(0, STATE, *_packed(self.told))
            if self.mail.transport.rank == 0 and time.perf_counter() > end:
                self._announce(LATE)
                end += self.plan.timeout
        return self.verdict == OVER

    def _hear(self, seconds: float) -> bool:
        """Take all messages, waiting for the first; return whether there is a verdict."""
        for message in self.mail.arrivals(seconds):
            self._take(message)
        return self.verdict is not None

    def stuck(self) -> list[dict[str, object]]:
        """Return what every threadblock that is not done waits for."""
        rank = self.mail.transport.rank
        found: list[dict[str, object]] = [
            {"rank": rank, "threadblock": None, "step": None, "waits": f"nothing; stopped: {text}"}
            for text in self.faults
        ]
        return found + [
            {
                "rank": rank,
                "threadblock": strand.threadblock,
                "step": strand.step(),
                "call": self.number,
                "waits": strand.need.text(),
            }
            for strand in self.strands
            if not strand.done and strand.need is not GO
        ]

    # Work

    def _advance(self) -> bool:
        """Let every strand that can go on do so once; return whether any did."""
        if not self._begin():
            return False
        moved = False
        for strand in self.rng.sample(self.strands, len(self.strands)) + self.ports:
            if not strand.done and self._may(strand) and strand.need.ready():
                self.token = self.token and strand not in self.held
                self._step(strand)
                moved = True
        self.token = False
        return moved

    def _begin(self) -> bool:
        """Start the next call where the last one is done; return whether there is one."""
        if any(not strand.done for strand in self.strands):
            return True
        now = time.perf_counter()
        if 0 <= self.number < self.plan.launches:
            self.ends.append(now)
            self.program.finish(self.number)
        if self.number + 1 >= self.plan.launches:
            self.number, self.strands = self.plan.launches, []
            return bool(self.ports)
        self.number += 1
        self.strands = self.program.launch(self.number)
        everybody = self.strands + self.ports
        holding = 0 < self.number < self.plan.until
        count = min(self.plan.held, len(everybody)) if holding else 0
        apart = len(everybody) // max(1, count)  # two of one threadblock would go on together
        places = (self.number + k * apart for k in range(count))  # every strand gets its turn
        self.held = {everybody[place % len(everybody)] for place in places}
        return True

    def _may(self, strand: Strand) -> bool:
        return self.token or strand not in self.held

    def _step(self, strand: Strand) -> None:
        try:
            strand.need = next(strand.code)
        except StopIteration:
            strand.done = True
        except (Fault, LookupError, ValueError) as fault:
            text = f"nothing; stopped: {fault}"
            strand.need = Need(lambda: False, lambda: text)

    def _can_go_on(self) -> bool:
        """Whether something can be done now without others."""
        if self.number < self.plan.launches and all(s.done for s in self.strands):
            return True
        return any(
            not s.done and self._may(s) and s.need.ready() for s in self.strands + self.ports
        )

    def _state(self) -> State:
        holds = any(not s.done and s in self.held and s.need.ready() for s in self.held)
        finished = self.number >= self.plan.launches and not self.faults
        return State(self.mail.sent, self.mail.received, int(finished), int(holds))

    # Messages

    def _take(self, message: Message) -> None:
        _, kind, *fields = message.head
        if kind >= OWN:
            self.mail.received += 1
            try:
                self.program.take(message)
            except Fault as fault:
                self.faults.append(str(fault))
        elif kind == STATE:
            self.states[message.source] = _unpacked(fields)
            self._judge()
        elif kind == PROBE:
            busy = self._can_go_on()
            self.told = None if busy else self._state()
            answer = _packed(self._state())
            self.mail.tell(0, REPLY, *answer[:2], answer[2] | busy << 2 | fields[0] << 3)
        elif kind == REPLY and fields[2] >> 3 == self.wave:
            state = None if fields[2] >> 2 & 1 else _unpacked(fields)
            self.replies[message.source] = state
            if state is not None:  # what it tells later replaces this
                self.states[message.source] = state
            self._count()
        elif kind == REPORT:
            self.mail.reports[message.source] = message.data
        elif kind == VERDICT:
            self._obey(fields[0])

    def _judge(self) -> None:
        """Ask all ranks again where they all called themselves idle (rank 0)."""
        known = self.states.values()
        balanced = sum(s.sent for s in known) == sum(s.received for s in known)
        if len(known) == self.ranks and balanced and not self.replies:
            self.wave += 1
            self.asked, self.states, self.replies = self.states, {}, {-1: None}
            for rank in range(self.ranks):
                self.mail.tell(rank, PROBE, self.wave)

    def _count(self) -> None:
        """Decide what follows from the answers of all ranks (rank 0)."""
        if len(self.replies) <= self.ranks:
            return
        del self.replies[-1]
        answers, self.replies = self.replies, {}
        if answers != self.asked:
            self._judge()
            return
        states = self.asked.values()
        done = all(state.finished for state in states)
        holds = any(state.holds for state in states)
        self._announce(OVER if done else RELEASE if holds else STUCK)

    def _announce(self, verdict: int) -> None:
        self.states = {}
        for rank in range(self.ranks):
            self.mail.tell(rank, VERDICT, verdict)

    def _obey(self, verdict: int) -> None:
        if verdict == RELEASE:
            self.token, self.told = True, None
        else:
            self.verdict = verdict


def _packed(state: State) -> tuple[int, int, int]:
    return state.sent, state.received, state.finished | state.holds << 1


def _unpacked(fields: list[int]) -> State:
    sent, received, flags = fields
    return State(sent, received, flags & 1, flags >> 1 & 1)
