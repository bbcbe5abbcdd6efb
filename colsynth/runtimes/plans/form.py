"""A plan as MSCCL++ reads it: one JSON document for all ranks.

Names and defaults are those of ``src/core/executor/execution_plan.cc`` of microsoft/mscclpp
(contract 1). Keys that are not named here are ignored there too.
"""

from __future__ import annotations

import msgspec


class Operand(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Adjacent chunks: local (`type`), of a peer (`buffer_id`), or behind a switch."""

    index: int
    size: int
    type: str | None = None
    buffer_id: int | None = None
    switch_channel_id: int | None = None


class Group(msgspec.Struct, frozen=True, gc=False):
    """The slice of an operation that a threadblock takes."""

    tb_id: int
    tbg_size: int


class Loop(msgspec.Struct, frozen=True, gc=False):
    """Bytes of an iteration, and chunks that it cuts up."""

    unit_size: int
    num_chunks: int


class Op(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation of a threadblock; a pipeline holds others."""

    name: str
    src_buff: tuple[Operand, ...] = ()
    dst_buff: tuple[Operand, ...] = ()
    channel_ids: tuple[int, ...] = ()
    channel_type: str | None = None
    tbg_info: Group | None = None
    barrier_id: int | None = None
    num_threadblocks: int | None = None
    semaphore_ids: tuple[int, ...] = ()
    iter_context: Loop | None = None
    ops: tuple[Op, ...] = ()


class BlockChannels(msgspec.Struct, frozen=True):
    """Channels of one type that a threadblock uses; operations count within the list."""

    channel_type: str
    channel_ids: tuple[int, ...]


class BlockBuffers(msgspec.Struct, frozen=True):
    """Buffers of peers that a threadblock reaches over channels of one type."""

    access_channel_type: str
    remote_buffer_ids: tuple[int, ...]


class Block(msgspec.Struct, frozen=True, omit_defaults=True):
    """A threadblock; `channel` is a key of ours, the channel that it has in the program."""

    id: int
    ops: tuple[Op, ...]
    channels: tuple[BlockChannels, ...]
    remote_buffer_refs: tuple[BlockBuffers, ...] = ()
    channel: int | None = None


class RankGroup(msgspec.Struct, frozen=True):
    """The ranks of a multicast channel."""

    size: int
    ranks: tuple[int, ...]


class Channels(msgspec.Struct, frozen=True, omit_defaults=True):
    """Channels of one type; those of a switch name a buffer and groups of ranks."""

    channel_type: str
    connected_to: tuple[int, ...] = ()
    buffer_type: str | None = None
    rank_groups: tuple[RankGroup, ...] = ()


class RemoteBuffer(msgspec.Struct, frozen=True):
    """A buffer of a peer."""

    rank: int
    type: str
    access_channel_types: tuple[str, ...]


class Semaphore(msgspec.Struct, frozen=True):
    """A counting semaphore of one GPU."""

    init_value: int


class PlanGpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """The program of one rank; buffer sizes in chunks."""

    id: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    threadblocks: tuple[Block, ...]
    channels: tuple[Channels, ...]
    remote_buffers: tuple[RemoteBuffer, ...]
    semaphores: tuple[Semaphore, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """A whole file."""

    name: str
    collective: str
    protocol: str
    inplace: bool
    gpus: tuple[PlanGpu, ...]
    reuse_resources: bool = False
    use_double_scratch_buffer: bool = False
    buffer_alignment: int = 16
    num_threads_per_block: int = 1024
    min_message_size: int = 0
    max_message_size: int = 2**64 - 1


SCRATCH_BYTES = 64 << 20
"""Scratch of a plan with ``reuse_resources`` (``execution_common.hpp``, contract 3)."""


def scratch_stride(plan: Plan, gpu: PlanGpu) -> int:
    """Return S, the bytes that a scratch chunk has at most where resources are reused."""
    whole = SCRATCH_BYTES // (2 if plan.use_double_scratch_buffer else 1)
    align = max(1, plan.buffer_alignment)
    return whole // max(1, gpu.scratch_chunks) // align * align


def operations(block: Block) -> list[Op]:
    """Return all operations of a threadblock that count, heads of pipelines included."""
    found: list[Op] = []
    for op in block.ops:
        found += [op, *op.ops]
    return found
