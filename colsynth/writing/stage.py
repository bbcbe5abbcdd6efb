"""Private folders for drafts, and the removal of those that killed processes left."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from colsynth.writing.locks import NEW, locks

REPLACED = "replaced"
"""Folder of a stage. What it holds was taken from the stage's folder, to which it goes back."""

_NAME = re.compile(r"\.colsynth-[0-9a-f]{32}")
_LOCK = "lock"
_ACTIVE: list[Path] = []
"""Where the stages of this process may lie."""

_MINUTE, _DAY = 60, 24 * 60 * 60
"""Ages in seconds at which a stage without lock, and one of another machine, are abandoned.

The owner locks a stage at once, and needs it for as long as writing takes. Locks that another
machine holds may not be seen here, as on some network file systems.
"""


@contextmanager
def stage(folder: Path, *, beside: bool = False) -> Iterator[Path]:
    """Give an empty folder, private to this process, that goes when the block ends.

    Parameters
    ----------
    folder : Path
        Where the drafts will go, absolute; it exists. The stage lies on its file system.
    beside : bool
        Whether the stage lies beside `folder` and not in it. Where the system does not let it,
        because another file system begins there, it is a folder inside, which no runtime reads.

    Raises
    ------
    OSError
        The system lets no folder be made.
    """
    _remove_abandoned(folder)
    name = f".colsynth-{secrets.token_hex(16)}"
    inside, moved = folder / name, folder.parent / name
    _ACTIVE.extend((inside, moved))
    lock = -1
    try:
        inside.mkdir(mode=0o700)
        lock = os.open(inside / _LOCK, os.O_RDWR | NEW, 0o600)
        with suppress(OSError):  # without locks, nobody ever takes it for abandoned
            locks(lock)
        os.write(lock, _machine())
        if beside:
            _remove_abandoned(folder.parent)
            # Made inside and moved: so it has the group and the access lists of the folder.
            with suppress(OSError):
                inside.rename(moved)
        yield moved if moved.exists() else inside
    finally:
        for place in (inside, moved):
            _remove(place)
            _ACTIVE.remove(place)
        if lock >= 0:
            os.close(lock)


def discard_stages() -> None:
    """Remove all stages of this process, for one that ends without unwinding."""
    for place in tuple(_ACTIVE):
        _remove(place)


def _remove(own: Path) -> None:
    """Remove a stage; what was taken from its place and not replaced goes back there."""
    with suppress(OSError):
        for old in (own / REPLACED).iterdir():
            if not os.path.lexists(own.parent / old.name):
                old.rename(own.parent / old.name)
    with suppress(OSError):
        for entry in own.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != _LOCK:
                entry.unlink()
        (own / _LOCK).unlink(missing_ok=True)  # last: whoever is killed before leaves it
        own.rmdir()


def _remove_abandoned(folder: Path) -> None:
    """Remove stages whose processes are gone; anything doubtful stays."""
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - names alone, of folders with many files
            if _NAME.fullmatch(name):
                with suppress(OSError):
                    _remove_if_abandoned(folder / name)


def _remove_if_abandoned(found: Path) -> None:
    status = found.lstat()
    age = time.time() - status.st_mtime
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    try:
        lock = os.open(found / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        if age > _MINUTE:
            found.rmdir()  # which the system refuses where anything lies in it
        return
    try:
        if locks(lock) and age >= _least_age(os.read(lock, 100)):
            _remove(found)
    finally:
        os.close(lock)


def _least_age(owner: bytes) -> int:
    """Return the seconds after which an unlocked stage of a machine is abandoned for certain."""
    if not owner:
        return _MINUTE
    return 0 if owner == _machine() else _DAY


def _machine() -> bytes:
    """Return what names the running system; containers of one machine share it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return os.fsencode(os.uname().nodename)
