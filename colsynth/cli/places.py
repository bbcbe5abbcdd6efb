"""The one rule for places that a command writes to; `refuse_to_overwrite` is a part of it.

A name tells what is in a file, so files have the suffix of their kind. Folders that are missing
on the way to a place are made. All is checked before the work whose result is to go there.
"""

from __future__ import annotations

from pathlib import Path

from colsynth.cli.output import refuse_to_overwrite
from colsynth.errors import Diagnostic, InputError

SCHEDULE, TIMED, PLOT, TIMELINE = ".xml", ".npz", ".svg", ".json"

_KINDS = {
    SCHEDULE: "schedule files are XML",
    TIMED: "timed schedules are numpy archives",
    PLOT: "plots are SVG, which browsers and editors of documents show",
    TIMELINE: "timelines are JSON",
}

_EXAMPLES = {
    SCHEDULE: "schedule.xml",
    TIMED: "schedule.npz",
    PLOT: "plot.svg",
    TIMELINE: "timeline.json",
}


def check_file(option: str, path: Path, suffix: str, force: bool) -> None:
    """Refuse, before any work, a place where a file of a kind could not or should not be written.

    Parameters
    ----------
    option : str
        Which names the place, such as ``"--plot"``.
    path : Path
    suffix : str
        Of the kind of file; devices and pipes need none.
    force : bool
        Whether a file that is there gives way.

    Raises
    ------
    InputError
        CS219: the suffix is another. CS207, CS208: as `refuse_to_overwrite`; a directory
        stands there.
    """
    if path.is_dir():
        notes, advice = (
            ("it is a directory",),
            f"name a file in it, such as {path / _EXAMPLES[suffix]}",
        )
        raise InputError(Diagnostic("CS208", f"cannot write {path}", notes=notes, help=advice))
    if path.suffix.lower() != suffix and not _is_device(path):
        phrase = f"{option} {path}: expected a name that ends in {suffix}"
        advice = f"name it {_named(path, suffix)}"
        if option == "--output":
            advice += f", or {path}/ for a directory"
        raise InputError(Diagnostic("CS219", phrase, notes=(_KINDS[suffix],), help=advice))
    refuse_to_overwrite((path,), force)


def check_folder(option: str, path: Path) -> None:
    """Refuse, before any work, a place that could not be a directory or seems meant for a file.

    Raises
    ------
    InputError
        CS207: a file stands there. CS219: a new directory would be called like a file. CS208:
        files cannot be written there.
    """
    if path.is_file():
        advice = "it is a file; name another place"
        raise InputError(Diagnostic("CS207", f"{path} exists", help=advice))
    if path.suffix.lower() in _KINDS and not path.is_dir():
        phrase = f"{option} {path}: a directory is written here, not a file"
        advice = f"name it {path.with_suffix('')}"
        raise InputError(Diagnostic("CS219", phrase, help=advice))
    refuse_to_overwrite((path / "file",), force=True)


def _named(path: Path, suffix: str) -> Path:
    """Return a path of the right suffix that is near the one that was given."""
    if not path.name.strip("-"):
        return path.with_name(_EXAMPLES[suffix])
    if path.suffix[1:].isalpha():
        return path.with_suffix(suffix)
    return path.with_name(path.name + suffix)


def _is_device(path: Path) -> bool:
    """Whether a place is written to as it stands, whatever it is called."""
    return path.absolute().is_relative_to("/dev") or (path.exists() and not path.is_file())
