"""Schedule files, of colsynth or of others: whether they are right, and how fast they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from colsynth.api.given import (
    plain,
    require_bytes,
    require_kind,
    require_model,
    require_several,
    require_topology,
)
from colsynth.errors import Diagnostic, Span, VerificationError, require_whole
from colsynth.model import Finding, Report, Topology
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.cost import Model
    from colsynth.model import Program
    from colsynth.simulate import Simulation, Source

_ENDLESS = ("P08", "P09")
"""Rules on the signals of plans, and on what waits for them forever."""

_NAMED = 3
"""Errors that a refusal names; `verify` lists all."""


def verify(
    data: bytes | bytearray | memoryview,
    runtime: str,
    *,
    subject: str = "schedule",
    single_node: bool | None = None,
) -> Report:
    """Return everything wrong with a schedule file, as `runtime` would read and run it.

    Parameters
    ----------
    data : bytes, bytearray or memoryview
    runtime : str
    subject : str
        Name of the file, for the report.
    single_node : bool, optional
        Whether all ranks are in one box, where that is known.

    Raises
    ------
    InputError
        There is no such runtime.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.verify import verify_bytes

    return verify_bytes(
        require_bytes(data, "verify"), profile(runtime), subject=subject, single_node=single_node
    )


def simulate(
    data: bytes | bytearray | memoryview,
    runtime: str,
    topology: Topology,
    sizes: Sequence[int],
    *,
    model: Model | None = None,
    subject: str = "schedule",
    anyway: bool = False,
) -> Simulation:
    """Return the predicted time of a schedule file at each message size.

    Parameters
    ----------
    data : bytes, bytearray or memoryview
    runtime : str
    topology : Topology
        Of as many ranks as the file is for.
    sizes : sequence of int
        Bytes, as nccl-tests counts them.
    model : Model, optional
        The constants of the simulator; those of the runtime unless given.
    subject : str
        Name of the file, for the answer.
    anyway : bool
        Whether a file that `verify` calls bad is simulated all the same, unless it never finishes.

    Raises
    ------
    InputError
        CS605: the file holds no program; CS600: it is for another number of ranks; CS602: it
        cannot be executed; CS604: a size is below one byte; CS210: it is no whole number.
    InfeasibleError
        CS601: the program sends where no links lead.
    VerificationError
        CS609: the file is bad; CS603: the program does not finish at one of the sizes.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.runtimes.selection import taken_sizes
    from colsynth.simulate import Simulation, read_source
    from colsynth.simulate import simulate as execute

    data = require_bytes(data, "simulate")
    require_topology(topology, "simulate")
    require_model(model)
    plain_sizes = [plain(size) for size in require_several("sizes", sizes, "[2**20]")]
    for size in plain_sizes:
        require_whole("size", size)
    target = profile(runtime)
    program = executable(read_source(data, target, subject), topology, anyway=anyway)
    header, law = program.header, taken_sizes(program.header, target)
    points = execute(program, topology, target, law.called(plain_sizes), model)
    selected = tuple(law.takes(point.size_bytes) for point in points)
    names = (subject, runtime, topology.name)
    return Simulation(*names, header.ranks, header.collective, points, selected)


def executable(source: Source, topology: Topology, *, anyway: bool = False) -> Program:
    """Return the program of a schedule file where it can be simulated on a topology.

    Parameters
    ----------
    source : Source
        The file as a runtime reads it.
    topology, anyway
        As for `simulate`.

    Raises
    ------
    InputError
        CS600 or CS602, as `simulate`.
    VerificationError
        CS609: the file is bad; CS603: its signals do not meet its waits, whatever `anyway`.
    """
    from colsynth.simulate import Source

    require_topology(topology, "executable")
    advice = "colsynth.simulate.read_source makes one"
    require_kind(source, Source, "executable takes a source", advice)
    if not anyway:
        refuse_bad(source.report)
    elif source.reading.plan is not None:
        _refuse_endless(source.report)
    source.require_fit(topology)
    return source.program


def refuse_bad(report: Report, *, anyway: bool = True) -> None:
    """Refuse a bad file (CS609), of which no more can be said than what is wrong with it.

    Parameters
    ----------
    report : Report
    anyway : bool
        Whether the command has an option --anyway.
    """
    if report.ok:
        return
    count = len(report.errors)
    phrase = f"the file is bad on {report.runtime}: {plural(count, 'error')}"
    notes = [_named(finding) for finding in report.errors[:_NAMED]]
    if count > _NAMED:
        notes.append(f"and {count - _NAMED} more")
    command = f"colsynth verify FILE -r {report.runtime}"
    advice = f"`{command}` lists them" + ("; --anyway goes on all the same" if anyway else "")
    span = Span(report.subject, report.errors[0].line)
    raise VerificationError(Diagnostic("CS609", phrase, span, tuple(notes), advice))


def _refuse_endless(report: Report) -> None:
    """Refuse a plan that hangs, sooner or later (CS603): the simulator takes signals for right.

    Of other files, it executes what lets them hang.
    """
    found = [finding for finding in report.errors if finding.rule in _ENDLESS]
    if found:
        phrase = "the plan hangs, or the launches after it do: signals do not meet waits"
        notes = tuple(map(_named, found[:_NAMED]))
        advice = f"`colsynth verify FILE -r {report.runtime}` lists the errors; correct these first"
        raise VerificationError(Diagnostic("CS603", phrase, Span(report.subject), notes, advice))


def _named(finding: Finding) -> str:
    parts = {"rank": finding.rank, "threadblock": finding.threadblock, "step": finding.step}
    where = ", ".join(f"{word} {number}" for word, number in parts.items() if number is not None)
    return ": ".join(text for text in (finding.rule, where, finding.message) if text)
