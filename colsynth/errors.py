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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeGuard

from colsynth.text import SHOWN, listed, printable, shortened

EXIT_DONE, EXIT_NEGATIVE, EXIT_INPUT, EXIT_DEFECT = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file; line and column count from 1, None where unknown."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file, self.line, self.column]
        return ":".join(printable(str(part)) for part in parts if part is not None)


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
        head = f"error[{self.code}]: {printable(self.phrase)}"
        lines = [head if self.span is None else f"{self.span}: {head}"]
        lines += [f"  note: {printable(note)}" for note in self.notes]
        if self.help is not None:
            lines.append(f"  help: {printable(self.help)}")
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


_SUGGESTED = 3
"""Names that a suggestion offers at most."""

_COMPARED, _LONGEST = 5000, 100
"""Names, and characters of a mistyped one, that are compared by spelling; more take seconds."""


def same_name(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that differs at most in case, hyphens, underscores and blanks."""
    sought = _plain(word)
    return next((name for name in valid if _plain(name) == sought), None)


def close_names(word: str, valid: Iterable[str]) -> tuple[str, ...]:
    """Return the valid names that a mistyped one may mean, nearest first; none when none is close.

    Case, hyphens, underscores and blanks do not count. A name that contains the word comes
    before one that is merely spelt like it, above all where it begins with the word.
    """
    sought = _plain(word)
    names = {name: _plain(name) for name in valid}
    same = tuple(name for name, text in names.items() if text == sought)
    if same or len(sought) < 2:
        return same
    found = [name for name, text in names.items() if text.startswith(sought)]
    found = found or [name for name, text in names.items() if sought in text]
    if found:
        return tuple(sorted(found, key=lambda name: len(names[name]))[:_SUGGESTED])
    if len(names) > _COMPARED or len(sought) > _LONGEST:
        return ()
    spelt = {text: name for name, text in names.items()}
    return tuple(spelt[x] for x in difflib.get_close_matches(sought, spelt, n=1, cutoff=0.5))


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return a help sentence that names the nearest valid words, or valid ones.

    It is short however many words are valid: of many, those that are near are named alone, else
    the first ones and how many more there are.
    """
    words = list(valid)
    close = close_names(str(word), words)
    if not close:
        return f"valid: {listed(words)}"
    few = len(words) <= SHOWN
    return f"did you mean {_either(close)}?" + (f" valid: {listed(words)}" if few else "")


def _either(names: Sequence[str]) -> str:
    """Return quoted names to choose from: ``'a', 'b' or 'c'``."""
    *others, last = (repr(shortened(name)) for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def _plain(word: object) -> str:
    """Return a name as names are compared; from Python it may be anything."""
    return "".join(str(word).split()).replace("-", "").replace("_", "").casefold()


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value from Python is an integer, also one of numpy; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def require_whole(option: str, value: object) -> None:
    """Refuse a value from Python that is no integer (CS210)."""
    if not is_whole(value):
        phrase = f"{option} {value!r}: expected a whole number"
        raise InputError(Diagnostic("CS210", phrase, help="give an int, such as int(1e6)"))


def require_least(option: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a number that is not whole, too small, or too large, for an option (CS210)."""
    require_whole(option, value)
    if value < least or (most is not None and value > most):
        span = f"from {least}" if most is None else f"from {least} to {most}"
        raise InputError(Diagnostic("CS210", f"{option} {value}: expected a number {span}"))


def whole_seed(given: int) -> int:
    """Return a seed as an int, also numpy's; refuse what is no whole number from 0 (CS210)."""
    require_least("--seed", given, 0)
    return int(given)  # numpy's would overflow where it is multiplied
