"""Executes the threadblocks of an MSCCL++ plan as its handlers do (contract 4 to 8).

Every operation is run by all threads of a threadblock, and only ``nop`` lets them meet. Thread k
serves entry k of a list of channels; all others move data only. So a threadblock is two strands:
one speaks (signals, waits, semaphores, ports), one moves. Whatever the file does not order between
them may happen in either order here, too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.execute.addresses import BUFFERS, Addresses, Turn
from colsynth.execute.loop import GO, Code, Fault, Need, Strand
from colsynth.execute.mail import OWN
from colsynth.execute.moves import FIRST_PACKET, FIRST_SENT, Moves, pack
from colsynth.execute.team import Team, listed
from colsynth.runtimes.plans.form import Op, Plan

if TYPE_CHECKING:
    from colsynth.execute.definition import Call, Data
    from colsynth.execute.threadblocks import Send
    from colsynth.execute.transport import Bytes, Message
    from colsynth.runtimes.profile import Profile

_PUT, _PACKETS, _SIGNAL, _GET, _GOT = range(OWN, OWN + 5)
_KINDS = ("memory", "port")
_SPOKEN = frozenset({"signal", "rlxsignal", "wait", "rlxwait", "sem_acquire", "sem_release"})
_PUTS = frozenset({"put", "pws", "pwsf", "ppkt", "rppkt"})
KNOWN = (
    _SPOKEN
    | _PUTS
    | {*FIRST_PACKET, *FIRST_SENT}
    | {"nop", "barrier", "copy", "re", "res", "rre", "rres", "get", "flush", "pipeline"}
    | {"glres", "gstore"}
)
"""Operations that are executed here."""


class PlanProgram:
    """The program of one rank.

    Parameters
    ----------
    plan : Plan
    profile : Profile
    call : Call
    send : callable
        Takes target, kind, fields and data.
    """

    def __init__(self, plan: Plan, profile: Profile, call: Call, send: Send) -> None:
        self.plan, self.call, self.send = plan, call, send
        self.rank, self.gpu = call.rank, plan.gpus[call.rank]
        self.flushes = bool(profile.plans["flushes"])
        self.where = Addresses(plan, call)
        self.number = 0
        scratch = np.zeros(2 * self.where.half + 16, np.uint8)
        self.bases = [_root(call.given), _root(call.taken), scratch]
        """Allocations of input, output and scratch."""
        self.shift = [_offset(call.given), _offset(call.taken), 0]
        ends = [self._ends(rank) for rank in range(len(plan.gpus))]
        self.partner = {
            (kind, number): (peer, ends[peer][kind].get((self.rank, place), -1))
            for kind in _KINDS
            for (peer, place), number in ends[self.rank][kind].items()
        }
        """By type and number of a channel, the peer and the number that it has there."""
        self.signals: dict[tuple[str, int], int] = defaultdict(int)
        self.semaphores = [one.init_value for one in self.gpu.semaphores]
        self.barriers: dict[int, int] = defaultdict(int)
        self.lanes: dict[int, deque[Callable[[], None]]] = defaultdict(deque)
        self.posted: dict[int, int] = defaultdict(int)
        self.moved: dict[int, int] = defaultdict(int)
        self.got: dict[int, Bytes] = {}
        self.asked = 0
        self.moves = Moves(self)

    def _ends(self, rank: int) -> dict[str, dict[tuple[int, int], int]]:
        """Return the channels of a rank: by type, peer and place among those to it."""
        found: dict[str, dict[tuple[int, int], int]] = {kind: {} for kind in _KINDS}
        for kind, ends in found.items():
            lists = [
                c.connected_to for c in self.plan.gpus[rank].channels if c.channel_type == kind
            ]
            count: dict[int, int] = defaultdict(int)
            for number, peer in enumerate(peer for peers in lists for peer in peers):
                ends[peer, count[peer]] = number
                count[peer] += 1
        return found

    # What the loop calls

    def background(self) -> list[Strand]:
        """Return a strand for every port channel: the proxy that moves its data later."""
        numbers = [number for kind, number in self.partner if kind == "port"]
        return [
            Strand(None, self._lane(number), partial(str, f"port channel {number}"))
            for number in numbers
        ]

    def launch(self, number: int) -> list[Strand]:
        """Return two strands for every threadblock."""
        self.number = number
        strands = []
        for block in self.gpu.threadblocks:
            team = Team(block, listed(block.channels), listed(block.remote_buffer_refs))
            for name, code in (("speaks", self._speak), ("moves", self._move)):
                place = partial(team.place, name)
                strands.append(Strand(block.id, code(team, name), place))
        return strands

    def finish(self, number: int) -> None:
        """Do nothing: counters and scratch live on."""

    def left(self) -> list[str]:
        """Return signals that nobody waited for, and semaphores out of balance."""
        signals = [
            f"{count} signals on {kind} channel {number} were not waited for"
            for (kind, number), count in sorted(self.signals.items())
            if count
        ]
        pairs = zip(self.semaphores, self.gpu.semaphores, strict=True)
        return signals + [
            f"semaphore {number} ends at {value}; it began at {one.init_value}"
            for number, (value, one) in enumerate(pairs)
            if value != one.init_value
        ]

    def take(self, message: Message) -> None:
        """Accept what others write, signal, or ask for."""
        _, kind, first, second, third = message.head
        if kind == _SIGNAL:
            self.signals[_KINDS[first], second] += 1
        elif kind == _GOT:
            self.got[first] = message.data
        elif kind == _PACKETS:
            pack(self.region(2, first, 2 * message.data.size), message.data, second)
        elif kind == _PUT:
            self.region(first, second, message.data.size)[:] = message.data
        else:
            buffer, length = third % 4, third // 4
            data = self.region(buffer, second, length)
            self.send(message.source, _GOT, first, data=data)

    def region(self, buffer: int, first: int, size: int) -> Bytes:
        """Return bytes of an allocation."""
        base = self.bases[buffer]
        if first < 0 or first + size > base.size:
            text = f"bytes {first} to {first + size} of buffer {BUFFERS[buffer]}"
            raise Fault(f"{text}, which has {base.size}")
        return base[first : first + size]

    # Strands

    def _ops(self, team: Team, name: str) -> Iterator[tuple[Op, Turn | None]]:
        for number, op in enumerate(team.block.ops):
            for turn in self.where.turns(op):
                for inner in (op,) if turn is None else op.ops:
                    team.at[name] = f"operation {number} ({inner.name})"
                    if turn is not None:
                        team.at[name] += f", iteration {turn.number}"
                    yield inner, turn

    def meet(self, team: Team) -> Need:
        """Return the need of both strands of a threadblock to come to the same place."""
        mine = team.round
        team.here += 1
        if team.here == 2:
            team.here, team.round = 0, mine + 1
        return Need(lambda: team.round > mine, lambda: "the other threads at a nop")

    def _speak(self, team: Team, name: str) -> Code:
        for op, turn in self._ops(team, name):
            if op.name == "nop":
                yield self.meet(team)
            elif op.name == "barrier":
                yield self.meet(team)
                yield self._barrier(op)
                yield self.meet(team)
            elif op.name in _SPOKEN:
                yield from self._count(team, op)
            elif op.name == "flush":
                for number in self._channels(team, op)[: len(op.dst_buff)]:
                    yield self._flushed(number)
            elif op.channel_type == "port" and op.name in _PUTS:
                if op.name == "rppkt":
                    yield self.meet(team)  # when the packets are there
                yield from self._post(team, op, turn)

    def _move(self, team: Team, name: str) -> Code:
        for op, turn in self._ops(team, name):
            if op.name == "nop":
                yield self.meet(team)
            elif op.name == "barrier":
                yield self.meet(team)
                yield self.meet(team)
            elif op.name in FIRST_PACKET or op.name in FIRST_SENT:
                yield from self.moves.packets(team, op, turn)
            elif op.name in ("glres", "gstore"):
                yield from self.moves.multicast(team, op, turn)
            elif op.src_buff and not (op.channel_type == "port" and op.name in _PUTS):
                yield from self.moves.copy(team, op, turn)

    # Counters

    def _channels(self, team: Team, op: Op) -> list[int]:
        ids = team.channels[op.channel_type or "memory"]
        return [ids[k] for k in op.channel_ids]

    def _count(self, team: Team, op: Op) -> Code:
        if op.name.startswith("sem"):
            for number in op.semaphore_ids:
                if op.name == "sem_acquire":
                    yield self._positive(self.semaphores, number, f"semaphore {number}")
                self.semaphores[number] += -1 if op.name == "sem_acquire" else 1
            return
        kind = op.channel_type or "memory"
        for number in self._channels(team, op):
            if op.name.endswith("wait"):
                peer = self.partner[kind, number][0]
                what = f"a signal of rank {peer} on {kind} channel {number}"
                yield self._positive(self.signals, (kind, number), what)
                self.signals[kind, number] -= 1
            elif kind == "port":
                self._enqueue(number, partial(self.signal, kind, number))
            else:
                self.signal(kind, number)

    def _positive(self, counters: Any, key: Any, what: str) -> Need:
        return Need(lambda: counters[key] > 0, lambda: what)

    def signal(self, kind: str, number: int) -> None:
        """Raise the counter at the other end of a channel."""
        peer, there = self.partner[kind, number]
        self.send(peer, _SIGNAL, _KINDS.index(kind), there)

    def _barrier(self, op: Op) -> Need:
        number, size = op.barrier_id or 0, max(1, op.num_threadblocks or 1)
        self.barriers[number] += 1
        wanted = -(-self.barriers[number] // size) * size
        text = f"barrier {number} of {size} threadblocks"
        return Need(lambda: self.barriers[number] >= wanted, lambda: text)

    # Ports

    def _post(self, team: Team, op: Op, turn: Turn | None) -> Code:
        packets = op.name in ("ppkt", "rppkt")
        for k, number in enumerate(self._channels(team, op)):
            source = op.src_buff[0 if op.name == "rppkt" else k]
            given = self.moves.local(op, source, turn, packets=packets)
            put = self.moves.remote(team, op, op.dst_buff[k], turn, packets=packets)
            self._enqueue(number, partial(self.put, *put, given))
            if op.name in ("pws", "pwsf"):
                self._enqueue(number, partial(self.signal, "port", number))
            if op.name == "pwsf" and self.flushes:
                yield self._flushed(number)
            yield GO

    def put(self, peer: int, buffer: int, first: int, data: Bytes) -> None:
        """Write into a buffer of a rank; a switch stores at the one that writes, too.

        The own buffer gets it at once: its threadblocks are told by semaphores, no message.
        """
        if peer == self.rank:
            self.region(buffer, first, data.size)[:] = data
        else:
            self.send(peer, _PUT, buffer, first, data=data)

    def put_packets(self, peer: int, first: int, data: Bytes) -> None:
        """Write packets into the scratch of a peer."""
        self.send(peer, _PACKETS, first, self.number + 1, data=data)

    def get(self, peer: int, buffer: int, first: int, length: int) -> int:
        """Ask for bytes of a peer; return the key under which they arrive in `got`."""
        self.asked += 1
        self.send(peer, _GET, self.asked, first, buffer + 4 * length)
        return self.asked

    def _enqueue(self, number: int, work: Callable[[], None]) -> None:
        self.posted[number] += 1
        self.lanes[number].append(work)

    def _flushed(self, number: int) -> Need:
        wanted, text = self.posted[number], f"port channel {number} to have moved its data"
        return Need(lambda: self.moved[number] >= wanted, lambda: text)

    def _lane(self, number: int) -> Code:
        queue = self.lanes[number]
        while True:
            yield Need(lambda: queue, lambda: "nothing to move")
            queue.popleft()()
            self.moved[number] += 1


def _root(data: Data) -> Bytes:
    """Return the bytes of the allocation that an array lies in."""
    return (data if data.base is None else data.base).view(np.uint8)


def _offset(data: Data) -> int:
    """Return where in its allocation an array begins, in bytes."""
    base = data if data.base is None else data.base
    return int(data.__array_interface__["data"][0] - base.__array_interface__["data"][0])
