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
_MEMORY_BUDGET = 4 * 2**30
"""Bytes of scratch or of connection buffers per GPU from which on a warning is due."""
_MEMORY = 2**40
"""Bytes that no GPU holds (the largest have 288 GB), and so no message reaches."""


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
        text = f"the file runs on hardware with {header.channels} channels or more; most has"
        text += f" {profile.max_channels}"
        findings.add("A12", text, level=Severity.WARNING)
    distinct = len(np.unique(table.channel))
    if header.channels > distinct:
        findings.add(
            "A13", f"harmless but wasteful: nchannels is {header.channels}, {distinct} are used"
        )


def _range(table: Table, profile: Profile, findings: Findings) -> None:
    header = table.header
    most = header.max_bytes
    findings.add("K04", f"best for messages in multiples of {16 * header.chunks} bytes")
    law = taken_sizes(header, profile)
    findings.add("K05", never_usual(law) or f"used for messages in {law}")
    if header.min_bytes < profile.least_min_bytes:
        text = f"minBytes is {header.min_bytes}; a call of zero bytes fails"
        findings.add("A08", f"{text}, start at {profile.least_min_bytes}")
    if most is not None:
        findings.add("A09", f"the largest message served has {most} bytes, inclusive")
        if most >= _COUNT_LIMIT:
            text = f"messages of {_COUNT_LIMIT} bytes and more overflow the runtime's count"
            findings.add("A14", text)
    counted = profile.max_tiles * profile.tile_bytes[header.protocol] * header.chunks
    if _reached(table, profile) > counted:
        bound = "sets no limit" if most is None else f"admits {most} bytes"
        text = f"the header {bound}, but flags count {profile.max_tiles} tiles: a message of more"
        text += f" than {counted} bytes never ends; write maxBytes="
        findings.add("K03", f'{text}"{counted + int(profile.exclusive_max)}"')


def _reached(table: Table, profile: Profile) -> int:
    """Return the bytes of the largest message that can select the file.

    Where the header sets no limit, a message still lies in the memory of one GPU.
    """
    if table.header.max_bytes is not None:
        return table.header.max_bytes
    return min(profile.default_max_bytes or _MEMORY, _MEMORY)


def _rooted(table: Table, findings: Findings) -> None:
    header = table.header
    if not header.collective.rooted:
        return
    text = (
        f"the file is for one root; a {header.collective} with another runs it too, and goes wrong"
    )
    findings.add("A15", text)
    if not (header.in_place and header.out_of_place):
        served = "in-place" if header.in_place else "out-of-place"
        text = f"the file is for {served} calls alone; ranks may disagree on the mode and hang"
        findings.add("A16", text)


def _memory(table: Table, profile: Profile, findings: Findings) -> None:
    header = table.header
    _scratch(table, profile, findings)
    ends = (table.send >= 0).astype(np.int64) + (table.recv >= 0)
    known = (table.rank >= 0) & (table.rank < header.ranks)
    per_rank = np.bincount(table.rank[known], weights=ends[known], minlength=1)
    need = int(per_rank.max()) * profile.connection_bytes
    if need > _MEMORY_BUDGET:
        rank = int(per_rank.argmax())
        text = f"the file is right but takes about {format_size(need)} of memory on a GPU: buffers"
        text += f" of {int(per_rank[rank])} connection ends"
        findings.add("R02", text, rank)


def _scratch(table: Table, profile: Profile, findings: Findings) -> None:
    """Check the memory for scratch (R01).

    With a list of files it is allocated for the largest message when the communicator starts.
    In a directory, sizes that never occur cost nothing; there, scratch may be nearly as large
    as the message.
    """
    header = table.header
    message = _reached(table, profile)
    if profile.directory:
        message = min(message, _MEMORY_BUDGET)
    scratch = int(table.scratch_chunks.max(initial=0))
    need = message * scratch // header.chunks
    if need < _MEMORY_BUDGET:
        return
    text = f"scratch is {scratch / header.chunks:,.1f} times the message:"
    text += f" {need / 2**30:,.1f} GiB for one of {format_size(message)}"
    if need > _MEMORY:
        findings.add("R01", f"{text}, more than any GPU has", level=Severity.ERROR)
    else:
        findings.add("R01", f"the file is right, but {text}")
