"""Locks on files: the system lets go of one when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""Flags that make a file and never take one that is there, nor follow a link to it."""


def locks(descriptor: int) -> bool:
    """Whether the lock of an open file is ours now; False where another process has it.

    Raises
    ------
    OSError
        The file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still is the one at a path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for a folder; there, keep others waiting.

    File systems without locks let all go on at once.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
