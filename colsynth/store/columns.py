"""The arrays of a phase, by the names they have in a file."""

from __future__ import annotations

from typing import Any

from colsynth.model import Direction, Hops, TimedPhase

HOPS = ("source", "target", "first_link", "links", "begin", "end", "lag")
STARTS = ("first", "chunk", "first_run", "run_start", "run_length")
COLUMNS = (*HOPS, *STARTS)

_KINDS = {
    "source": ("<i4",),
    "target": ("<i4",),
    "links": ("<i4",),
    "chunk": ("<u2", "<u4"),
}


def kinds_of(column: str) -> tuple[str, ...]:
    """Return the types that a column may have in the file."""
    return _KINDS.get(column, ("<i8",))


def name_of(phase: int, column: str) -> str:
    """Return the name of a column in the file."""
    return f"phase{phase}_{column}"


def columns_of(phase: TimedPhase) -> dict[str, Any]:
    """Return the arrays of a phase by column."""
    hops = phase.hops
    return {
        "source": hops.source,
        "target": hops.target,
        "first_link": hops.first,
        "links": hops.links,
        "begin": hops.begin,
        "end": hops.end,
        "lag": hops.lag,
        "first": phase.first,
        "chunk": phase.chunk,
        "first_run": phase.run_first,
        "run_start": phase.run_start,
        "run_length": phase.run_length,
    }


def phase_of(direction: Direction, arrays: dict[str, Any]) -> TimedPhase:
    """Return the phase that has these columns."""
    hops = Hops(
        source=arrays["source"],
        target=arrays["target"],
        first=arrays["first_link"],
        links=arrays["links"],
        begin=arrays["begin"],
        end=arrays["end"],
        lag=arrays["lag"],
    )
    return TimedPhase(
        direction=direction,
        hops=hops,
        first=arrays["first"],
        chunk=arrays["chunk"],
        run_first=arrays["first_run"],
        run_start=arrays["run_start"],
        run_length=arrays["run_length"],
    )
