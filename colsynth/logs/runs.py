"""Whether the rows of a log are of one run, or of repeats of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.logs.log import Pinned
from colsynth.logs.nccl_tests import Found
from colsynth.units import format_size

_OTHER = 2.0
"""How many times as long a table must take as another before it counts as of another run. Repeats
of a run differ by less; another algorithm or protocol takes as much."""

_LARGEST = 2
"""Sizes at which two tables are compared, the largest that both have: small ones are noisy, and a
single row may be disturbed."""

_APART = "give a file for each run"


def require_one_run(found: Found, path: Path) -> None:
    """Refuse tables of processes that ran by themselves, and those of runs that differ.

    Raises
    ------
    InputError
        CS621.
    """
    if found.twice:
        note = "a rank is listed twice: each process ran by itself, since nccl-tests was built "
        advice = f"build nccl-tests with MPI=1, or {_APART}"
        raise _several_runs(Span(str(path)), f"{note}without MPI", advice)
    for line, note in (*_settings(found), *_times(found)):
        raise _several_runs(Span(str(path), line or None), note, _APART)


def _settings(found: Found) -> Iterator[tuple[int, str]]:
    """Yield the tables before which the log says something else than before other rows."""
    for name in Pinned.__slots__:
        told = [(getattr(item.told, name), item.table) for item in found.measured]
        for (old, _), (new, line) in pairwise(item for item in told if item[0] is not None):
            if old != new:
                note = f"the log says {name} {old} for the rows before it, but {new} for its own"
                yield line, note


def _times(found: Found) -> Iterator[tuple[int, str]]:
    """Yield the tables that take far longer than another, or far less."""
    tables: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for item in found.measured:
        if not item.wrong:
            tables[item.table][item.row.size].append(item.row.seconds)
    first: dict[int, float] = {}
    for line, rows in tables.items():
        times = {size: median(own) for size, own in rows.items()}
        shared = sorted(times.keys() & first.keys())[-_LARGEST:]
        ratios = {size: times[size] / first[size] for size in shared}
        if ratios and min(max(x, 1 / x) for x in ratios.values()) > _OTHER:
            size, ratio = shared[-1], ratios[shared[-1]]
            much = f"{ratio:.2g} times as long" if ratio > 1 else f"1/{1 / ratio:.2g} of the time"
            yield line, f"at {format_size(size)}, its rows take {much} as in a table before it"
        first = {**times, **first}


def _several_runs(place: Span, note: str, advice: str) -> InputError:
    phrase = "the log holds the tables of several runs"
    return InputError(Diagnostic("CS621", phrase, place, (note,), advice))
