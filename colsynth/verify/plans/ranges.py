"""Rules P02, P06 and P15: the header, channels in pairs, and the byte range of a plan."""

from __future__ import annotations

from collections import Counter

from colsynth.model import Severity
from colsynth.runtimes.plans.form import SCRATCH_BYTES, Plan, scratch_stride
from colsynth.runtimes.rules import Findings
from colsynth.units import plural
from colsynth.verify.plans.lists import TYPES, switch_groups

OFFSETS = 2**32
"""Offsets and sizes are 32-bit numbers (contract 3)."""
_MOST_THREADS = 1024
"""Threads of a block, in every compute capability (CUDA C++ Programming Guide, table of technical
specifications), and of a workgroup of HIP."""


def lint_pairs(plan: Plan, findings: Findings) -> None:
    """Check that both ranks of every pair list equally many channels (P06)."""
    for kind in TYPES:
        count: Counter[tuple[int, int]] = Counter()
        for rank, gpu in enumerate(plan.gpus):
            for channels in gpu.channels:
                if channels.channel_type == kind:
                    count.update((rank, peer) for peer in channels.connected_to)
        for (rank, peer), found in sorted(count.items()):
            if found > count[peer, rank]:
                other = plural(count[peer, rank], "channel")
                text = f"{found} {kind} channels lead to rank {peer}, which has {other} back"
                findings.add("P06", text, rank)


def lint_header(plan: Plan, findings: Findings) -> None:
    """Check the fields that concern all GPUs (P02)."""
    if not plan.name:
        findings.add("P02", "the plan has no name; contexts and registries go by it")
    if plan.buffer_alignment < 16 or plan.buffer_alignment % 16:
        text = f"buffer_alignment is {plan.buffer_alignment}; handlers move 16 bytes at a time"
        findings.add("P02", text)
    if plan.protocol not in ("Simple", "LL"):
        findings.add("P02", f"protocol {plan.protocol!r} is neither Simple nor LL")
    threads = plan.num_threads_per_block
    if not 1 <= threads <= _MOST_THREADS:
        text = f"num_threads_per_block is {threads}; a threadblock has 1 to {_MOST_THREADS} threads"
        findings.add("P02", text)


def lint_range(plan: Plan, findings: Findings) -> None:
    """Check the byte range against what buffers hold (P15)."""
    least, most = plan.min_message_size, plan.max_message_size
    if least < 0 or most < max(1, least):
        findings.add("P15", f"no message has {least} to {most} bytes")
        return
    chunks = max(plan.gpus[0].input_chunks, plan.gpus[0].output_chunks)
    unlimited = most >= OFFSETS
    if unlimited:
        text = "messages from 4 GiB on are in the range; offsets are 32-bit numbers"
        findings.add("P15", text, level=Severity.WARNING)
    if not plan.reuse_resources:
        return
    _lint_slots(plan, min(most, OFFSETS) // chunks, findings)
    for rank, gpu in enumerate(plan.gpus):
        bare = [op for b in gpu.threadblocks for op in b.ops if op.name != "pipeline"]
        touched = any(o.type == "s" or o.buffer_id is not None for op in bare for o in op.dst_buff)
        stride = scratch_stride(plan, gpu)
        aligned = most // chunks // plan.buffer_alignment * plan.buffer_alignment
        if touched and not unlimited and aligned > stride:
            text = f"a chunk of {aligned} bytes needs more than the {stride} bytes of a slot"
            findings.add("P15", f"{text} ({SCRATCH_BYTES >> 20} MiB of scratch)", rank)
            return


def _lint_slots(plan: Plan, chunk: int, findings: Findings) -> None:
    """Check that chunks of scratch lie at a peer where they lie here (contract 3 and 6.2).

    Offsets are those of the rank that executes the operation. Its slots are as long as its own
    number of scratch chunks allows, and no slot is longer than a chunk.
    """
    long = [scratch_stride(plan, gpu) for gpu in plan.gpus]
    for rank, gpu in enumerate(plan.gpus):
        reached = {buffer.rank for buffer in gpu.remote_buffers if buffer.type == "s"}
        reached |= {r for kind, group in switch_groups(gpu) if kind == "s" for r in group.ranks}
        for peer in sorted(reached):
            slots = long[rank], long[peer]
            if slots[0] != slots[1] and chunk > min(slots):
                text = f"slots of scratch have {slots[0]} bytes here and {slots[1]} at rank {peer}"
                findings.add("P15", f"{text}: it reaches other bytes there than it means", rank)
                return
