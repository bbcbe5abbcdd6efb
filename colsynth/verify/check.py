"""Puts the checks together: bytes or a program in, a report out."""

from __future__ import annotations

from dataclasses import replace

from colsynth.gc_pause import gc_paused
from colsynth.model import Finding, Header, Report, ThreadblockProgram
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.reader import Reading
from colsynth.runtimes.rules import Findings
from colsynth.runtimes.schedules import read
from colsynth.units import plural
from colsynth.verify.contract import modes
from colsynth.verify.lint_connections import lint_connections
from colsynth.verify.lint_data import lint_data
from colsynth.verify.lint_gpus import lint_gpus
from colsynth.verify.lint_header import lint_header
from colsynth.verify.lint_steps import foreign_operands, lint_steps
from colsynth.verify.lint_waits import lint_waits
from colsynth.verify.table import Table, tabulate
from colsynth.verify.termination import Termination, check_termination
from colsynth.verify.units import Units, resolve

Facts = tuple[tuple[str, str], ...]


def verify_bytes(
    data: bytes, profile: Profile, *, subject: str, single_node: bool | None = None
) -> Report:
    """Check a schedule file as `profile`'s runtime would read and execute it.

    Parameters
    ----------
    data : bytes
        The whole file.
    profile : Profile
    subject : str
        Name of the file, for the report.
    single_node : bool or None
        Whether all ranks are in one node, None where that is not known. Decides rules
        C04 and T07.

    Returns
    -------
    Report
        All findings, not the first; `Report.ok` is the verdict.
    """
    with gc_paused():
        reading = read(data, profile, file=subject, steps=False)
        return verify_reading(reading, profile, subject=subject, single_node=single_node)


def verify_reading(
    reading: Reading, profile: Profile, *, subject: str, single_node: bool | None = None
) -> Report:
    """Check a schedule file that was read already, as `verify_bytes` does.

    Parameters
    ----------
    reading : Reading
        What the runtime of `profile` makes of the file.
    profile, subject, single_node
        As for `verify_bytes`.
    """
    if profile.plans:
        from colsynth.verify.plans import verify_plan

        with gc_paused():
            return verify_plan(reading, profile, subject=subject)
    if profile.rounds:
        from colsynth.verify.rounds import verify_rounds

        with gc_paused():
            return verify_rounds(reading, profile, subject=subject)
    if not isinstance(reading.program, ThreadblockProgram):
        facts = (("content", "not checked: the header says too little"),)
        return Report(subject, profile.name, reading.findings, facts)
    with gc_paused():
        report = _verify(
            reading.program, profile, subject, custom=reading.custom, single_node=single_node
        )
        located = tuple(_located(finding, reading) for finding in report.findings)
    return replace(report, findings=reading.findings + located)


def verify_program(
    program: ThreadblockProgram,
    profile: Profile,
    *,
    subject: str,
    single_node: bool | None = None,
) -> Report:
    """Check a program as if it had been written to a file and read back.

    Parameters
    ----------
    program : ThreadblockProgram
        With at most one dependency per step.
    profile, subject, single_node
        As for `verify_bytes`.

    Raises
    ------
    DefectError
        CS591 when a step has more than one dependency.
    """
    return _verify(program, profile, subject, custom=False, single_node=single_node)


def _located(finding: Finding, reading: Reading) -> Finding:
    line = reading.line(finding.rank, finding.threadblock, finding.step)
    return replace(finding, line=line)


def _verify(
    program: ThreadblockProgram,
    profile: Profile,
    subject: str,
    *,
    custom: bool,
    single_node: bool | None,
) -> Report:
    findings = Findings(profile.name)
    table = tabulate(program)
    lint_header(table, profile, findings, custom=custom)
    lint_gpus(program, table, profile, findings, check_sizes=not custom, single_node=single_node)
    lint_steps(table, profile, findings, custom=custom, steps=program.steps)
    lint_waits(table, profile, findings)
    units = resolve(table)
    lint_connections(units, findings, single_node=single_node)
    run = check_termination(units, profile, findings)
    root = None
    if _is_placeable(table, findings):
        root = lint_data(units, run, profile, findings, custom=custom)
    if findings.failed:
        foreign_operands(table, findings)
    facts = _facts(table, units, run, custom=custom, root=root) + _notes(findings)
    return Report(subject, profile.name, findings.all(), facts)


def _is_placeable(table: Table, findings: Findings) -> bool:
    """Whether every step has a rank and every rank's buffers a size."""
    return not findings.has("G01", "A04") and table.steps > 0


def _facts(
    table: Table, units: Units, run: Termination, *, custom: bool, root: int | None
) -> Facts:
    header = table.header
    sized = "; ".join(
        f"{plural(sizing.group, 'chunk')} per call, {plural(sizing.tiles, 'tile')}"
        for sizing in run.sizings
    )
    facts = [
        ("collective", "custom" if custom else str(header.collective)),
        ("ranks", str(header.ranks)),
        ("modes", ", ".join(modes(header)) or "none"),
        ("content", _content(header, run, custom=custom)),
        ("threadblocks", str(table.threadblocks)),
        ("steps executed", str(units.total)),
        ("connections", str(len(units.connections))),
        ("FIFO depth", f"{run.depth} calls"),
        ("sizes", sized),
    ]
    if root is not None:
        facts.append(("root", str(root)))
    return tuple(facts)


def _notes(findings: Findings) -> Facts:
    """Return one remark per rule that is only a note."""
    first = dict(reversed(findings.notes))
    return tuple((f"note {rule}", first[rule]) for rule in sorted(first))


def _content(header: Header, run: Termination, *, custom: bool) -> str:
    if not modes(header):
        return "not executed: no call selects the file"
    if not run.finishes:
        return "not checked: the program does not finish"
    return "not checked: no agreed result" if custom else "executed symbolically"
