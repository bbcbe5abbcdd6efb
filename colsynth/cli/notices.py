"""Notices of the package while it works, as lines on stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from colsynth.cli.streams import tell

_PACKAGE = logging.getLogger("colsynth")


@contextmanager
def notices() -> Iterator[None]:
    """Print each notice and each warning of the package once while the block runs."""
    lines, level = _Lines(), _PACKAGE.level
    _PACKAGE.addHandler(lines)
    _PACKAGE.setLevel(logging.INFO)
    try:
        yield
    finally:
        _PACKAGE.setLevel(level)
        _PACKAGE.removeHandler(lines)


class _Lines(logging.Handler):
    """Prints each text once; rich places it above a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text in self.said:
            return
        self.said.add(text)
        mark = "warning: " if record.levelno >= logging.WARNING else ""
        with suppress(OSError):
            tell(mark + text)
