"""Executes the threadblocks of an XML file as its runtime does (contract 4).

A connection is a FIFO of a few calls: a sender stops when so many of its messages were not taken
by the receiver's step. Messages are cut into calls and tiles as at the real message size.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from colsynth.execute.loop import GO, Code, Fault, Need, Strand
from colsynth.execute.mail import OWN

if TYPE_CHECKING:
    from colsynth.execute.definition import Call, Data
    from colsynth.execute.transport import Message
    from colsynth.model import Slot, Step, Threadblock, ThreadblockProgram, Wait
    from colsynth.runtimes.profile import Profile

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
_READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
_WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
_DATA, _TAKEN = OWN, OWN + 1
_MOST_CHUNKS = 71
"""Chunks of a call at most (contract 4.4)."""

Send = Callable[..., None]
Link = tuple[int, int]
"""Peer and channel."""


@dataclass
class _Place:
    """Where a threadblock is."""

    tile: int = 0
    ordinal: int = 0
    op: str = ""

    def __str__(self) -> str:
        return f"step {self.ordinal} ({self.op}), tile {self.tile}"


@dataclass
class XmlProgram:
    """The program of one rank.

    Parameters
    ----------
    program : ThreadblockProgram
    profile : Profile
        Of the runtime that executes it.
    call : Call
    send : callable
        Takes target, kind, fields and data.
    tile : int or None
        Bytes of a chunk that a pass moves, None for those of the runtime.
    """

    program: ThreadblockProgram
    profile: Profile
    call: Call
    send: Send
    tile: int | None = None
    inbox: dict[tuple[int, int], deque[Data]] = field(default_factory=lambda: defaultdict(deque))
    untaken: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    flag: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        header, call = self.program.header, self.call
        self.gpu = self.program.gpus[call.rank]
        # Chunks divide what the runtime counts: of some collectives bytes (contract 1.4).
        in_bytes = header.collective in self.profile.counts_bytes
        self.dtype = np.dtype(np.uint8) if in_bytes else call.dtype
        width = self.dtype.itemsize
        self.chunk = call.elements * call.dtype.itemsize // width // header.chunks
        most = self.tile or self.profile.tile_bytes[header.protocol]
        self.span = max(1, most // width)
        self.tiles = max(1, -(-self.chunk // self.span))
        whole = max(1, self.chunk * width)
        self.group = min(max(1, most // whole), _MOST_CHUNKS) if self.tiles == 1 else 1
        self.depth = self.profile.fifo_calls[header.protocol]
        scratch = np.zeros(self.gpu.scratch_chunks * self.chunk, self.dtype)
        given, taken = call.given.view(self.dtype), call.taken.view(self.dtype)
        self.buffers = {"i": given, "o": taken, "s": scratch}

    def background(self) -> list[Strand]:
        """Return nothing: connections need no work of their own."""
        return []

    def launch(self, number: int) -> list[Strand]:
        """Return the threadblocks, at their beginning."""
        self.flag = {}
        strands = []
        for block in self.gpu.threadblocks:
            place = _Place()
            strands.append(Strand(block.id, self._block(block, place), partial(str, place)))
        return strands

    def finish(self, number: int) -> None:
        """Do nothing: scratch and FIFOs stay as they are."""

    def take(self, message: Message) -> None:
        """Accept data, or the word that some were taken."""
        _, kind, channel, *_ = message.head
        if kind == _DATA:
            data = message.data.view(self.dtype)
            self.inbox[message.source, channel].append(data)
        else:
            self.untaken[message.source, channel] -= 1

    def left(self) -> list[str]:
        """Return the messages that no step received."""
        return [
            f"{len(queue)} messages of rank {source} on channel {channel} were never received"
            for (source, channel), queue in sorted(self.inbox.items())
            if queue
        ]

    def _block(self, block: Threadblock, place: _Place) -> Code:
        for place.tile in range(self.tiles):
            waits: tuple[Wait, ...] = ()
            for ordinal, step in enumerate(block.steps):
                waits += step.waits
                if step.op == "nop":
                    continue
                place.ordinal, place.op = ordinal, step.op
                for wait in waits:
                    yield self._after(wait, place.tile)
                waits = ()
                yield from self._step(block, step, place.tile)
                if step.signals:
                    self.flag[block.id] = (place.tile, ordinal)

    def _after(self, wait: Wait, tile: int) -> Need:
        block, ordinal = wait
        return Need(
            lambda: self.flag.get(block, (-1, -1)) >= (tile, ordinal),
            lambda: f"step {ordinal} of threadblock {block}",
        )

    def _step(self, block: Threadblock, step: Step, tile: int) -> Code:
        into = _link(block.recv, block.channel) if step.op in RECEIVES else None
        out = _link(block.send, block.channel) if step.op in SENDS else None
        for first in range(0, step.count, self.group):
            count = min(self.group, step.count - first)
            yield self._room(into, out)
            value = self._taken(into)
            if step.op in _READS:
                local = self._cells(step.source, first, count, tile)
                value = local.copy() if value is None else np.add(value, local, out=value)
            if step.op == "re":
                value = self._cells(step.target, first, count, tile) + value
            yield GO  # between reading and writing, others may act
            if value is not None and step.op in _WRITES:
                cells = self._cells(step.target, first, count, tile)
                if value.size != cells.size:
                    raise Fault(f"a message of {value.size} elements comes to {cells.size}")
                cells[:] = value
            if value is not None and out is not None:
                self.untaken[out] += 1
                self.send(out[0], _DATA, out[1], data=value.view(np.uint8))

    def _room(self, into: Link | None, out: Link | None) -> Need:
        """Return the need of a message, of room for one, or of both."""

        def missing() -> Iterator[str]:
            if into is not None and not self.inbox[into]:
                yield f"a message from rank {into[0]} on channel {into[1]}"
            if out is not None and self.untaken[out] >= self.depth:
                where = f"rank {out[0]} on channel {out[1]}"
                yield f"room: {self.depth} messages to {where} were not received yet"

        return Need(
            lambda: (
                (into is None or self.inbox[into])
                and (out is None or self.untaken[out] < self.depth)
            ),
            lambda: " and ".join(missing()) or "nothing",
        )

    def _taken(self, into: Link | None) -> Data | None:
        if into is None:
            return None
        value = self.inbox[into].popleft()
        self.send(into[0], _TAKEN, into[1])
        return value

    def _cells(self, slot: Slot | None, first: int, count: int, tile: int) -> Data:
        letter, offset = ("?", -1) if slot is None else slot
        buffer, start = self.buffers.get(letter), (offset + first) * self.chunk
        if buffer is None or start < 0 or start + count * self.chunk > buffer.size:
            has = 0 if buffer is None else buffer.size // max(1, self.chunk)
            text = f"chunk {offset + first + count - 1} of buffer {letter}, which has {has}"
            raise Fault(text)
        if self.tiles == 1:
            return buffer[start : start + count * self.chunk]
        shift = tile * self.span
        return buffer[start + shift : start + min(shift + self.span, self.chunk)]


def _link(peer: int | None, channel: int) -> Link:
    if peer is None:
        raise Fault("a step without a peer to exchange messages with")
    return peer, channel
