"""The standard streams, in whatever state the caller left them."""

from __future__ import annotations

import codecs
import os
import re
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from colsynth.errors import Diagnostic, InputError
from colsynth.reading import FileKind, read_stream
from colsynth.text import printable

_COLOUR = r"\x1b\[[0-9;]*m"
_TRAILING = re.compile(rf"(?:[ \t]|{_COLOUR})+(?=\n)")
"""Blanks at the end of a line, and the changes of colour between them."""


class TrimmedStream:
    """A text stream without trailing blanks.

    Tables are padded to their width, and the padding is in the way when text is copied or compared.

    Parameters
    ----------
    stream : TextIO
        Receives the trimmed text, and all other calls.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write complete lines without trailing blanks; colours stay."""
        return self._stream.write(_TRAILING.sub(_colours, text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _colours(found: re.Match[str]) -> str:
    return "".join(re.findall(_COLOUR, found[0]))


STDIN = "<stdin>"
"""What answers and messages call the standard input, which ``-`` names."""


def is_stdin(place: str | Path | None) -> bool:
    """Whether an argument names the standard input."""
    return place is not None and str(place) == "-"


def require_one_stdin(*places: str | Path | None) -> None:
    """Refuse to read the standard input for two arguments (CS214)."""
    if sum(map(is_stdin, places)) > 1:
        phrase = "two arguments are - and both want stdin"
        raise InputError(Diagnostic("CS214", phrase, help="name a file for one of them"))


def read_stdin(kind: FileKind) -> bytes:
    """Return the content of stdin; raise CS215 if it is closed, CS125 if it is too large."""
    if sys.stdin is None:
        raise InputError(Diagnostic("CS215", "the standard input is closed", help="name a file"))
    return read_stream(sys.stdin.buffer, kind, STDIN)


def tell(text: str, keep: str = "") -> None:
    """Print a text on stderr; control characters are escaped, except those in `keep`."""
    print(printable(text, keep), file=sys.stderr)


def tell_warnings(found: Iterable[Diagnostic]) -> None:
    """Print diagnostics on stderr that do not stop a command."""
    for warning in found:
        text = str(warning).replace(f"error[{warning.code}]", f"warning[{warning.code}]", 1)
        tell(text, keep="\n")


def warnings_field(found: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Return diagnostics that do not stop a command for ``--json``."""
    return [
        {
            "code": warning.code,
            "phrase": warning.phrase,
            "place": None if warning.span is None else str(warning.span),
            "notes": list(warning.notes),
            "help": warning.help,
        }
        for warning in found
    ]


def hush_warnings() -> None:
    """Hide warnings of libraries, in this process and in all that it starts.

    They include a warning of Python's resource tracker about killed processes. The options ``-W``
    and PYTHONWARNINGS show warnings again.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"


def prepare_streams() -> None:
    """Replace closed streams, and pass file names through byte for byte.

    A closed stdout becomes a stream that fails on writing, so that a lost answer is an error, as
    on a full disk. A closed stderr becomes a stream that discards everything.
    """
    sys.stdout = sys.stdout or _null(os.O_RDONLY)
    sys.stderr = sys.stderr or _null(os.O_WRONLY)
    codecs.register_error(_ERRORS, _spelt_otherwise)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_ERRORS)


_ERRORS = "colsynth"
_ASCII = dict(zip("·░▒▓█→÷×─━│├└┌┐┘╭╮╰╯", ".-+%#>/x--|+++++++++", strict=True)) | {"≤": "<="}
"""What stands for a character where the encoding of the terminal has none; else ``?``."""


def _spelt_otherwise(fault: UnicodeError) -> tuple[str | bytes, int]:
    """Return what is written for a character that the encoding lacks, and the place behind it.

    A name that is not UTF-8 is held as surrogates: `env` must print its bytes.
    """
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    character = fault.object[fault.start]
    if 0xDC80 <= ord(character) <= 0xDCFF:
        return bytes([ord(character) - 0xDC00]), fault.start + 1
    return _ASCII.get(character, "?"), fault.start + 1


def settle_streams() -> None:
    """Flush the streams; write errors were reported already and must not fail again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _null(flags: int) -> TextIO:
    return os.fdopen(os.open(os.devnull, flags), "w", encoding="utf-8")
