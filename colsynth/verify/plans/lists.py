"""What threadblocks of a plan use, in the numbering of their GPU."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.runtimes.plans.form import Block, Op, Plan, PlanGpu, RankGroup

TYPES = ("memory", "port")
SWITCH_TYPE = "switch"
BUFFERS = ("i", "o", "s")


def every_op(plan: Plan) -> Iterator[Op]:
    """Yield the operations of all threadblocks; those in pipelines are in them."""
    for gpu in plan.gpus:
        for block in gpu.threadblocks:
            yield from block.ops


def block_lists(block: Block) -> dict[str, list[int]]:
    """Return the GPU-wide channel ids of a threadblock, by type."""
    found: dict[str, list[int]] = {kind: [] for kind in (*TYPES, SWITCH_TYPE)}
    for channels in block.channels:
        if channels.channel_type in found:
            found[channels.channel_type] += channels.channel_ids
    return found


def buffer_lists(block: Block) -> dict[str, list[int]]:
    """Return the GPU-wide remote buffers of a threadblock, by type of channel."""
    found: dict[str, list[int]] = {kind: [] for kind in TYPES}
    for refs in block.remote_buffer_refs:
        if refs.access_channel_type in found:
            found[refs.access_channel_type] += refs.remote_buffer_ids
    return found


def switch_groups(gpu: PlanGpu) -> list[tuple[str, RankGroup]]:
    """Return the buffer and the ranks of every switch channel of a GPU, in their numbering."""
    return [
        (channels.buffer_type or "", group)
        for channels in gpu.channels
        if channels.channel_type == SWITCH_TYPE
        for group in channels.rank_groups
    ]


def chunks_in(gpu: PlanGpu, buffer: str | None) -> int | None:
    """Return the chunks of a buffer of a GPU, None where there is no such buffer."""
    if buffer == "s":
        return gpu.scratch_chunks
    if buffer == "i":
        return gpu.input_chunks
    return gpu.output_chunks if buffer == "o" else None
