"""Whether a fitted model reproduces the logs that it was fitted to, each by its own rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.units import format_size, plural

ACCURACY = 0.13
"""Share by which a quarter of a log's rows may be off before its user is warned.

Default constants predict public measurements of rings within it, on machines that they were not
fitted to (guide/calibrate.md). A fitted model that is further from its own log has not learnt what
that log measures. A quarter, since a few disturbed rows say nothing of the others; with normal
noise it is 15 % larger than a standard deviation, of which nccl-tests has some percent.
"""

_USELESS = 2.0
"""Factor by which rows scatter around a model that reproduces no log where it is not written: as
far as another algorithm or protocol is. Intervals of such a fit mean nothing."""

_STRAY = 3.0
"""Standard deviations from which a row is named beside a log that is reproduced otherwise."""

_LIMIT = math.log1p(ACCURACY)
_SHOWN = 4

_ADVICE = (
    "check topology and runtime, and the algorithm, protocol and channels that the log is taken "
    "for; or measure again"
)


class Fitted(NamedTuple):
    """A row beside its prediction: seconds, or for links bytes per second and no size."""

    log: str
    size: int | None
    measured: float
    predicted: float
    busbw: float | None
    line: int = 0

    @property
    def residual(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1

    @property
    def distance(self) -> float:
        """Logarithm of predicted over measured, without its sign."""
        return abs(math.log(self.predicted / self.measured))

    def __str__(self) -> str:
        size = "a figure" if self.size is None else format_size(self.size)
        line = f" (line {self.line})" if self.line else ""
        side = "long" if self.predicted > self.measured else "short"
        return f"{size}{line}, {math.exp(self.distance):.3g} times too {side}"


def brief(doubt: Diagnostic) -> str:
    """Return a warning in one line: its place and its phrase."""
    return doubt.phrase if doubt.span is None else f"{doubt.span}: {doubt.phrase}"


def doubts_of(
    logs: Mapping[str, list[Fitted]], noise: float, known: tuple[str, ...] = ()
) -> tuple[Diagnostic, ...]:
    """Return a warning for each log that the fitted model does not reproduce.

    Parameters
    ----------
    logs : mapping of str to list of Fitted
        The rows of each log, by its path.
    noise : float
        Relative noise of the rows.
    known : tuple of str
        Contradictions in the logs, for a refusal.

    Raises
    ------
    InputError
        CS628: the model reproduces no log, and rows scatter by more than a factor of two.
    """
    missed = [_quarter(own) > _LIMIT for own in logs.values()]
    if all(missed) and noise > math.log(_USELESS):
        notes = tuple(f"{name}: {_off(own)}" for name, own in logs.items())
        phrase = "no constants reproduce the logs, so there is no model to write"
        notes = (*notes[:_SHOWN], *known)
        advice = f"{_ADVICE}; or fit each log by itself" if len(logs) > 1 else _ADVICE
        raise InputError(Diagnostic("CS628", phrase, notes=notes, help=advice))
    return tuple(_doubts(logs, noise))


def _doubts(logs: Mapping[str, list[Fitted]], noise: float) -> Iterator[Diagnostic]:
    for name, own in logs.items():
        if _quarter(own) > _LIMIT:
            phrase = "the fitted model does not reproduce the log"
            yield Diagnostic("CS628", phrase, Span(name), (_off(own),), _ADVICE)
            continue
        far = [row for row in own if row.distance > max(_LIMIT, _STRAY * noise)]
        if far:
            verb = "is" if len(far) == 1 else "are"
            phrase = f"{plural(len(far), 'row')} of the log {verb} far from the fitted model"
            notes = (f"predicted: {'; '.join(map(str, far[:_SHOWN]))}",)
            place = Span(name, far[0].line or None)
            yield Diagnostic("CS628", phrase, place, notes, "measure again, or leave such rows out")


def _quarter(rows: list[Fitted]) -> float:
    """Return the distance that a quarter of the rows have at least."""
    return sorted((row.distance for row in rows), reverse=True)[(len(rows) - 1) // 4]


def _off(rows: list[Fitted]) -> str:
    """Return by how much a quarter of the rows are off at least, and the worst."""
    worst = max(rows, key=lambda row: row.distance)
    if len(rows) == 1:
        return f"predicted: {worst}"
    factor = f"a factor of {math.exp(_quarter(rows)):.3g}"
    return f"a quarter of {len(rows)} rows are off by {factor} or more; the worst: {worst}"
