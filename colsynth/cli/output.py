"""The destination of files: stdout, one file, or files in a directory."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from colsynth.errors import Diagnostic, InputError
from colsynth.writing import advice_on, descriptor_of, exists, require_open, stage, unwritable

_STDOUT = 1
_SHORTER = "choose a shorter name"


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination that ``-o`` names.

    Parameters
    ----------
    path : Path or None
        None is stdout.
    is_directory : bool
        Whether `path` is a directory that holds files by their own names.
    """

    path: Path | None
    is_directory: bool = False

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Return the destination: a directory (or a text ending in ``/``), a file, or stdout.

        Stdout is ``-``, or a path of it such as ``/dev/stdout``.
        """
        if text == "-":
            return cls(None)
        if not text:
            raise InputError(Diagnostic("CS208", "--output is empty", help="name a file, or -"))
        path = Path(text)
        if descriptor_of(path) == _STDOUT:
            return cls(None)
        _check_names(path)
        return cls(path, text.endswith("/") or path.is_dir())

    def paths(self, names: tuple[str, ...]) -> tuple[Path, ...]:
        """Return the path of each file, by the names they would have in a directory."""
        if self.path is None:
            return ()
        return tuple(self.path / name for name in names) if self.is_directory else (self.path,)


def refuse_to_overwrite(paths: tuple[Path, ...], force: bool) -> None:
    """Raise, before any work, if files could not be written after it.

    Raises
    ------
    InputError
        CS207 when a file exists and `force` is not set; CS208 when a folder in the way is
        a file, links lead in a circle, the system lets no file be made there, or a file
        would be written twice.
    """
    for place, path in enumerate(paths):
        descriptor = descriptor_of(path)
        if descriptor is not None:
            require_open(path, descriptor)
            continue
        _check_names(path)
        if path.is_file() and not force:
            raise exists(path)
        regular = path.is_file() or not path.exists()
        if regular and path.absolute() in map(Path.absolute, paths[:place]):
            raise unwritable(path, "two options name this file", "name two files")
        _try_place(path)


def _check_names(path: Path) -> None:
    """Raise CS208 for names that are too long for the file system."""
    whole = path.absolute()
    above = next(folder for folder in whole.parents if _is_there(folder))
    most = os.pathconf(above, "PC_NAME_MAX")
    for part in whole.relative_to(above).parts:
        if len(os.fsencode(part)) > most:
            reason = f"{len(os.fsencode(part))} bytes in a name; the file system takes {most}"
            raise unwritable(path, reason, _SHORTER)
    if len(os.fsencode(whole)) >= os.pathconf(above, "PC_PATH_MAX"):
        reason = f"{len(os.fsencode(whole))} bytes are too many for a path"
        raise unwritable(path, reason, _SHORTER)


def _is_there(path: Path) -> bool:
    """Whether a path exists; False for a path that is too long."""
    try:
        return path.exists()
    except OSError:
        return False


def _try_place(path: Path) -> None:
    """Make and remove a stage where a file will be written; raise CS208 if that fails."""
    place = _resolved(path)
    if place.exists() and not (place.is_file() or place.is_dir()):
        return  # a device or a pipe is written to as it stands
    parent = next(folder for folder in place.parents if folder.exists())
    if not parent.is_dir():
        raise unwritable(path, f"{parent} is not a directory")
    try:
        with stage(parent):
            pass
    except OSError as fault:
        reason = f"{parent} may not be written to: {fault.strerror or fault}"
        raise unwritable(path, reason, advice_on(fault)) from None


def _resolved(path: Path) -> Path:
    """Return the target of links; raise CS208 for links in a circle."""
    try:
        place = path.resolve()
    except RuntimeError:  # until Python 3.12; later ones leave such links as they are
        place = path.absolute()
    if any(folder.is_symlink() for folder in (place, *place.parents)):
        raise unwritable(path, "its links lead in a circle")
    return place


def write_stdout(data: bytes) -> None:
    """Write bytes to stdout as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
