"""Checks of the places that a command writes to; `refuse_to_overwrite` is a part of them.

Files have the suffix of their kind, so that a name tells what a file holds. Missing parent folders
are made. All checks come before the work whose result is written.
"""

from __future__ import annotations

from pathlib import Path

from colsynth.cli.output import refuse_to_overwrite
from colsynth.errors import Diagnostic, InputError

SCHEDULE, TIMED, PLOT, TIMELINE, YAML = ".xml", ".npz", ".svg", ".json", ".yaml"
PAGE, PICTURE, TABLE = ".html", ".png", ".csv"
"""The suffix of schedule files is that of their runtime (`Profile.suffix`): .xml or .json."""

_KINDS = {
    SCHEDULE: "schedule files are XML",
    TIMED: "timed schedules are numpy archives",
    PLOT: "plots are SVG or PNG, which browsers and editors of documents show",
    TIMELINE: "timelines are JSON, and so are schedules for mscclpp and torch",
    YAML: "topologies and models are YAML",
    PAGE: "reports are HTML pages",
    TABLE: "lists of cables are CSV",
}

_EXAMPLES = {
    SCHEDULE: "schedule.xml",
    TIMED: "schedule.npz",
    PLOT: "plot.svg",
    TIMELINE: "timeline.json",
    YAML: "cluster.yaml",
    PAGE: "report.html",
    TABLE: "cables.csv",
}


def check_file(
    option: str, path: Path, suffix: str, force: bool, *, or_folder: bool = False
) -> None:
    """Raise, before any work, if a file of a kind could not or should not be written.

    Parameters
    ----------
    option : str
        Option that names the place, such as ``"--plot"``.
    path : Path
    suffix : str
        Suffix of the kind of file; devices and pipes need none.
    force : bool
        Whether to overwrite an existing file.
    or_folder : bool
        Whether the option also takes a directory, whose name then ends in a slash.

    Raises
    ------
    InputError
        CS219: wrong suffix. CS207, CS208: as `refuse_to_overwrite`, or the place is a
        directory.
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
        if or_folder:
            advice += f", or {path}/ for a directory"
        raise InputError(Diagnostic("CS219", phrase, notes=(_KINDS[suffix],), help=advice))
    refuse_to_overwrite((path,), force)


def refuse_stdout(option: str, path: Path | None) -> None:
    """Raise for ``-`` where the answer of the command goes to stdout (CS219)."""
    if str(path) == "-":
        phrase = f"{option} -: a file is written here, stdout has the answer"
        raise InputError(Diagnostic("CS219", phrase, help="name a file"))


def check_plot(path: Path, force: bool) -> None:
    """Raise, before any work, if a plot could not be drawn or written.

    Raises
    ------
    InputError
        As `check_file`; CS640: what draws plots is not installed.
    """
    from colsynth.report import check_installed

    check_file("--plot", path, PICTURE if path.suffix.lower() == PICTURE else PLOT, force)
    check_installed("--plot", ("vl_convert",))


def check_folder(option: str, path: Path) -> None:
    """Raise, before any work, for a place that cannot be a directory or seems meant for a file.

    Raises
    ------
    InputError
        CS207: the place is a file. CS219: the name of a new directory looks like that of a
        file. CS208: files cannot be written there.
    """
    if str(path) == "-":
        phrase = f"{option} -: a directory is written here, which no stream can hold"
        raise InputError(Diagnostic("CS219", phrase, help="name a directory"))
    if path.is_file():
        advice = "it is a file; name another place"
        raise InputError(Diagnostic("CS207", f"{path} exists", help=advice))
    if path.suffix.lower() in _KINDS and not path.is_dir():
        phrase = f"{option} {path}: a directory is written here, not a file"
        advice = f"name it {path.with_suffix('')}"
        raise InputError(Diagnostic("CS219", phrase, help=advice))
    refuse_to_overwrite((path / "file",), force=True)


def _named(path: Path, suffix: str) -> Path:
    """Return the given path with the right suffix, for a suggestion."""
    if not path.name.strip("-"):
        return path.with_name(_EXAMPLES[suffix])
    if path.suffix[1:].isalpha():
        return path.with_suffix(suffix)
    return path.with_name(path.name + suffix)


def _is_device(path: Path) -> bool:
    """Whether a place is a device or a pipe, which may have any name."""
    return path.absolute().is_relative_to("/dev") or (path.exists() and not path.is_file())
