"""Writes a threadblock program as an execution plan; decides only its form (contract 6)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import SENDS, Gpu, Threadblock, ThreadblockProgram
from colsynth.runtimes.long_sums import joined
from colsynth.runtimes.plans.blocks import BlockWriter, Links
from colsynth.runtimes.plans.form import (
    Block,
    BlockBuffers,
    BlockChannels,
    Channels,
    Plan,
    PlanGpu,
    RemoteBuffer,
    Semaphore,
    operations,
)
from colsynth.runtimes.plans.multicast import write_gpu
from colsynth.runtimes.plans.reader import MARK
from colsynth.runtimes.plans.semaphores import semaphores_of
from colsynth.runtimes.plans.shape import (
    Connection,
    Form,
    PlanShape,
    fitted,
    folds_of,
)
from colsynth.runtimes.profile import Profile

_TYPES = ("memory", "port")


def write_plan(program: ThreadblockProgram, profile: Profile) -> bytes:
    """Return the plan of a program as JSON in one line.

    Raises
    ------
    DefectError
        CS590 when the program holds a value that a plan cannot spell.
    """
    import msgspec

    if program.header.in_place == program.header.out_of_place:
        raise _defect(f"a plan of {profile.name} serves one call mode")
    return msgspec.json.encode(_named(plan_of(program, profile))) + b"\n"


def plan_of(program: ThreadblockProgram, profile: Profile) -> Plan:
    """Return the plan of a program, under the name of the program."""
    shape = PlanShape(fitted(program))
    header, packets = shape.program.header, shape.form is Form.PACKETS
    if header.max_bytes is None:
        raise _defect("a plan needs an upper bound of the message size")
    return Plan(
        name=header.name,
        collective=profile.collectives[header.collective],
        protocol="LL" if packets else "Simple",
        inplace=header.in_place,
        gpus=tuple(written(shape, profile)),
        reuse_resources=True,
        use_double_scratch_buffer=packets,
        min_message_size=header.min_bytes,
        max_message_size=header.max_bytes + int(profile.exclusive_max),
    )


def written(shape: PlanShape, profile: Profile) -> Iterator[PlanGpu]:
    """Yield what each rank does in the plan of a program."""
    program = shape.program
    if program.multicasts:
        yield from (write_gpu(shape, gpu) for gpu in program.gpus)
        return
    for gpu, joins in _joins(shape, profile):
        yield _Gpu(shape, gpu).write(joins)


def longest_written(
    shape: PlanShape, profile: Profile, doubtful: NDArray[np.bool_]
) -> Iterator[int]:
    """Yield the most operations that any of the doubtful threadblocks of each rank has.

    `doubtful` marks some of `shape.blocks`, at least one. There is no multicast.
    """
    marks = iter(doubtful.tolist())
    for gpu, joins in _joins(shape, profile):
        chosen = [next(marks) for _ in gpu.threadblocks]
        if any(chosen):
            yield _Gpu(shape, gpu).longest(joins, chosen)


def _joins(shape: PlanShape, profile: Profile) -> Iterator[tuple[Gpu, list[list[bool]]]]:
    """Yield each GPU with the steps of its threadblocks that join others."""
    program = shape.program
    found = np.split(joined(program, profile.longest_sum), np.cumsum(program.lengths)[:-1])
    each = iter(found)
    for gpu in program.gpus:
        yield gpu, [next(each).tolist() for _ in gpu.threadblocks]


def _named(plan: Plan) -> Plan:
    """Return the plan under a name that no other plan has: contexts go by names (T9)."""
    import msgspec

    digest = hashlib.sha256(msgspec.json.encode(plan)).hexdigest()[:12]
    return msgspec.structs.replace(plan, name=f"{plan.name}{MARK}{digest}")


class _Gpu:
    """Writes the program of one rank."""

    def __init__(self, shape: PlanShape, gpu: Gpu) -> None:
        self.shape, self.gpu, self.rank = shape, gpu, gpu.rank
        self.channel: dict[Connection, int] = {}
        self.peers: dict[str, list[int]] = {kind: [] for kind in _TYPES}
        for connection in shape.connections:
            source, target, _ = connection
            if self.rank in (source, target):
                peer = target if source == self.rank else source
                kind = self._kind(peer)
                self.channel[connection] = len(self.peers[kind])
                self.peers[kind].append(peer)
        targets = sorted({t for s, t, _ in shape.connections if s == self.rank})
        self.buffer = {peer: number for number, peer in enumerate(targets)}
        self.stage = shape.slots_end

    def write(self, joins: Sequence[Sequence[bool]]) -> PlanGpu:
        """Return the program of the rank, given which steps of each threadblock join others."""
        gpu, shape = self.gpu, self.shape
        acquires, releases, initial = semaphores_of(shape, gpu)
        blocks = tuple(
            self._block(block, acquires[block.id], releases[block.id], own)
            for block, own in zip(gpu.threadblocks, joins, strict=True)
        )
        needed = ("port",) if shape.packets else _TYPES
        return PlanGpu(
            id=gpu.rank,
            input_chunks=gpu.input_chunks,
            output_chunks=gpu.output_chunks,
            scratch_chunks=shape.scratch_chunks,
            threadblocks=blocks,
            channels=tuple(
                Channels(kind, tuple(self.peers[kind])) for kind in needed if self.peers[kind]
            ),
            remote_buffers=tuple(
                RemoteBuffer(peer, "s", (self._kind(peer),)) for peer in self.buffer
            ),
            semaphores=tuple(Semaphore(value) for value in initial),
        )

    def longest(self, joins: Sequence[Sequence[bool]], chosen: Sequence[bool]) -> int:
        """Return the most operations of some threadblocks."""
        acquires, releases, _ = semaphores_of(self.shape, self.gpu)
        found = 0
        for block, own, taken in zip(self.gpu.threadblocks, joins, chosen, strict=True):
            if taken:
                written = self._block(block, acquires[block.id], releases[block.id], own)
                found = max(found, len(operations(written)))
            else:
                self._pass_stage(block)
        return found

    def _pass_stage(self, block: Threadblock) -> None:
        """Go on to the staging chunks of the next threadblock."""
        if block.send is None or self._kind(block.send) != "port":
            return
        if (self.rank, block.send, block.channel) in self.shape.first_slot:
            staged = (step for step in block.steps if step.op in SENDS and self.shape.staged(step))
            self.stage += sum(step.count for step in staged)

    def _kind(self, peer: int) -> str:
        return "port" if self.shape.is_port(self.rank, peer) else "memory"

    def _block(
        self,
        block: Threadblock,
        acquires: dict[int, tuple[int, ...]],
        releases: dict[int, tuple[int, ...]],
        joins: Sequence[bool],
    ) -> Block:
        shape, known = self.shape, self.shape.first_slot
        out = into = None
        if block.send is not None:
            out = (self.rank, block.send, block.channel)
            out = out if out in known else None
        if block.recv is not None:
            into = (block.recv, self.rank, block.channel)
            into = into if into in known else None
        lists: dict[str, list[int]] = defaultdict(list)
        local = {}
        for connection, peer in ((into, block.recv), (out, block.send)):
            if connection is not None and peer is not None:
                kind = self._kind(peer)
                local[connection] = kind, len(lists[kind])
                lists[kind].append(self.channel[connection])
        kind_in, channel_in = ("memory", -1) if into is None else local[into]
        kind_out, channel_out = ("memory", -1) if out is None else local[out]
        folds = {}
        for peer, channel in folds_of(block):
            folded = peer, self.rank, channel
            folds[peer, channel] = len(lists["memory"]), known[folded]
            lists["memory"].append(self.channel[folded])
        links = Links(
            kind_in,
            kind_out,
            channel_in,
            channel_out,
            slot_in=0 if into is None else known[into],
            slot_out=0 if out is None else known[out],
            stage=self.stage,
            thrown=shape.thrown.get((self.rank, block.id), 0),
            acquires=acquires,
            releases=releases,
            folds=folds,
            lies_in=shape.lies_in(self.gpu),
        )
        self._pass_stage(block)
        ops = BlockWriter(block, shape, links, joins).ops()
        refs: tuple[BlockBuffers, ...] = ()
        if out is not None and block.send is not None:
            refs = (BlockBuffers(kind_out, (self.buffer[block.send],)),)
        used = [kind for kind in _TYPES if lists[kind] and (kind == "port" or not shape.packets)]
        return Block(
            id=block.id,
            ops=ops,
            channels=tuple(BlockChannels(kind, tuple(lists[kind])) for kind in used),
            remote_buffer_refs=refs,
            channel=block.channel,
        )


def _defect(phrase: str) -> DefectError:
    return DefectError(Diagnostic("CS590", f"the writer was handed what it cannot spell: {phrase}"))
