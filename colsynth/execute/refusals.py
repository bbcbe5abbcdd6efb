"""Why a file is not executed: what its runtime would not load, connect or launch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from colsynth.execute.threadblocks import RECEIVES, SENDS
from colsynth.model import Collective, Severity, ThreadblockProgram

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Plan
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


def _of_program(program: ThreadblockProgram, profile: Profile) -> str | None:
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
    from colsynth.execute.plans import KNOWN
    from colsynth.runtimes.plans.form import operations

    limit = int(profile.plans["operations"])
    for rank, gpu in enumerate(plan.gpus):
        if gpu.id != rank:
            return f"the GPU at place {rank} has id {gpu.id}; the loader refuses the plan"
        if gpu.input_chunks < 1 or gpu.output_chunks < 1:
            return "input and output need chunks; the loader divides by their numbers"
        for block in gpu.threadblocks:
            ops = operations(block)
            where = f"threadblock {block.id} of rank {rank}"
            if len(ops) > limit:
                return f"{where} has {len(ops)} operations; the loader takes {limit}"
            if unknown := sorted({op.name for op in ops} - KNOWN):
                return f"{where} has operations that are not executed: {', '.join(unknown)}"
    return None
