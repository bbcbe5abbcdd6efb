"""Folders, written whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from colsynth.writing.refusals import exists, unwritable
from colsynth.writing.stage import REPLACED, stage

_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""


def write_folder(place: Path, fill: Callable[[Path], object], *, replace: bool = False) -> None:
    """Write a folder whole: it is filled beside its place and then put there.

    Parameters
    ----------
    place : Path
        Nothing, an empty folder, or one that gives way; a link leads to the folder. Folders on
        the way are made.
    fill : callable
        Given an empty folder, writes everything that shall be in it.
    replace : bool
        Whether a folder that holds something gives way. It does so in one step where the file
        system can swap two folders; where it cannot, the place is empty for an instant, and the
        next run puts the old folder back if this one is killed in that instant.

    Raises
    ------
    InputError
        CS207 where a folder shall not give way, even if it came only just now; CS208 when the
        system refuses.
    """
    try:
        target = place.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        with stage(target.parent) as own:
            new = own / "new"
            new.mkdir()
            fill(new)
            _move(new, target, own / REPLACED, replace)
    except OSError as fault:
        if fault.errno in (errno.ENOTEMPTY, errno.EEXIST) and not replace:
            raise exists(place, "--force replaces it") from fault
        raise unwritable(place, fault) from fault


def _move(new: Path, place: Path, aside: Path, replace: bool) -> None:
    """Put a folder in its place; with `replace`, whatever stands there."""
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(place.stat().st_mode))
    try:
        new.rename(place)  # takes the place of nothing, or of an empty folder
    except OSError as fault:
        if not replace or fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not exchange(new, place):
            aside.mkdir()
            place.rename(aside / place.name)
            new.rename(place)


def exchange(one: Path, other: Path) -> bool:
    """Whether the system swapped what two paths name, in one step; not every one can."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return bool(renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
