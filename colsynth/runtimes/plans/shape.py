"""What a program needs as a plan: channels, slots in scratch, form, and the sizes it can serve.

Every message of a connection has a slot of its own at the receiver (contract 6.2). The form
follows from the largest message: flat where every slot holds its chunk, and that is no larger than
an iteration may be; else a pipeline whose slots wrap; packets where the protocol is LL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from colsynth.model import (
    RECEIVES,
    SENDS,
    Collective,
    Gpu,
    Step,
    Threadblock,
    ThreadblockProgram,
)
from colsynth.runtimes.plans.form import SCRATCH_BYTES

ALIGNED = 16
"""Bytes of which every chunk is a multiple (contract T3)."""
LARGEST_UNIT = 1 << 20
"""Most bytes of an iteration: 1 to 2 MiB are a good default (contract 6.4).

With more at a time, who passes data on or adds it up waits: an alltoall of 16 MiB on four GPUs of
100 GB/s (clique:4) takes 358 us with 4 MiB at a time, 232 with 1 MiB.
"""
CREDITS = 2

Ints = NDArray[np.int64]

Connection = tuple[int, int, int]
"""Source rank, target rank, channel of the program."""


class Form(StrEnum):
    """How a plan moves data."""

    FLAT = "flat"
    PIPELINE = "pipeline"
    PACKETS = "packets"


@dataclass(frozen=True)
class PlanShape:
    """A program, and what follows from it for its plan."""

    program: ThreadblockProgram

    @cached_property
    def boxes(self) -> tuple[int, ...]:
        """The box of every rank."""
        header = self.program.header
        return header.boxes or (0,) * header.ranks

    def is_port(self, one: int, other: int) -> bool:
        """Whether two ranks reach each other over ports."""
        return self.boxes[one] != self.boxes[other]

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """All connections, sorted; both ranks number their channels in this order."""
        found = set()
        sent, received = self.chunks_of(SENDS), self.chunks_of(RECEIVES)
        for (rank, block), sends, receives in zip(self.blocks, sent, received, strict=True):
            if block.send is not None and sends:
                found.add((rank, block.send, block.channel))
            if block.recv is not None and receives:
                found.add((block.recv, rank, block.channel))
        for row, folds in self.program.steps.folds.items():
            rank, _ = self.blocks[self.homes[row]]
            found |= {(peer, rank, channel) for peer, channel in folds}
        return tuple(sorted(found))

    @cached_property
    def blocks(self) -> tuple[tuple[int, Threadblock], ...]:
        """All threadblocks, with their ranks."""
        return tuple((gpu.rank, block) for gpu in self.program.gpus for block in gpu.threadblocks)

    @cached_property
    def homes(self) -> Ints:
        """The threadblock of every step, by its place in `blocks`."""
        lengths = self.program.lengths
        return np.repeat(np.arange(len(lengths)), lengths)

    def chunks_of(self, ops: Container[str]) -> list[int]:
        """Return the chunks that each threadblock moves in steps of some types."""
        steps = self.program.steps
        found = np.zeros(len(self.blocks), dtype=np.int64)
        np.add.at(found, self.homes, np.where(steps.among(ops), steps.count, 0))
        return found.tolist()

    @property
    def most_ports(self) -> int:
        """The most connections over ports that a rank has; a program that multicasts has none."""
        ends = ((s, t) for s, t, _ in self.connections if self.is_port(s, t))
        return max(Counter(chain.from_iterable(ends)).values(), default=0)

    @cached_property
    def first_slot(self) -> dict[Connection, int]:
        """The slot at the receiver of the first message of each connection."""
        at = [self.plain] * self.program.header.ranks
        first: dict[Connection, int] = {}
        for connection in self.connections:
            first[connection] = at[connection[1]]
            at[connection[1]] += self._chunks[connection]
        return first

    @cached_property
    def _chunks(self) -> dict[Connection, int]:
        """The chunks that each connection carries."""
        each = zip(self.blocks, self.chunks_of(SENDS), strict=True)
        return {
            (rank, block.send, block.channel): chunks
            for (rank, block), chunks in each
            if block.send is not None
        }

    @property
    def is_connected(self) -> bool:
        """Whether someone sends on every connection on which someone receives."""
        return self._chunks.keys() >= set(self.connections)

    @property
    def messages(self) -> int:
        """The most chunks that a connection carries in an iteration."""
        return max(self._chunks.values(), default=0)

    @cached_property
    def own(self) -> int:
        """Chunks of scratch that the program itself uses."""
        return max(gpu.scratch_chunks for gpu in self.program.gpus)

    @cached_property
    def plain(self) -> int:
        """Chunks of scratch in front of the slots: those that the program itself uses.

        Packets take twice the room, so there plain chunks lie behind slots, see `place`.
        """
        if self.packets:
            return 0
        return self.own

    @property
    def packets(self) -> bool:
        """Whether data travels as packets."""
        return self.program.header.protocol == "LL"

    @cached_property
    def slots_end(self) -> int:
        """The first chunk behind all slots of all ranks."""
        ends = [self.plain]
        for connection, first in self.first_slot.items():
            ends.append(first + self._chunks[connection])
        return max(ends)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Per rank, the staging chunks that sends over ports need."""
        return tuple(
            sum(self.staged(step) * step.count for step in self._port_sends(rank))
            for rank in range(len(self.program.gpus))
        )

    def staged(self, step: Step) -> bool:
        """Whether a send over a port reads a staging chunk of its own.

        A port reads its source later. Scratch is used again by then, and so is what a step that
        waits for a plain send overwrites. In place, an alltoall overwrites all that a rank sends,
        perhaps in the same threadblock, where no step waits for another.
        """
        overwritten = step.op == "s" and (step.signals or self._exchanges_in_place)
        return self.packets or overwritten or step.op == "rrs" or _sent(step) == "s"

    @cached_property
    def _exchanges_in_place(self) -> bool:
        header = self.program.header
        return header.in_place and header.collective is Collective.ALLTOALL

    def _port_sends(self, rank: int) -> Iterator[Step]:
        for block in self.program.gpus[rank].threadblocks:
            if block.send is not None and self.is_port(rank, block.send):
                yield from (step for step in block.steps if step.op in SENDS)

    @cached_property
    def stages_end(self) -> int:
        """The first chunk behind all staging chunks."""
        return self.slots_end + max(self.stages)

    def place(self, offset: int) -> int:
        """Return where a chunk of the program's own scratch lies."""
        return 2 * self.stages_end + offset if self.packets else offset

    def lies_in(self, gpu: Gpu) -> dict[str, tuple[str, int]]:
        """Return which buffer of a rank lies in another in place: that one, and from where there.

        An allgather's input is the rank's shard of its output, a reduce-scatter's output that of
        its input, and those of other collectives are one (contract 4.8).
        """
        if not self.program.header.in_place:
            return {}
        inputs, outputs = gpu.input_chunks, gpu.output_chunks
        if outputs < inputs:
            return {"o": ("i", gpu.rank * outputs)}
        return {"i": ("o", gpu.rank * inputs if inputs < outputs else 0)}

    @cached_property
    def thrown(self) -> dict[tuple[int, int], int]:
        """By rank and threadblock, the plain chunk for sums that only travel on as packets."""
        found: dict[tuple[int, int], int] = {}
        if not self.packets:
            return found
        first = self.place(self.own)
        passing: Counter[int] = Counter()
        for (rank, block), chunks in zip(self.blocks, self.chunks_of({"rrs"}), strict=True):
            if chunks:
                found[rank, block.id] = first + passing[rank] * self.widest
                passing[rank] += 1
        return found

    @cached_property
    def widest(self) -> int:
        """The most chunks that a step moves."""
        count = self.program.steps.count
        return int(count.max()) if count.size else 1

    @cached_property
    def scratch_chunks(self) -> int:
        """Chunks of scratch of every rank: a power of two where slots wrap."""
        count = self.stages_end
        if self.packets and (self.own or self.thrown):
            count = max([self.place(self.own), *(at + self.widest for at in self.thrown.values())])
        count = max(1, count)
        if self.form is not Form.PIPELINE:
            return count
        return wrapping(count)

    @property
    def largest_chunk(self) -> int | None:
        """Bytes of a chunk of the largest message; None where that is not limited."""
        header = self.program.header
        return None if header.max_bytes is None else -(-header.max_bytes // header.chunks)

    @cached_property
    def form(self) -> Form:
        """How the plan moves data."""
        if self.packets:
            return Form.PACKETS
        if self.program.multicasts:
            return Form.PIPELINE
        fits = SCRATCH_BYTES // max(1, self.stages_end) // ALIGNED * ALIGNED
        chunk = self.largest_chunk
        flat = chunk is not None and chunk <= min(fits, LARGEST_UNIT)
        return Form.FLAT if flat else Form.PIPELINE

    @property
    def slot_bytes(self) -> int:
        """S, the bytes of a slot."""
        whole = SCRATCH_BYTES // (2 if self.packets else 1)
        return whole // self.scratch_chunks // ALIGNED * ALIGNED

    @property
    def unit(self) -> int:
        """Bytes of an iteration."""
        return min(self.slot_bytes // CREDITS, LARGEST_UNIT)

    @property
    def largest_message(self) -> int | None:
        """Bytes of the largest message that slots hold; None where they wrap."""
        if self.form is Form.PIPELINE:
            return None
        return self.slot_bytes * self.program.header.chunks


def wrapping(chunks: int) -> int:
    """Return how many chunks of scratch to declare where slots wrap, to have as many or more.

    A power of two, and so many that no slot holds more than it has credits.
    """
    least = SCRATCH_BYTES // (CREDITS * LARGEST_UNIT)
    return max(least, 1 << (chunks - 1).bit_length())


def folds_of(block: Threadblock) -> tuple[tuple[int, int], ...]:
    """Return rank and channel of the connections whose messages a threadblock also adds."""
    return tuple(sorted({fold for step in block.steps for fold in step.folds}))


def _sent(step: Step) -> str:
    slot = step.source if step.op == "s" else step.target
    return "s" if slot is None else slot.buffer


def fitted(program: ThreadblockProgram) -> ThreadblockProgram:
    """Return a program with the byte range that its plan can serve."""
    header = program.header
    most = PlanShape(program).largest_message
    ends = [end for end in (most, header.max_bytes) if end is not None]
    least = max(header.min_bytes, ALIGNED * header.chunks)
    return program.headed(replace(header, min_bytes=least, max_bytes=min(ends, default=None)))
