"""Schedule files on disk."""

from __future__ import annotations

from pathlib import Path

from colsynth.reading import SCHEDULE, read_whole


def read_file(path: Path) -> bytes:
    """Return the bytes of a schedule file.

    Raises
    ------
    InputError
        CS502 when the file cannot be read, CS125 when it is too large.
    """
    advice = f"name the files in it, such as {path / '*.xml'}" if path.is_dir() else None
    return read_whole(path, SCHEDULE, "CS502", advice)
