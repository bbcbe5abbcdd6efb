"""A file that one process alone goes on writing to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from colsynth.errors import Diagnostic, InputError
from colsynth.writing.locks import is_at, locks
from colsynth.writing.refusals import unwritable


@contextmanager
def claimed(path: Path | None) -> Iterator[None]:
    """Keep other processes away from a file while the block runs; None claims nothing.

    The file is made, with its folders, where there is none. If nothing was written to it, it
    is removed at the end, and so are the folders that were made for it.

    Raises
    ------
    InputError
        CS250 where another process has claimed the file; CS208 when the system refuses.
    """
    if path is None:
        yield
        return
    made = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        descriptor = _claim(path)
    except OSError as fault:
        _remove_empty(made)
        raise unwritable(path, fault) from fault
    try:
        yield
    finally:
        if is_at(path, descriptor) and not os.fstat(descriptor).st_size:
            path.unlink()
            _remove_empty(made)
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a file and its folder if that is empty then; not if another process claims it."""
    with suppress(InputError), claimed(path):
        path.unlink()
    _remove_empty([path.parent])


def append(path: Path, data: bytes) -> None:
    """Append to a file, which is made with its folders if need be; refuse a link in its place.

    Raises
    ------
    InputError
        CS208 when the system refuses; a part of the data may have been written then.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, flags, 0o666), "ab") as stream:
            stream.write(data)
    except OSError as fault:
        raise unwritable(path, fault) from fault


def _claim(path: Path) -> int:
    """Return the file, open and locked; without lock where the file system has none."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with suppress(OSError):
            if not locks(descriptor):
                os.close(descriptor)
                raise _busy(path)
        if is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its owner removed it while it was opened here


def _busy(path: Path) -> InputError:
    phrase = f"another colsynth is writing to {path.parent}"
    advice = "wait until it ends, or choose another place"
    return InputError(Diagnostic("CS250", phrase, help=advice))


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders, the deepest first, up to one that holds something."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
