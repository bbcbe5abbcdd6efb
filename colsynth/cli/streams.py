"""The standard streams, whatever state the caller left them in."""

from __future__ import annotations

import os
import re
import sys
import warnings
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
    """A text stream that writes no blanks at the ends of lines.

    Tables are padded to their width; who copies, compares or greps them wants the text alone.

    Parameters
    ----------
    stream : TextIO
        Takes what is left; everything but writing is asked of it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write whole lines without their trailing blanks; colours stay."""
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
    """Return what the standard input holds; CS215 where it is closed, CS125 if too much."""
    if sys.stdin is None:
        raise InputError(Diagnostic("CS215", "the standard input is closed", help="name a file"))
    return read_stream(sys.stdin.buffer, kind, STDIN)


def tell(text: str, keep: str = "") -> None:
    """Print a text on stderr; what a terminal executes is spelt out, but for what `keep` names."""
    print(printable(text, keep), file=sys.stderr)


def hush_warnings() -> None:
    """Keep warnings of libraries from users, here and in all processes that this one starts.

    Among these is Python's own that ends what killed processes leave, and says so. Whoever asks
    for warnings, with ``-W`` or PYTHONWARNINGS, gets them.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"


def prepare_streams() -> None:
    """Replace streams that were closed, and let file names through byte for byte.

    A closed stdout becomes one that cannot be written to, so that a lost answer is an
    error as on a full disk; a closed stderr becomes one that swallows everything.
    """
    sys.stdout = sys.stdout or _null(os.O_RDONLY)
    sys.stderr = sys.stderr or _null(os.O_WRONLY)
    if isinstance(sys.stdout, TextIOWrapper):
        # A name that is no UTF-8 travels as surrogates: `env` must print its bytes.
        sys.stdout.reconfigure(errors="surrogateescape")


def settle_streams() -> None:
    """Flush; what cannot be written was reported and must not fail again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _null(flags: int) -> TextIO:
    return os.fdopen(os.open(os.devnull, flags), "w", encoding="utf-8")
