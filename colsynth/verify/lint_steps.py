"""Rules about single steps and about fused local reductions: S (contract 6)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from colsynth.model import StepTable
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.contract import REDUCING, buffer_chunks
from colsynth.verify.table import (
    ABSENT,
    BUFFERS,
    NO_BUFFER,
    NOP,
    OPS,
    RE,
    READS_SOURCE,
    RECEIVES,
    REDUCES,
    RRC,
    RRCS,
    SENDS,
    UNKNOWN,
    WRITES_TARGET,
    Bools,
    Ints,
    Table,
)

Message = Callable[[int], str]

_FUSED_UNTIL = 16
"""The loader cuts a chain of local reductions behind the 16th of a threadblock."""
_FAST_CHAINS = (7, 15)
"""Chain lengths that RCCL's kernel has unrolled."""
_LAST_BUFFER = 2
"""Code of the last buffer that exists."""


def lint_steps(
    table: Table, profile: Profile, findings: Findings, *, custom: bool, steps: StepTable
) -> None:
    """Check every step; `steps` holds their types as spelt."""
    _amounts(table, profile, findings)
    _types(table, profile, findings, steps)
    _operands(table, profile, findings, custom=custom)
    if not custom and table.header.collective not in REDUCING:
        text = f"a reduction has no place in {table.header.collective}"
        _each(table, findings, "S14", REDUCES[table.op], lambda _: text)
    for chain in chains(table):
        _chain(table, profile, findings, chain)


def _amounts(table: Table, profile: Profile, findings: Findings) -> None:
    lengths = np.diff(table.start)
    for block in np.flatnonzero(lengths > profile.max_steps).tolist():
        text = f"{lengths[block]} steps; {profile.name} holds {profile.max_steps}"
        findings.add("S03", text, int(table.rank[block]), int(table.id[block]))
    wrong = (table.op != NOP) & ((table.count < 1) | (table.count > profile.max_count))
    _each(table, findings, "S07", wrong, lambda step: f"cnt is {table.count[step]}")


def _types(table: Table, profile: Profile, findings: Findings, steps: StepTable) -> None:
    unknown = table.op == UNKNOWN
    _each(
        table,
        findings,
        "S04",
        unknown,
        lambda step: f"no runtime runs {steps.words[steps.op[step]]!r} steps",
    )
    launched = np.isin(np.arange(UNKNOWN), [OPS.index(op) for op in profile.ops])
    refused = ~unknown & ~launched[table.op.clip(0, UNKNOWN - 1)]
    text = f"{profile.name} does not launch these steps; the collective fails"
    _each(table, findings, "S05", refused, lambda step: f"{OPS[table.op[step]]}: {text}")
    lacks_send = SENDS[table.op] & (table.send[table.threadblock] < 0)
    lacks_recv = RECEIVES[table.op] & (table.recv[table.threadblock] < 0)
    _each(
        table,
        findings,
        "S06",
        lacks_send | lacks_recv,
        lambda step: f"{OPS[table.op[step]]} needs a {'send' if lacks_send[step] else 'recv'} peer",
    )


def _operands(table: Table, profile: Profile, findings: Findings, *, custom: bool) -> None:
    _operand(table, profile, findings, "src", custom=custom)
    _operand(table, profile, findings, "dst", custom=custom)


def _operand(
    table: Table, profile: Profile, findings: Findings, word: str, *, custom: bool
) -> None:
    if word == "src":
        buffer, offset, used = table.source_buffer, table.source, READS_SOURCE[table.op]
    else:
        buffer, offset, used = table.target_buffer, table.target, WRITES_TARGET[table.op]
    bad = (buffer == NO_BUFFER) | ((buffer == ABSENT) & used)
    _each(table, findings, "S09", bad, lambda _: f"{word}buf is not i, o or s")
    room = _room(table, buffer, custom=custom)
    end = offset + table.count
    outside = used & (buffer <= _LAST_BUFFER) & (table.count > 0)
    outside &= (offset < 0) | (end > room) | (offset > profile.max_offset)

    def message(step: int) -> str:
        place = f"{BUFFERS[buffer[step]]}[{offset[step]}..{end[step] - 1}]"
        return f"{word} is {place}, the buffer has {room[step]} chunks"

    _each(table, findings, "S08", outside, message)


def _room(table: Table, buffer: Ints, *, custom: bool) -> Ints:
    """Return the chunks each operand's buffer has: declared, and given by the call."""
    inputs, outputs = buffer_chunks(table.header)
    declared = np.stack([table.input_chunks, table.output_chunks, table.scratch_chunks])
    if not custom:
        declared[0] = declared[0].clip(max=inputs)
        declared[1] = declared[1].clip(max=outputs)
    rank = table.step_rank
    known = (rank >= 0) & (rank < table.header.ranks)
    found: Ints = np.where(
        known, declared[buffer.clip(0, 2), rank.clip(0, table.header.ranks - 1)], 0
    )
    return found


def foreign_operands(table: Table, findings: Findings) -> None:
    """Warn of receive-and-reduce steps whose local operand is not what they write (S11)."""
    fused = np.isin(table.op, (RRC, RRCS))
    differ = (table.source_buffer != table.target_buffer) | (table.source != table.target)
    text = "adds a chunk other than the one it writes; src is the local operand"
    _each(table, findings, "S11", fused & differ, lambda _: text)


def chains(table: Table) -> list[list[int]]:
    """Return the runs of local reductions that the loader joins into one transfer."""
    does = np.flatnonzero(np.isin(table.op, (NOP, UNKNOWN), invert=True))
    adds = table.op[does] == RE
    if not adds.any():
        return []
    same = (table.threadblock, table.target_buffer, table.target, table.source_buffer)
    joins = adds[1:] & adds[:-1] & (table.wait_id[does[1:]] == -1) & ~table.signals[does[:-1]]
    for column in same:
        joins &= column[does[1:]] == column[does[:-1]]
    opens = adds & ~np.concatenate([[False], joins])
    steps, ends = does[adds].tolist(), [*np.flatnonzero(opens[adds]).tolist(), int(adds.sum())]
    return [steps[begin:end] for begin, end in pairwise(ends)]


def _chain(table: Table, profile: Profile, findings: Findings, chain: list[int]) -> None:
    if len(chain) == 1:
        return
    place = table.place(chain[0])
    counts = sorted(set(table.count[chain].tolist()))
    if len(counts) > 1:
        findings.add("S12", f"{len(chain)} fused reductions have counts {counts}", *place)
    if not profile.fuses:
        if len(chain) > max(_FAST_CHAINS) or max(_FAST_CHAINS) > len(chain) > min(_FAST_CHAINS):
            text = f"right but slow: {len(chain)} fused reductions; up to 7 are fast, 15 on gfx90a"
            findings.add("S13", text, *place)
        return
    first = _first_reduction(table, chain[0])
    cut = max(0, min(len(chain), _FUSED_UNTIL - first))
    longest = max(cut, len(chain) - cut)
    limit = 15 if table.header.protocol == "Simple" else 16
    if longest > limit:
        text = f"{longest} fused reductions; {table.header.protocol} handles {limit}"
        findings.add("S13", text, *place)


def _first_reduction(table: Table, step: int) -> int:
    """Return how many local reductions of the threadblock come before a step."""
    start = int(table.start[table.threadblock[step]])
    return int((table.op[start:step] == RE).sum())


def _each(table: Table, findings: Findings, rule: str, wrong: Bools, message: Message) -> None:
    for step in np.flatnonzero(wrong).tolist():
        findings.add(rule, message(step), *table.place(step))
