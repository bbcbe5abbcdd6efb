"""Rules about the header and about memory: A, K03, R (contract 6)."""

from __future__ import annotations

import numpy as np

from colsynth.model import Collective, Severity
from colsynth.runtimes.header import NAME_LIMIT
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.runtimes.selection import never_usual, taken_sizes
from colsynth.units import format_size
from colsynth.verify.contract import SHARDED
from colsynth.verify.table import Table

_COUNT_LIMIT = 2**31
MAX_TILES = 65536
_MEMORY_BUDGET = 4 * 2**30
"""Bytes of scratch or of connection buffers per GPU above which a warning is due."""


def lint_header(table: Table, profile: Profile, findings: Findings, *, custom: bool) -> None:
    """Check the header against the runtime and against what the program uses."""
    header = table.header
    if header.collective in SHARDED and header.chunks % header.ranks and not custom:
        text = f"{header.chunks} chunks do not divide among {header.ranks} ranks"
        findings.add("A04", f"{text}, as {header.collective} needs")
    _shape(table, profile, findings)
    if header.in_place and header.collective in profile.out_of_place_only and not custom:
        text = f"{profile.name} refuses in-place calls of {header.collective}"
        findings.add("A18", f"{text}, and runs the file in the others")
    _range(table, profile, findings)
    _rooted(table, findings)
    _memory(table, profile, findings)


def _shape(table: Table, profile: Profile, findings: Findings) -> None:
    header = table.header
    if header.ranks < 2:
        findings.add("A05", "a communicator of one rank never uses a schedule")
    if len(header.name) > NAME_LIMIT:
        findings.add("A11", f"the name has {len(header.name)} characters; {NAME_LIMIT} are kept")
    if header.name == "2D" and header.collective is Collective.ALLTOALL:
        findings.add("A11", "the name 2D makes the runtime ignore the file")
    used = int(table.channel.max(initial=-1)) + 1
    if header.channels > profile.hard_channels or used > header.channels or header.channels < 1:
        text = f"nchannels is {header.channels}, {used} are used"
        findings.add("A12", f"{text}, {profile.name} has {profile.hard_channels}")
    elif header.channels > profile.max_channels:
        text = f"nchannels is {header.channels}; most hardware has {profile.max_channels}"
        findings.add("A12", text, level=Severity.WARNING)
    distinct = len(np.unique(table.channel))
    if header.channels > distinct:
        findings.add("A13", f"nchannels is {header.channels}, only {distinct} are used")


def _range(table: Table, profile: Profile, findings: Findings) -> None:
    header = table.header
    most = header.max_bytes
    findings.add("K04", f"best for messages in multiples of {16 * header.chunks} bytes")
    law = taken_sizes(header, profile)
    findings.add("K05", never_usual(law) or f"used for messages in {law}")
    if header.min_bytes < profile.least_min_bytes:
        text = f"minBytes is {header.min_bytes}; a call of zero bytes fails"
        findings.add("A08", f"{text}, start at {profile.least_min_bytes}")
    if most is None:
        return
    findings.add("A09", f"the largest message served has {most} bytes, inclusive")
    if most >= _COUNT_LIMIT:
        text = f"messages of {_COUNT_LIMIT} bytes and more overflow the runtime's count"
        findings.add("A14", text)
    tile = profile.tile_bytes[header.protocol]
    tiles = -(-chunk_bytes(table, most) // tile)
    if tiles > MAX_TILES:
        text = f"a chunk of the largest message takes {tiles} tiles; flags count {MAX_TILES}"
        findings.add("K03", text)


def chunk_bytes(table: Table, message: int) -> int:
    """Return the size of a chunk of a message, rounded up."""
    return -(-message // table.header.chunks)


def _rooted(table: Table, findings: Findings) -> None:
    header = table.header
    if not header.collective.rooted:
        return
    text = f"the runtime ignores the root of a {header.collective}: use it for one root only"
    findings.add("A15", text)
    if not (header.in_place and header.out_of_place):
        served = "in-place" if header.in_place else "out-of-place"
        text = f"only {served} calls are served; ranks may disagree on the mode and hang"
        findings.add("A16", text)


def _memory(table: Table, profile: Profile, findings: Findings) -> None:
    header = table.header
    scratch = int(table.scratch_chunks.max(initial=0))
    if header.max_bytes is not None and scratch:
        need = header.max_bytes * scratch // header.chunks
        if need > _MEMORY_BUDGET:
            text = f"{scratch} scratch chunks of the largest message take {format_size(need)}"
            findings.add("R01", text)
    ends = (table.send >= 0).astype(np.int64) + (table.recv >= 0)
    known = (table.rank >= 0) & (table.rank < header.ranks)
    per_rank = np.bincount(table.rank[known], weights=ends[known], minlength=1)
    need = int(per_rank.max()) * profile.connection_bytes
    if need > _MEMORY_BUDGET:
        rank = int(per_rank.argmax())
        text = f"{int(per_rank[rank])} connection ends take about {format_size(need)} of buffers"
        findings.add("R02", text, rank)
