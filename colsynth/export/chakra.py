"""Execution traces of Chakra, as ASTRA-sim reads them for a custom collective.

Each rank has a file of nodes that send, receive or compute, and name the nodes they come after.
Field numbers are those of mlcommons/chakra, ``schema/protobuf/et_def.proto``. Sizes are absolute,
so a set of files serves one message size. Traces know neither tiles nor FIFOs: a step is one
message, and what a threadblock does comes one after the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError
from colsynth.export.protobuf import block, delimited, number, packed
from colsynth.model import RECEIVES, SENDS, Direction, Wait
from colsynth.store.rows import transfer_rows

if TYPE_CHECKING:
    from colsynth.model import Gpu, Threadblock, ThreadblockProgram, TimedSchedule

_COMP, _SEND, _RECV = 4, 5, 6
_COMPUTES = frozenset({"rrs", "rrc", "rrcs", "cpy", "re"})
_INT32, _INT64 = 7, 9
"""Fields of an attribute's value, by type."""

_Link = tuple[int, int, int]
"""Source rank, target rank, channel."""


@dataclass
class Trace:
    """The nodes of one rank, encoded."""

    rank: int
    nodes: list[bytes] = field(default_factory=list)

    def add(
        self,
        kind: int,
        name: str,
        after: set[int],
        peer: int = 0,
        size: int = 0,
        tag: int = 0,
    ) -> int:
        """Add a node, and return its id.

        Parameters
        ----------
        kind : int
            A NodeType.
        name : str
        after : set of int
            Ids of nodes that must be done first.
        peer, size, tag : int
            Of a message: rank, bytes, and what tells it from others between the two ranks.
        """
        identity = len(self.nodes)
        parts = [number(1, identity), block(2, name), number(3, kind), packed(5, sorted(after))]
        if kind in (_SEND, _RECV):
            source, target = (self.rank, peer) if kind == _SEND else (peer, self.rank)
            parts += [
                _attribute("comm_size", _INT64, size),
                _attribute("comm_src", _INT32, source),
                _attribute("comm_dst", _INT32, target),
                _attribute("comm_tag", _INT32, tag),
            ]
        self.nodes.append(b"".join(parts))
        return identity

    def encoded(self) -> bytes:
        """Return the file: its metadata, then the nodes."""
        metadata = block(1, "0.0.4")
        return delimited([metadata, *self.nodes])


def _attribute(name: str, kind: int, value: int) -> bytes:
    return block(10, block(1, name) + number(kind, value))


def of_program(program: ThreadblockProgram, size: int) -> list[bytes]:
    """Return the traces of a schedule file, by rank.

    Parameters
    ----------
    program : ThreadblockProgram
    size : int
        Bytes of the message, a multiple of the chunks.
    """
    chunk = size // program.header.chunks
    first = _first_tags(program)
    return [_Rank(gpu, chunk, first).trace() for gpu in program.gpus]


def _first_tags(program: ThreadblockProgram) -> dict[_Link, int]:
    """Return the tag of the first message of each connection; those between two ranks differ."""
    sent: dict[_Link, int] = {}
    for gpu in program.gpus:
        for tb in gpu.threadblocks:
            if tb.send is not None:
                count = sum(step.op in SENDS for step in tb.steps)
                sent[gpu.rank, tb.send, tb.channel] = count
    following: dict[tuple[int, int], int] = defaultdict(int)
    first = {}
    for source, target, channel in sorted(sent):
        first[source, target, channel] = following[source, target]
        following[source, target] += sent[source, target, channel]
    return first


class _Rank:
    """Makes the trace of a rank: every step becomes a receive, a computation, a send."""

    def __init__(self, gpu: Gpu, chunk: int, first: dict[_Link, int]) -> None:
        self.gpu, self.chunk, self.first = gpu, chunk, first
        self.nodes = Trace(gpu.rank)
        self.done: dict[Wait, set[int]] = {}
        self.last: dict[int, set[int]] = defaultdict(set)
        self.tags: dict[_Link, int] = defaultdict(int)

    def trace(self) -> bytes:
        """Return the file; nodes come after those that they need."""
        at = dict.fromkeys(range(len(self.gpu.threadblocks)), 0)
        left = sum(len(tb.steps) for tb in self.gpu.threadblocks)
        while left:
            before = left
            for number_, tb in enumerate(self.gpu.threadblocks):
                while at[number_] < len(tb.steps) and self._step(tb, at[number_]):
                    at[number_] += 1
                    left -= 1
            if left == before:
                phrase = f"threadblocks of rank {self.gpu.rank} wait for each other in a circle"
                raise InputError(Diagnostic("CS670", phrase, help="check the file with verify"))
        return self.nodes.encoded()

    def _step(self, tb: Threadblock, ordinal: int) -> bool:
        """Add the nodes of a step; return whether all steps that it waits for have theirs."""
        step = tb.steps[ordinal]
        if any(wait not in self.done for wait in step.waits):
            return False
        after = self.last[tb.id].union(*(self.done[wait] for wait in step.waits))
        name, size = f"{self.gpu.rank}/{tb.id}/{ordinal} {step.op}", step.count * self.chunk
        if step.op in RECEIVES and tb.recv is not None:
            tag = self._tag((tb.recv, self.gpu.rank, tb.channel))
            after = {self.nodes.add(_RECV, name, after, tb.recv, size, tag)}
        if step.op in _COMPUTES:
            after = {self.nodes.add(_COMP, name, after)}
        if step.op in SENDS and tb.send is not None:
            tag = self._tag((self.gpu.rank, tb.send, tb.channel))
            after = {self.nodes.add(_SEND, name, after, tb.send, size, tag)}
        self.last[tb.id] = after
        self.done[Wait(tb.id, ordinal)] = after
        return True

    def _tag(self, link: _Link) -> int:
        self.tags[link] += 1
        return self.first.get(link, 0) + self.tags[link] - 1


def of_timed(schedule: TimedSchedule, size: int) -> list[bytes]:
    """Return the traces of a timed schedule, by rank.

    A send comes after the sends before it on its hop, and after all arrivals of its chunk at its
    source that the schedule places before it. Start times themselves are not written.

    Parameters
    ----------
    schedule : TimedSchedule
    size : int
        Bytes of the message; chunks are rounded up to whole bytes.
    """
    chunk = math.ceil(schedule.chunk_bytes * size / schedule.size)
    traces = [Trace(rank) for rank in range(schedule.problem.topology.size)]
    arrived: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    last: dict[tuple[int, int], int] = {}
    tags: dict[tuple[int, int], int] = defaultdict(int)
    for phase, start, end, hop, number_ in sorted(_transfers(schedule)):
        hops = schedule.phases[phase].hops
        source, target = int(hops.source[hop]), int(hops.target[hop])
        after = {node for when, node in arrived[source, number_] if when <= start}
        after |= {last[phase, hop]} if (phase, hop) in last else set()
        name, tag = f"chunk {number_}", tags[source, target]
        tags[source, target] += 1
        last[phase, hop] = traces[source].add(_SEND, name, after, target, chunk, tag)
        node = traces[target].add(_RECV, name, set(), source, chunk, tag)
        if schedule.phases[phase].direction is Direction.IN:
            node = traces[target].add(_COMP, name, {node})
        arrived[target, number_].append((end, node))
    return [trace.encoded() for trace in traces]


def _transfers(schedule: TimedSchedule) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield phase, start, end, hop and chunk of every transfer."""
    for number_, phase in enumerate(schedule.phases):
        moved = transfer_rows(phase)
        columns = (moved.start, moved.end, moved.hop, moved.chunk)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        yield from ((number_, *row) for row in rows)
