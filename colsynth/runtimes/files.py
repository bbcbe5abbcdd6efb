"""Schedule files on disk."""

from __future__ import annotations

from pathlib import Path

from colsynth.errors import Diagnostic, InputError, Span


def read_file(path: Path) -> bytes:
    """Return the bytes of a schedule file.

    Raises
    ------
    InputError
        CS502 when the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as fault:
        text = f"cannot read {path}: {fault.strerror or fault}"
        advice = f"name the files in it, such as {path / '*.xml'}" if path.is_dir() else None
        raise InputError(Diagnostic("CS502", text, Span(str(path)), help=advice)) from fault
