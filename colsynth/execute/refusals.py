"""Why a file is not executed: what its runtime would not load, connect or launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from colsynth.execute.threadblocks import RECEIVES, SENDS
from colsynth.model import Collective, Program, RoundProgram, Severity, ThreadblockProgram

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Block, Plan, PlanGpu
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading


def refusal(reading: Reading, profile: Profile) -> str | None:
    """Return why a runtime would not execute what it read, None where it would."""
    header = reading.header
    if header is None or (reading.program is None and reading.plan is None):
        faults = [x for x in reading.findings if x.severity is Severity.ERROR]
        text = f"{faults[0].rule}: {faults[0].message}" if faults else "it has no program"
        return f"{profile.name} reads no schedule from it: {text}"
    if header.collective not in profile.collectives and not reading.custom:
        return f"{profile.name} has no {header.collective}"
    if header.collective in (Collective.SCATTER, Collective.GATHER, Collective.CUSTOM):
        return f"{header.collective} is not executed"
    if reading.plan is not None:
        return _of_plan(reading.plan, profile)
    if reading.program is None:
        return None
    return _of_program(reading.program, profile)


def _of_program(program: Program, profile: Profile) -> str | None:
    if isinstance(program, RoundProgram):
        return "it holds rounds of messages, which colsynth.torch executes in PyTorch jobs"
    ranks = program.header.ranks
    if [gpu.rank for gpu in program.gpus] != list(range(ranks)):
        return f"it has no program for each of its {ranks} ranks, or one twice"
    if program.header.chunks < 1:
        return "a message has no chunks"
    steps = [step for gpu in program.gpus for block in gpu.threadblocks for step in block.steps]
    missing = sorted({step.op for step in steps} - set(profile.ops))
    if missing:
        return f"{profile.name} launches no steps of type {', '.join(missing)}"
    return _of_peers(program) or _of_links(program)


def _of_peers(program: ThreadblockProgram) -> str | None:
    """Return which threadblock has no peer for its steps, or one that cannot be."""
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            where = f"threadblock {block.id} of rank {gpu.rank}"
            for peer, used in ((block.send, SENDS), (block.recv, RECEIVES)):
                if peer is None and any(step.op in used for step in block.steps):
                    return f"{where} has steps for a peer and names none"
                if peer is not None and peer not in {*range(program.header.ranks)} - {gpu.rank}:
                    return f"{where} names rank {peer} as its peer"
    return None


def _of_links(program: ThreadblockProgram) -> str | None:
    """Return which connection would not have one threadblock at each end (contract 4.7)."""
    blocks = [(gpu.rank, block) for gpu in program.gpus for block in gpu.threadblocks]
    sends = Counter((rank, b.send, b.channel) for rank, b in blocks if b.send is not None)
    receives = Counter((b.recv, rank, b.channel) for rank, b in blocks if b.recv is not None)
    for link in sorted({*sends, *receives}):
        if (sends[link], receives[link]) != (1, 1):
            source, target, channel = link
            text = f"{sends[link]} threadblocks send and {receives[link]} receive"
            return f"from rank {source} to {target} on channel {channel}, {text}"
    return None


def _of_plan(plan: Plan, profile: Profile) -> str | None:
    return next(_plan_faults(plan, int(profile.plans["operations"])), None)


def _plan_faults(plan: Plan, limit: int) -> Iterator[str]:
    """Yield what the loader refuses, and what it does not see but cannot serve."""
    from colsynth.runtimes.plans.form import scratch_stride

    ends: Counter[tuple[str, int, int]] = Counter()
    for rank, gpu in enumerate(plan.gpus):
        yield from _gpu_faults(gpu, rank, len(plan.gpus))
        if plan.reuse_resources and scratch_stride(plan, gpu) < 1:
            yield f"the scratch of rank {rank} has no room for {gpu.scratch_chunks} chunks"
        for channels in gpu.channels:
            ends.update((channels.channel_type, rank, peer) for peer in channels.connected_to)
        for block in gpu.threadblocks:
            for fault in _block_faults(gpu, block, limit):
                yield f"threadblock {block.id} of rank {rank} {fault}"
    for (kind, rank, peer), count in sorted(ends.items()):
        if count != ends[kind, peer, rank]:
            text = f"{count} {kind} channels lead from rank {rank} to {peer}"
            yield f"{text}, and {ends[kind, peer, rank]} back"


def _gpu_faults(gpu: PlanGpu, rank: int, ranks: int) -> Iterator[str]:
    if gpu.id != rank:
        yield f"the GPU at place {rank} has id {gpu.id}; the loader refuses the plan"
    if min(gpu.input_chunks, gpu.output_chunks) < 1 or gpu.scratch_chunks < 0:
        yield "input and output need chunks; the loader divides by their numbers"
    peers = [peer for channels in gpu.channels for peer in channels.connected_to]
    owners = [buffer.rank for buffer in gpu.remote_buffers]
    if any(peer == rank or peer not in range(ranks) for peer in [*peers, *owners]):
        yield f"rank {rank} names itself, or a rank that is not there, as its peer"
    if any(buffer.type not in ("i", "o", "s") for buffer in gpu.remote_buffers):
        yield f"rank {rank} names a buffer that is not there"


def _block_faults(gpu: PlanGpu, block: Block, limit: int) -> Iterator[str]:
    from colsynth.execute.plans import KNOWN
    from colsynth.execute.team import listed
    from colsynth.runtimes.plans.form import operations

    ops = operations(block)
    if len(ops) > limit:
        yield f"has {len(ops)} operations; the loader takes {limit}"
    if unknown := sorted({op.name for op in ops} - KNOWN):
        yield f"has operations that are not executed: {', '.join(unknown)}"
    channels, remotes = listed(block.channels), listed(block.remote_buffer_refs)
    for kind, ids in channels.items():
        own = [c for c in gpu.channels if c.channel_type == kind]
        count = sum(len(c.rank_groups if kind == "switch" else c.connected_to) for c in own)
        if any(number not in range(count) for number in ids):
            yield f"lists {kind} channels that rank {gpu.id} does not have"
    if any(k not in range(len(gpu.remote_buffers)) for ids in remotes.values() for k in ids):
        yield f"lists remote buffers that rank {gpu.id} does not have"
    for op in ops:
        own_channels = range(len(channels[op.channel_type or "memory"]))
        if any(k not in own_channels for k in op.channel_ids):
            yield f"names a channel in {op.name} that it does not list"
        if any(k not in range(len(gpu.semaphores)) for k in op.semaphore_ids):
            yield f"names a semaphore in {op.name} that is not there"
