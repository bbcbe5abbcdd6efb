"""The diagnostics of a place that cannot be written to."""

from __future__ import annotations

from pathlib import Path

from colsynth.errors import Diagnostic, InputError


def exists(path: Path, advice: str = "--force overwrites it, or choose another") -> InputError:
    """Return the error for a place that is taken."""
    return InputError(Diagnostic("CS207", f"{path} exists", help=advice))


def unwritable(path: Path, reason: str | OSError) -> InputError:
    """Return the error for a place where the system lets nothing be written."""
    text = (reason.strerror or str(reason)) if isinstance(reason, OSError) else reason
    return InputError(Diagnostic("CS208", f"cannot write {path}", notes=(text,)))
