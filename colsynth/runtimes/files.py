"""Schedule files on disk."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from colsynth.reading import SCHEDULE, read_whole


def read_file(path: Path) -> bytes:
    """Return the bytes of a schedule file.

    Raises
    ------
    InputError
        CS502 when the file cannot be read, CS125 when it is too large.
    """
    advice = None
    if path.is_dir():
        folder = path / "schedules" if (path / "manifest.json").exists() else path  # of tune
        suffix = ".json" if any(folder.glob("*.json")) else ".xml"
        advice = f"name the files in it, such as {quote(str(folder))}/*{suffix}"
    return read_whole(path, SCHEDULE, "CS502", advice)
