"""Rules about GPUs and threadblocks: X10, X11, G, T (contract 6)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from colsynth.model import Gpu, Severity, ThreadblockProgram
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.contract import buffer_chunks
from colsynth.verify.table import NOP, RECEIVES, SENDS, Table

_MAX_CHILDREN = 1024


def lint_gpus(
    program: ThreadblockProgram,
    table: Table,
    profile: Profile,
    findings: Findings,
    *,
    check_sizes: bool,
    single_node: bool | None,
) -> None:
    """Check every GPU and threadblock; `check_sizes` compares buffers with the collective."""
    _ranks(program, findings)
    for gpu in program.gpus:
        _size(gpu, program, profile, findings)
        if check_sizes:
            _buffers(gpu, program, findings)
        _ids(gpu, profile, findings)
    _threadblocks(table, findings)
    _ends(table, findings)
    _unused_peers(table, profile, findings, single_node)


def _ranks(program: ThreadblockProgram, findings: Findings) -> None:
    count = Counter(gpu.rank for gpu in program.gpus)
    ranks = program.header.ranks
    for rank in sorted(count):
        if count[rank] > 1:
            findings.add("G01", f"rank {rank} has {count[rank]} gpu elements", rank)
        if not 0 <= rank < ranks:
            findings.add("G01", f"there is no rank {rank} among {ranks}", rank)
    missing = [rank for rank in range(ranks) if rank not in count]
    if missing:
        findings.add("G01", f"ranks without a gpu element: {missing}")
    if len(count) != ranks:
        findings.add("A05", f"ngpus is {ranks}, the file has GPUs for {len(count)} ranks")


def _size(gpu: Gpu, program: ThreadblockProgram, profile: Profile, findings: Findings) -> None:
    steps = [len(threadblock.steps) for threadblock in gpu.threadblocks]
    nodes = program.header.ranks + len(steps) + sum(steps)
    if nodes > profile.max_xml_nodes:
        text = f"{nodes} nodes (ranks, threadblocks, steps); the parser holds"
        findings.add("X10", f"{text} {profile.max_xml_nodes}", gpu.rank)
    if max([len(steps), program.header.ranks, *steps]) > _MAX_CHILDREN:
        findings.add("X11", f"an element has more than {_MAX_CHILDREN} children", gpu.rank)


def _buffers(gpu: Gpu, program: ThreadblockProgram, findings: Findings) -> None:
    inputs, outputs = buffer_chunks(program.header)
    for word, has, needs in (
        ("i_chunks", gpu.input_chunks, inputs),
        ("o_chunks", gpu.output_chunks, outputs),
    ):
        if has not in (0, needs):
            text = f"{word} is {has}; {program.header.collective} has {needs} (or 0, if unused)"
            findings.add("G02", text, gpu.rank)


def _ids(gpu: Gpu, profile: Profile, findings: Findings) -> None:
    ids = [threadblock.id for threadblock in gpu.threadblocks]
    if not ids:
        findings.add("G03", "a GPU without threadblocks cannot be launched", gpu.rank)
    if ids != list(range(len(ids))):
        repeated = sorted(n for n, times in Counter(ids).items() if times > 1)
        what = f"repeated: {repeated}" if repeated else f"found {min(ids)} to {max(ids)}"
        text = f"{len(ids)} threadblock ids must be 0 to {len(ids) - 1}, once each; {what}"
        findings.add("T01", text, gpu.rank)
    if len(ids) > profile.max_threadblocks:
        text = f"{len(ids)} threadblocks; {profile.name} holds {profile.max_threadblocks}"
        findings.add("T02", text, gpu.rank)
    elif len(ids) > profile.resident_threadblocks:
        text = f"the file runs on GPUs that hold {len(ids)} threadblocks at a time; every GPU"
        findings.add("T08", f"{text} holds {profile.resident_threadblocks}", gpu.rank)
    if ids and len(ids) % 4 == 0:
        findings.add(
            "T09", f"harmless: on an H100 the blocks of rank {gpu.rank} run in clusters of 4"
        )
    channels = Counter(threadblock.channel for threadblock in gpu.threadblocks)
    for channel in sorted(channels):
        if channels[channel] > profile.max_threadblocks_per_channel:
            text = f"{channels[channel]} threadblocks share channel {channel}; at most"
            findings.add("T05", f"{text} {profile.max_threadblocks_per_channel}", gpu.rank)


def _threadblocks(table: Table, findings: Findings) -> None:
    ranks = table.header.ranks
    works = np.bincount(table.threadblock[table.op != NOP], minlength=table.threadblocks) > 0
    for word, peers in (("send", table.send), ("recv", table.recv)):
        wrong = (peers < -1) | (peers >= ranks) | (peers == table.rank)
        for block in np.flatnonzero(wrong).tolist():
            text = f"{word} peer {peers[block]} is not another rank of 0 to {ranks - 1}"
            findings.add("T03", text, int(table.rank[block]), int(table.id[block]))
    outside = (table.channel < 0) | (table.channel >= table.header.channels)
    for block in np.flatnonzero(outside).tolist():
        text = f"channel {table.channel[block]} is not among {table.header.channels}"
        findings.add("T04", text, int(table.rank[block]), int(table.id[block]))
    for block in np.flatnonzero(~works).tolist():
        text = "a threadblock without work only costs a place"
        place = int(table.rank[block]), int(table.id[block])
        findings.add("G03", text, *place, level=Severity.WARNING)


def _ends(table: Table, findings: Findings) -> None:
    for word, peers in (("send to", table.send), ("receive from", table.recv)):
        first: dict[tuple[int, int, int], int] = {}
        for block in np.flatnonzero(peers >= 0).tolist():
            rank, peer, channel = (int(a[block]) for a in (table.rank, peers, table.channel))
            other = first.setdefault((rank, peer, channel), block)
            if other != block:
                text = f"threadblocks {table.id[other]} and {table.id[block]} both {word}"
                place = rank, int(table.id[block])
                findings.add("T06", f"{text} rank {peer} on channel {channel}", *place)


def _unused_peers(
    table: Table, profile: Profile, findings: Findings, single_node: bool | None
) -> None:
    fails = single_node is False and not profile.directory
    for word, peers, does in (("send", table.send, SENDS), ("recv", table.recv, RECEIVES)):
        busy = np.bincount(table.threadblock[does[table.op]], minlength=table.threadblocks) > 0
        for block in np.flatnonzero((peers >= 0) & ~busy).tolist():
            text = f"{word} peer {peers[block]} is declared, but no step uses it"
            text += "; within a node that only costs buffers" * (not fails)
            level = Severity.ERROR if fails else None
            findings.add("T07", text, int(table.rank[block]), int(table.id[block]), level=level)
