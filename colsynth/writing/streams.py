"""Paths that name an open stream: ``/dev/stdout``, ``/dev/fd/63`` of ``>(command)``."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import BinaryIO

from colsynth.writing.refusals import unwritable

_NAMED = {"/dev/stdout": 1, "/dev/stderr": 2}
_NUMBERED = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})", re.ASCII)


def descriptor_of(path: Path) -> int | None:
    """Return the number of the open stream that a path names, None for any other path."""
    found = _NUMBERED.fullmatch(str(path))
    return int(found[1]) if found else _NAMED.get(str(path))


def require_open(path: Path, descriptor: int) -> None:
    """Refuse, with CS208, a stream that is not open or not open for writing."""
    try:
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError as fault:
        raise unwritable(path, fault) from fault
    if mode == os.O_RDONLY:
        raise unwritable(path, "it is open for reading only")


def open_stream(path: Path) -> BinaryIO | None:
    """Return a stream to write to where the path is no file: an open one, a device or a pipe.

    An open stream goes on where it is, as with a shell's ``>&63``; opening its path would begin
    a file anew, and fails for some pipes and all sockets.
    """
    descriptor = descriptor_of(path)
    if descriptor is not None:
        return os.fdopen(os.dup(descriptor), "wb")
    if path.exists() and not path.is_file() and not path.is_dir():
        return path.open("wb")
    return None
