"""Where an artefact goes: stdout, one file, or files in a directory; whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from colsynth.drafts import drafts
from colsynth.errors import Diagnostic, InputError


@dataclass(frozen=True, slots=True)
class Destination:
    """What ``-o`` names.

    Parameters
    ----------
    path : Path or None
        None is stdout.
    is_directory : bool
        Whether files get names of their own inside `path`.
    """

    path: Path | None
    is_directory: bool = False

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Return the destination: ``-``, a directory (or a text ending in ``/``), or a file."""
        if text == "-":
            return cls(None)
        if not text:
            raise InputError(Diagnostic("CS208", "--output is empty", help="name a file, or -"))
        path = Path(text)
        return cls(path, text.endswith("/") or path.is_dir())

    def paths(self, names: tuple[str, ...]) -> tuple[Path, ...]:
        """Return the path of each file, by the names they would have in a directory."""
        if self.path is None:
            return ()
        return tuple(self.path / name for name in names) if self.is_directory else (self.path,)


def refuse_to_overwrite(paths: tuple[Path, ...], force: bool) -> None:
    """Refuse, before any work, what could not be written after it.

    Raises
    ------
    InputError
        CS207 when a file exists and `force` is not set; CS208 when a folder in the way is
        a file, links lead in a circle, or the system lets no file be made there.
    """
    for path in paths:
        if path.is_file() and not force:
            raise InputError(
                Diagnostic(
                    "CS207", f"{path} exists", help="--force overwrites it, or choose another"
                )
            )
        _try_place(path)


def _try_place(path: Path) -> None:
    """Make a file without a name where one will be written; refuse with CS208 what prevents it."""
    place = _resolved(path)
    if place.exists() and not (place.is_file() or place.is_dir()):
        return  # a device or a pipe is written to as it stands
    parent = next(folder for folder in place.parents if folder.exists())
    if not parent.is_dir():
        raise _unwritable(path, f"{parent} is not a directory")
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as fault:
        reason = f"{parent} may not be written to: {fault.strerror or fault}"
        raise _unwritable(path, reason) from None


def _resolved(path: Path) -> Path:
    """Return where links lead; refuse with CS208 those that lead in a circle."""
    try:
        place = path.resolve()
    except RuntimeError:  # until Python 3.12; later ones leave such links as they are
        place = path.absolute()
    if any(folder.is_symlink() for folder in (place, *place.parents)):
        raise _unwritable(path, "its links lead in a circle")
    return place


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file whole: all are put beside their places first, then moved there.

    Raises
    ------
    InputError
        CS208 when the system refuses; then no place holds a part of a file.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        with ExitStack() as unfinished:
            for path, data in contents.items():
                place = path.resolve()
                if place.exists() and not place.is_file():
                    place.write_bytes(data)  # a device or a pipe cannot be replaced
                    continue
                draft = place.with_name(f".{place.name}.{os.getpid()}.tmp")
                unfinished.enter_context(drafts(draft))
                waiting.append((draft, place))
                _write_draft(draft, data)
            for draft, place in waiting:
                draft.replace(place)
    except OSError as fault:
        raise _unwritable(next(iter(contents)), fault.strerror or str(fault)) from fault


def write_stdout(data: bytes) -> None:
    """Write bytes to stdout as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _write_draft(draft: Path, data: bytes) -> None:
    draft.parent.mkdir(parents=True, exist_ok=True)
    with draft.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _unwritable(path: Path, reason: str) -> InputError:
    return InputError(Diagnostic("CS208", f"cannot write {path}", notes=(reason,)))
