"""How errors are shown: as text on stderr, with ``--json`` as an object on stdout."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress
from typing import Any

from colsynth.cli._common import emit_json
from colsynth.errors import (
    EXIT_DEFECT,
    ColsynthError,
    DefectError,
    Diagnostic,
    InputError,
    Span,
)
from colsynth.writing import advice_on

_OF_STREAMS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What a write is refused with. Files of ours name themselves; without a name it is the answer."""

DEBUG_VARIABLE = "COLSYNTH_DEBUG"
_REPORT_IT = (
    f"this is a defect of colsynth: please report it with the command; "
    f"{DEBUG_VARIABLE}=1 shows the traceback"
)


def usage_error(phrase: str, command: str) -> InputError:
    """Return the error for arguments that do not fit a command."""
    plain = phrase.replace("Value error, ", "")  # the prefix of typer's type checks
    lowered = plain[:1].lower() + plain[1:]
    return InputError(
        Diagnostic("CS200", lowered.rstrip("."), help=f"see '{command} --help'"),
    )


def system_error(fault: OSError) -> InputError:
    """Return the error (CS215) for a refusal of the operating system, with its file or stream."""
    place = "stdout" if fault.errno in _OF_STREAMS else None
    if isinstance(fault.filename, str | bytes):
        place = os.fsdecode(fault.filename)
    phrase = f"the system refused: {fault.strerror or fault}"
    span = None if place is None else Span(place)
    return InputError(Diagnostic("CS215", phrase, span, help=advice_on(fault)))


def report(error: Exception, as_json: bool) -> int:
    """Show an error and return its exit code."""
    known = error if isinstance(error, ColsynthError) else _defect(error)
    if known.exit_code == EXIT_DEFECT and os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error, file=sys.stderr)
    if as_json:
        with suppress(OSError):
            emit_json({"error": error_object(known)})
            sys.stdout.flush()
    with suppress(OSError):
        _show(_with_advice(known))
    return known.exit_code


def _defect(error: Exception) -> DefectError:
    phrase = f"unexpected {type(error).__name__}"
    message = " ".join(str(error).split())
    return DefectError(Diagnostic("CS900", f"{phrase}: {message}" if message else phrase))


def _with_advice(error: ColsynthError) -> Diagnostic:
    """Return the diagnostic; a defect without advice gets advice on how to report it."""
    found = error.diagnostic
    if error.exit_code != EXIT_DEFECT or found.help is not None:
        return found
    return Diagnostic(found.code, found.phrase, found.span, found.notes, _REPORT_IT)


def error_object(error: ColsynthError) -> dict[str, Any]:
    """Return an error for ``--json``."""
    found = error.diagnostic
    span = found.span
    place = None
    if span is not None:
        place = {"file": span.file, "line": span.line, "column": span.column}
    return {
        "code": found.code,
        "phrase": found.phrase,
        "span": place,
        "notes": list(found.notes),
        "help": found.help,
        "exit_code": error.exit_code,
    }


def _show(found: Diagnostic) -> None:
    if not sys.stderr.isatty():
        print(found, file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    text = Text(str(found))
    text.highlight_regex(r"error\[\w+\]", "bold red")
    text.highlight_regex(r"(?m)^  (note|help):", "bold cyan")
    Console(stderr=True).print(text, soft_wrap=True)
