"""Files, written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from colsynth.writing.locks import NEW, alone
from colsynth.writing.refusals import exists, unwritable
from colsynth.writing.stage import stage
from colsynth.writing.streams import open_stream

Content = bytes | Callable[[BinaryIO], object]
"""What a file shall hold, or a function that writes it to a stream."""

_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)


def write_files(contents: Mapping[Path, Content], *, replace: bool = True) -> None:
    """Write every file whole: all drafts are completed first, then put in their places.

    Of two processes that write several files of the same names, one goes after the other.

    Parameters
    ----------
    contents : mapping
        By path; folders on the way are made. A link leads to the file that is written. Open
        streams, devices and pipes are written to as they are.
    replace : bool
        Whether files give way; those that replace them keep their modes.

    Raises
    ------
    InputError
        CS207 where a file stands and shall not give way, even if it came only just now; CS208
        when the system refuses. Then no place holds a part of a file.
    """
    path = next(iter(contents), Path())
    try:
        with ExitStack() as stages:
            drafts: list[tuple[Path, Path]] = []
            for path, content in contents.items():
                stream = open_stream(path)
                if stream is not None:
                    with stream:
                        _fill(stream, content)
                    continue
                place = path.resolve()
                draft = stages.enter_context(_stage_for(place.parent)) / "draft"
                put(draft, content, like=place if replace else None)
                drafts.append((draft, place))
            for path in contents:
                if not replace and path.is_file() and drafts:
                    raise exists(path)
            for _, place in drafts:
                place.parent.mkdir(parents=True, exist_ok=True)
            if len(drafts) > 1:
                stages.enter_context(alone(drafts[0][1].parent))
            for draft, place in drafts:
                _move(draft, place, replace)
    except BrokenPipeError:
        raise  # the reader has seen enough, which is no fault
    except OSError as fault:
        raise unwritable(path, fault) from fault


def put(path: Path, content: Content, like: Path | None = None) -> None:
    """Write a new file to the disk itself; with the mode and owner of another, if it exists."""
    with os.fdopen(os.open(path, os.O_WRONLY | NEW, 0o666), "wb") as stream:
        _fill(stream, content)
        stream.flush()
        with suppress(FileNotFoundError):
            if like is not None:
                _liken(stream.fileno(), like.stat())
        os.fsync(stream.fileno())


def _stage_for(folder: Path) -> AbstractContextManager[Path]:
    """Return a stage beside a folder; for one that is not there yet, in the nearest above."""
    if folder.exists():
        return stage(folder, beside=True)
    return stage(next(above for above in folder.parents if above.exists()))


def _fill(stream: BinaryIO, content: Content) -> None:
    if isinstance(content, bytes):
        stream.write(content)
    else:
        content(stream)


def _liken(descriptor: int, wanted: os.stat_result) -> None:
    """Give a file the owner, as far as the system lets us, and the mode of another."""
    with suppress(OSError):
        os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(wanted.st_mode))


def _move(draft: Path, place: Path, replace: bool) -> None:
    """Put a draft in its place; a link to it never takes the place of a file that came first."""
    if not replace:
        try:
            place.hardlink_to(draft)
        except FileExistsError:
            raise exists(place) from None
        except OSError as fault:
            if fault.errno not in _NO_LINKS:
                raise
        else:
            return
    draft.replace(place)
