"""What a log says against itself, or against what its user says of it."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.errors import Diagnostic, Span
from colsynth.logs.log import Pinned
from colsynth.logs.nccl_tests import Found
from colsynth.units import plural

_SUMS = ("allreduce", "reduce-scatter", "reduce")
_COPIES = ("allgather", "alltoall", "broadcast", "gather", "scatter")
"""Tests whose tables name a redop, and those whose do not; sendrecv does either."""


def contradictions(
    found: Found, ours: Pinned, given: Pinned, collective: str, file: str
) -> tuple[Diagnostic, ...]:
    """Return a warning for each thing that is said in two ways.

    Parameters
    ----------
    found : Found
    ours, given : Pinned
        What the log says, and what its user says of it.
    collective : str
        What it is fitted as.
    file : str
        The path of the log.
    """
    told = (*_of_user(found, ours, given, file), *_inside(found, given, file))
    return told if ours.collective else (*told, *_of_table(found, collective, file))


def _of_table(found: Found, collective: str, file: str) -> Iterator[Diagnostic]:
    """Yield what the rows say against a test that no line of the log names."""
    wrong = {True: _COPIES, False: _SUMS}
    row = next((item for item in found.measured if collective in wrong[item.sums]), None)
    if row is not None:
        redop = "a redop" if row.sums else "no redop"
        phrase = f"the row has {redop}, so it is not of the {collective} that it is fitted as"
        advice = "name the test that was run, such as collective=allreduce"
        yield Diagnostic("CS629", phrase, Span(file, row.row.line or None), (), advice)


def _of_user(found: Found, ours: Pinned, given: Pinned, file: str) -> Iterator[Diagnostic]:
    for name in Pinned.__slots__:
        told, said = getattr(given, name), getattr(ours, name)
        if None in (told, said) or told == said:
            continue
        place = Span(file, found.lines.get(name) or None)
        phrase = f"the log says {name} {said}, but --log says {told}"
        notes = (f"it is fitted as {told}",)
        advice = f"leave out {name}={told}, unless you know that the log is wrong"
        yield Diagnostic("CS629", phrase, place, notes, advice)


def _inside(found: Found, given: Pinned, file: str) -> Iterator[Diagnostic]:
    for name, (before, line) in found.overruled.items():
        last = getattr(found, name)
        if getattr(given, name) is None and last is not None:
            place = Span(file, found.lines.get(name) or None)
            phrase = f"the log says {name} {last}, but {before} in line {line}"
            advice = "give a file for each run"
            yield Diagnostic("CS629", phrase, place, (f"it is fitted as {last}",), advice)
    started = found.started
    if started is not None and found.devices and started.ranks != len(found.devices):
        listed = plural(len(found.devices), "rank")
        phrase = f"the command starts {plural(started.ranks, 'rank')}, but {listed} are listed"
        notes = ("it is fitted as a run of the ranks that are listed",)
        advice = "give the log as nccl-tests printed it, with all of its devices"
        yield Diagnostic("CS629", phrase, Span(file, started.line or None), notes, advice)
