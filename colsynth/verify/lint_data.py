"""Rules about data: B01 to B08, for each call mode the header claims (contract 4.5, 4.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.model import Collective
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.clocks import Past
from colsynth.verify.contents import Outcome, evaluate, ranks
from colsynth.verify.contract import (
    OUT_OF_PLACE,
    Layout,
    expected,
    layout,
    modes,
    wanted,
)
from colsynth.verify.races import Accesses, Pairs, accesses, conflicts, locate, overtaken, unordered
from colsynth.verify.table import (
    BUFFERS,
    READS_SOURCE,
    READS_TARGET,
    WRITES_TARGET,
    Bools,
    Ints,
    S,
    Table,
)
from colsynth.verify.termination import Termination
from colsynth.verify.units import Units

_INPUT, _OUTPUT = 0, 1


@dataclass(frozen=True)
class ModeRun:
    """Everything known about one call mode."""

    layout: Layout
    found: Accesses
    pairs: Pairs
    outcome: Outcome


def lint_data(
    units: Units, run: Termination, profile: Profile, findings: Findings, *, custom: bool
) -> int | None:
    """Execute the program symbolically under each claimed mode and report what is wrong.

    Parameters
    ----------
    units : Units
    run : Termination
        Gives an order in which steps may complete.
    profile : Profile
    findings : Findings
    custom : bool
        Whether the collective has no agreed result; then only races and reads are judged.

    Returns
    -------
    int or None
        The root of a broadcast or reduce.
    """
    table, header = units.table, units.table.header
    scratch = table.scratch_chunks.clip(max=profile.max_offset + 1)
    runs = []
    for mode in modes(header):
        memory = layout(header, mode, scratch)
        source, target = locate(table, memory)
        found = accesses(table, run.order, source, target)
        pairs = conflicts(found, table)
        runs.append(
            ModeRun(memory, found, pairs, evaluate(units, run.order, memory, source, target))
        )
    _races(units, run, profile, findings, runs)
    root = None
    for one in runs:
        _reads(units, findings, one)
        if not custom:
            root = _judge(units, run, findings, one)
            _keeps_input(table, findings, one, root)
    return root


def _judge(units: Units, run: Termination, findings: Findings, one: ModeRun) -> int | None:
    """Check sums and, where the program finishes, the final content; return the root."""
    table = units.table
    numbers = one.outcome.numbers
    for number in one.outcome.doubled.tolist():
        text = f"{one.layout.mode}: {one.outcome.describe(number)}"
        findings.add("B05", text, *table.place(int(numbers.step[number])))
    if not run.finishes:
        return None
    root = _root(table, one) if table.header.collective.rooted else None
    right = _results(table, findings, one, root)
    if right and table.header.collective is Collective.ALLREDUCE:
        _same_sums(table, findings, one)
    return root


def _root(table: Table, one: ModeRun) -> int:
    """Return a rank that fits as the root, the stated one by preference."""
    header = table.header
    stated = header.root
    order = list(range(header.ranks))
    if stated is not None and 0 <= stated < header.ranks:
        order.insert(0, stated)
    scores = [(_wrong_chunks(table, one, root), root) for root in order]
    for wrong, root in scores:
        if not wrong:
            return root
    return stated if stated is not None else min(scores)[1]


def _wrong_chunks(table: Table, one: ModeRun, root: int | None) -> int:
    header = table.header
    return sum(len(_wrong(table, one, rank, root)) for rank in range(header.ranks))


def _wrong(table: Table, one: ModeRun, rank: int, root: int | None) -> list[int]:
    """Return the output chunks of a rank that do not hold what they must."""
    chunk, who = wanted(table.header, rank, root)
    base = int(one.layout.base[rank, _OUTPUT])
    held = one.outcome.memory[base : base + len(chunk)]
    found: list[int] = np.flatnonzero(~one.outcome.right(held, chunk, who)).tolist()
    return found


def _results(table: Table, findings: Findings, one: ModeRun, root: int | None) -> bool:
    """Report output chunks that are wrong (B01); return whether none is."""
    numbers, memory = one.outcome.numbers, one.outcome.memory
    right = True
    for rank in range(table.header.ranks):
        base = int(one.layout.base[rank, _OUTPUT])
        wrong = _wrong(table, one, rank, root)
        if not wrong:
            continue
        right = False
        chunk = wrong[0]
        number, mask = expected(table.header, rank, root)[chunk]
        held = int(memory[base + chunk])
        text = (
            f"{one.layout.mode}: {len(wrong)} of the output chunks are wrong; o[{chunk}] holds"
            f" {one.outcome.describe(held)}, must hold chunk {number} of {ranks(mask)}"
        )
        if numbers.fault[held] and numbers.step[held] >= 0:
            text += f"; first at {table.name(int(numbers.step[held]))}"
        findings.add("B01", text, rank)
    return right


def _same_sums(table: Table, findings: Findings, one: ModeRun) -> None:
    """Report chunks that different ranks sum up in different orders (B05)."""
    header, memory = table.header, one.outcome.memory
    held = [memory[base : base + header.chunks] for base in one.layout.base[:, _OUTPUT].tolist()]
    for rank in range(1, header.ranks):
        differ = np.flatnonzero(held[rank] != held[0]).tolist()
        if differ:
            text = f"{one.layout.mode}: {len(differ)} chunks, from chunk {differ[0]} on, are added"
            findings.add("B05", f"{text} in another order than on rank 0", rank)
            return


def _reads(units: Units, findings: Findings, one: ModeRun) -> None:
    table = units.table
    for step in one.outcome.undefined.tolist():
        letter = BUFFERS[int(table.source_buffer[step].clip(0, 2))]
        text = f"{one.layout.mode}: reads memory nobody wrote, {letter}[{table.source[step]}]"
        findings.add("B02", text, *table.place(step))


def _keeps_input(table: Table, findings: Findings, one: ModeRun, root: int | None) -> None:
    """Check what an out-of-place call must not touch (B03, B08)."""
    if one.layout.mode != OUT_OF_PLACE:
        return
    writes = WRITES_TARGET[table.op] & (table.target_buffer == _INPUT)
    for step in np.flatnonzero(writes).tolist():
        findings.add("B03", "writes to the input of an out-of-place call", *table.place(step))
    if root is None:
        return
    untouchable = _OUTPUT if table.header.collective is Collective.REDUCE else _INPUT
    touches = _touches(table, untouchable) & (table.step_rank != root)
    letter = BUFFERS[untouchable]
    for step in np.flatnonzero(touches).tolist():
        text = f"touches {letter}, which may not exist on ranks other than the root ({root})"
        findings.add("B08", text, *table.place(step))


def _touches(table: Table, buffer: int) -> Bools:
    reads = READS_SOURCE[table.op] & (table.source_buffer == buffer)
    uses_target = READS_TARGET[table.op] | WRITES_TARGET[table.op]
    touched: Bools = reads | (uses_target & (table.target_buffer == buffer))
    return touched


def _races(
    units: Units, run: Termination, profile: Profile, findings: Findings, runs: list[ModeRun]
) -> None:
    """Report conflicting accesses that nothing orders (B04, B07)."""
    past = Past(units, run.order)
    weak = not profile.fuses and units.table.header.protocol == "LL" and _flags_sends(units)
    known = [unordered(one.pairs, one.found, past) for one in runs]
    for one, pairs in zip(runs, known, strict=True):
        _report(units.table, findings, one, pairs, "B04", "race")
    for one, pairs in zip(runs, known, strict=True) if weak else ():
        frail = unordered(one.pairs, one.found, past, weak_sends=True)
        fresh = frail[~np.isin(frail, pairs)]
        _report(units.table, findings, one, fresh, "B07", "only the flag of an LL send orders")
    for one in runs:
        late = overtaken(one.pairs, one.found, units, run.sizings[0].group)
        _report(units.table, findings, one, late, "B04", "race within one message")
        _handed_over(units.table, findings, one)


def _flags_sends(units: Units) -> bool:
    return bool((units.table.signals & (units.table.op == S)).any())


def _report(
    table: Table, findings: Findings, one: ModeRun, pairs: Ints, rule: str, what: str
) -> None:
    """Report each pair of steps once, by the first chunk they clash on."""
    seen: set[tuple[int, int]] = set()
    for pair in pairs.tolist():
        first, second = int(one.pairs.earlier[pair]), int(one.pairs.later[pair])
        steps = int(one.found.step[first]), int(one.found.step[second])
        if steps in seen:
            continue
        seen.add(steps)
        text = (
            f"{one.layout.mode}: {what}: {table.name(steps[0])} {_access(table, one, first)},"
            f" {table.name(steps[1])} {_access(table, one, second)}"
        )
        findings.add(rule, text, *table.place(steps[1]))


def _access(table: Table, one: ModeRun, access: int) -> str:
    """Return ``"writes o[3]"`` for an access."""
    found = one.found
    step, letter = int(found.step[access]), int(found.buffer[access])
    base = int(one.layout.base[int(table.step_rank[step]), letter])
    verb = "writes" if found.writes[access] else "reads"
    return f"{verb} {BUFFERS[letter]}[{int(found.location[access]) - base}]"


def _handed_over(table: Table, findings: Findings, one: ModeRun) -> None:
    """Report reads, by the name i, of what another threadblock wrote (B06)."""
    found, pairs = one.found, one.pairs
    reads = found.writes[pairs.earlier] & ~found.writes[pairs.later]
    by_input = reads & (found.buffer[pairs.later] == _INPUT)
    steps = np.unique(found.step[pairs.later[by_input]])
    for step in steps.tolist():
        text = f"{one.layout.mode}: reads through i what another threadblock wrote"
        findings.add("B06", text, *table.place(step))
