"""Diagnostics and the exception tree.

::

    ColsynthError                carries one Diagnostic and an exit code
    |- InputError        exit 2  the user's file, option or combination is wrong
    |- NegativeFinding   exit 1  the question was fine, the answer is no
    |  |- InfeasibleError        no schedule exists (an unreachable GPU, ...)
    |  |- LimitError             a schedule exists, a runtime limit refuses it
    |  `- VerificationError      a program was checked and found wrong
    `- DefectError       exit 3  colsynth itself is wrong; please report

A `Diagnostic` is a value: it is built where the fault is found and rendered by
the command line alone, so text and JSON always agree.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

EXIT_DONE, EXIT_NEGATIVE, EXIT_INPUT, EXIT_DEFECT = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file; line and column count from 1, None where unknown."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file, self.line, self.column]
        return ":".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What went wrong, where, why, and what to do about it.

    Parameters
    ----------
    code : str
        Stable identifier, explained by ``colsynth explain CODE``.
    phrase : str
        One short sentence without a final stop.
    span : Span, optional
        The place the sentence is about.
    notes : tuple of str
        Context: what was expected, what was found, figures.
    help : str, optional
        What the user can do.
    """

    code: str
    phrase: str
    span: Span | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None

    def __str__(self) -> str:
        head = f"error[{self.code}]: {self.phrase}"
        lines = [head if self.span is None else f"{self.span}: {head}"]
        lines += [f"  note: {note}" for note in self.notes]
        if self.help is not None:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class ColsynthError(Exception):
    """Base of every error colsynth raises on purpose."""

    exit_code = EXIT_DEFECT

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


class InputError(ColsynthError):
    """The user's file, option or combination of options is wrong."""

    exit_code = EXIT_INPUT


class NegativeFinding(ColsynthError):
    """A well-posed question whose answer is no."""

    exit_code = EXIT_NEGATIVE


class InfeasibleError(NegativeFinding):
    """No schedule exists for this problem."""


class LimitError(NegativeFinding):
    """A schedule exists, but a limit of the runtime refuses it."""


class VerificationError(NegativeFinding):
    """A program was checked and found wrong."""


class DefectError(ColsynthError):
    """colsynth broke one of its own promises."""


def is_interrupt(fault: BaseException) -> bool:
    """Whether the user ended the work; compiled kernels hide a Ctrl-C behind a SystemError."""
    return isinstance(fault, KeyboardInterrupt) or isinstance(fault.__cause__, KeyboardInterrupt)


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word closest to `word`, or None when none is close."""
    found = difflib.get_close_matches(word, list(valid), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return a help sentence that names the nearest valid word, or all of them."""
    words = list(valid)
    close = nearest(word, words)
    listed = ", ".join(words)
    return f"did you mean {close!r}? valid: {listed}" if close else f"valid: {listed}"


def require_least(option: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a number that is too small, or too large, for an option (CS210)."""
    if value < least or (most is not None and value > most):
        span = f"from {least}" if most is None else f"from {least} to {most}"
        raise InputError(Diagnostic("CS210", f"{option} {value}: expected a number {span}"))
