"""``colsynth verify``: check schedule files as a runtime would read and execute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._options import RUNTIMES
from colsynth.cli.failure import error_object, report
from colsynth.cli.progress import progress
from colsynth.cli.streams import STDIN, is_stdin, read_stdin, require_one_stdin
from colsynth.errors import EXIT_INPUT, EXIT_NEGATIVE, InputError
from colsynth.units import plural

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.model import Finding, Report
    from colsynth.runtimes.profile import Profile

FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Schedule files, e.g. allreduce.xml.", show_default=False
    ),
]
FilesOrStdinArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Schedule files; - reads one from stdin.", show_default=False
    ),
]
ReaderOption = Annotated[
    str | None,
    typer.Option(
        "-r",
        "--runtime",
        metavar="RUNTIME",
        autocompletion=complete.runtimes,
        help=f"Runtime that loads the schedule: {RUNTIMES}. Required for XML, which several "
        "runtimes read.",
        show_default="the only one that reads the file's format",
    ),
]


def verify(
    files: FilesOrStdinArgument,
    runtime: ReaderOption = None,
    single_node: Annotated[
        bool | None,
        typer.Option(
            "--single-node/--multi-node",
            help="State whether all ranks are in one node; some rules depend on it.",
            show_default="not known",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check that a runtime loads schedule files, that they finish, and are right."""
    from colsynth.runtimes import profile
    from colsynth.verify import verify_bytes

    named = None if runtime is None else profile(runtime)
    require_one_stdin(*files)
    read, refused = _read(files, named)
    targets = [target for _, _, target in read]
    reports = []
    with progress("no report was made") as show:
        for number, (name, data, target) in enumerate(read):
            show(f"verify {Path(name).name}", number, len(read))
            reports.append(verify_bytes(data, target, subject=name, single_node=single_node))
    if json:
        emit_json(_answer(reports, targets, refused))
    else:
        console = answer_console()
        for one in reports:
            show_report(console, one)
        for warning in dict.fromkeys(text for target in targets for text in target.warnings):
            console.print(f"note: {warning}", soft_wrap=True)
    for error in refused.values():
        report(error, as_json=False)  # the answer has it too
    if refused:
        raise typer.Exit(EXIT_INPUT)
    if not all(one.ok for one in reports):
        raise typer.Exit(EXIT_NEGATIVE)


def _read(
    files: Sequence[Path], named: Profile | None
) -> tuple[list[tuple[str, bytes, Profile]], dict[str, InputError]]:
    """Return names, bytes and runtimes of files, and why others cannot be verified.

    One among several does not keep the others from being verified, as long as it is the file that
    is wrong: that its runtime is not told (CS608) is a fault of the command.
    """
    from colsynth.runtimes.readers import only_reader

    read, refused = [], dict[str, InputError]()
    for path in files:
        try:
            name, data = read_schedule(path)
            read.append((name, data, only_reader(data, name, named)))
        except InputError as fault:
            if len(files) == 1 or fault.diagnostic.code == "CS608":
                raise
            refused[str(path)] = fault
    return read, refused


def _answer(
    reports: Sequence[Report], targets: Sequence[Profile], refused: Mapping[str, InputError]
) -> dict[str, Any]:
    """Return reports for ``--json``; without one runtime for all files, each file has its own."""
    names = {target.name for target in targets}
    notes = dict.fromkeys(x for target in targets for x in (*target.warnings, *target.notes))
    unread = [
        {"file": name, "ok": False, "error": error_object(error)} for name, error in refused.items()
    ]
    return {
        "runtime": names.pop() if len(names) == 1 else None,
        "ok": not refused and all(one.ok for one in reports),
        "notes": list(notes),
        "files": [*map(report_object, reports), *unread],
    }


def read_schedule(path: Path) -> tuple[str, bytes]:
    """Return the name of a schedule file in answers, and its bytes; ``-`` is stdin.

    Raises
    ------
    InputError
        CS502 when the file cannot be read, CS215 when stdin is closed.
    """
    from colsynth.reading import SCHEDULE
    from colsynth.runtimes import read_file

    return (STDIN, read_stdin(SCHEDULE)) if is_stdin(path) else (str(path), read_file(path))


def report_object(report: Report) -> dict[str, Any]:
    """Return a report for ``--json``."""
    return {
        "file": report.subject,
        "runtime": report.runtime,
        "ok": report.ok,
        "findings": [_finding_object(finding) for finding in report.findings],
        "facts": dict(report.facts),
    }


def show_report(console: Console, report: Report) -> None:
    """Print the verdict on one file, its findings by rule, and the facts that were checked."""
    errors = len(report.errors)
    warnings = len(report.findings) - errors
    verdict = "ok" if report.ok else "BAD"
    console.print(
        f"{report.subject}: {verdict} on {report.runtime}"
        f" ({plural(errors, 'error')}, {plural(warnings, 'warning')})"
    )
    if report.findings:
        table = ruled_table("rule", "", "where", "finding")
        ordered = sorted(report.findings, key=lambda f: (f.severity.value, f.rule))
        for finding in ordered:
            table.add_row(finding.rule, finding.severity.value, _where(finding), finding.message)
        console.print(table)
        console.print(f"`colsynth explain {ordered[0].rule}` says more about a rule")
    for name, fact in report.facts:
        console.print(f"  {name}: {fact}")


def _finding_object(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "rank": finding.rank,
        "threadblock": finding.threadblock,
        "step": finding.step,
        "line": finding.line,
    }


def _where(finding: Finding) -> str:
    parts = [] if finding.line is None else [f"line {finding.line}"]
    if finding.rank is not None:
        names = (finding.rank, finding.threadblock, finding.step)
        parts.append("/".join(str(name) for name in names if name is not None))
    return " ".join(parts)
