"""Schedule files, of colsynth or of others: whether they are right, and how fast they are."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, Span, VerificationError
from colsynth.model import Finding, Report, Topology
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram
    from colsynth.simulate import Model, Simulation

_NAMED = 3
"""Errors that a refusal names; `verify` lists all."""


def verify(
    data: bytes, runtime: str, *, subject: str = "schedule", single_node: bool | None = None
) -> Report:
    """Return everything wrong with a schedule file, as `runtime` would read and run it.

    Parameters
    ----------
    data : bytes
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

    return verify_bytes(data, profile(runtime), subject=subject, single_node=single_node)


def simulate(
    data: bytes,
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
    data : bytes
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
        Whether a file that `verify` calls bad is simulated all the same.

    Raises
    ------
    InputError
        CS605: the file holds no program; CS600: it is for another number of ranks; CS602: it
        cannot be executed; CS604: a size is below one byte.
    InfeasibleError
        CS601: the program sends where no links lead.
    VerificationError
        CS608: the file is bad; CS603: the program does not finish at one of the sizes.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.simulate import Simulation
    from colsynth.simulate import simulate as execute

    target = profile(runtime)
    program = executable(data, runtime, topology, subject=subject, anyway=anyway)
    points = execute(program, topology, target, sizes, model)
    return Simulation(subject, program.header.ranks, program.header.collective, points)


def executable(
    data: bytes, runtime: str, topology: Topology, *, subject: str, anyway: bool = False
) -> ThreadblockProgram:
    """Return the program of a schedule file that can be simulated on a topology.

    Parameters
    ----------
    data, runtime, topology, subject, anyway
        As for `simulate`.

    Raises
    ------
    InputError
        CS605, CS600 or CS602, as `simulate`.
    VerificationError
        CS608: the file is bad.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.simulate import read_source

    source = read_source(data, profile(runtime), subject)
    if not anyway:
        _refuse_bad(verify(data, runtime, subject=subject))
    source.require_fit(topology)
    return source.program


def _refuse_bad(report: Report) -> None:
    """Refuse a file whose predicted time would mean nothing (CS608)."""
    if report.ok:
        return
    count = len(report.errors)
    phrase = f"the file is bad on {report.runtime}: {plural(count, 'error')}"
    notes = [_named(finding) for finding in report.errors[:_NAMED]]
    if count > _NAMED:
        notes.append(f"and {count - _NAMED} more")
    command = f"colsynth verify {shlex.quote(report.subject)} -r {report.runtime}"
    advice = f"`{command}` lists them; --anyway predicts times all the same"
    span = Span(report.subject, report.errors[0].line)
    raise VerificationError(Diagnostic("CS608", phrase, span, tuple(notes), advice))


def _named(finding: Finding) -> str:
    parts = {"rank": finding.rank, "threadblock": finding.threadblock, "step": finding.step}
    where = ", ".join(f"{word} {number}" for word, number in parts.items() if number is not None)
    return ": ".join(text for text in (finding.rule, where, finding.message) if text)
