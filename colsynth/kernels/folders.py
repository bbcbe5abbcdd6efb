"""Where machine code of kernels is kept between runs.

The folders are tried in order, both for reading and for writing:

1. the package's own ``__pycache__``. An image or a shared installation can be filled once by
   an administrator (``colsynth warm``); users then read it, though they may not write to it;
2. the user's cache folder;
3. a folder in the system's temporary directory, for users without a home.

Where ``NUMBA_CACHE_DIR`` is set, the folder that it names takes the place of the first two.

The code of a file is executed, so folders that others could have filled are not used: the
last two must belong to the user alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

VARIABLE = "NUMBA_CACHE_DIR"
_PACKAGE = Path(__file__).resolve().parent
_OTHERS_MAY_WRITE = 0o022


def folders() -> Iterator[Path]:
    """Yield the folders that are safe to read, whether they exist or not."""
    named = os.environ.get(VARIABLE)
    yield Path(named) / "colsynth" if named else _PACKAGE / "__pycache__"
    yield from filter(_is_ours, (*(() if named else _of_user()), *_temporary()))


def is_temporary(folder: Path) -> bool:
    """Whether a folder is the one in the temporary directory, which may be emptied any time."""
    return folder in _temporary()


def prepare(folder: Path) -> None:
    """Make a folder, for the user alone where it is not the package's own.

    Raises
    ------
    OSError
        The system does not let it be made, or somebody else made it first.
    """
    if folder.parent == _PACKAGE:
        folder.mkdir(exist_ok=True)
        return
    with suppress(FileExistsError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    if folder not in set(folders()):
        raise PermissionError(f"{folder} belongs to somebody else")


def _of_user() -> tuple[Path, ...]:
    with suppress(RuntimeError):  # no home is known
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return (Path(base) / "colsynth",)
    return ()


def _temporary() -> tuple[Path, ...]:
    with suppress(OSError):  # no temporary directory can be written to
        return (Path(tempfile.gettempdir()) / f"colsynth-{os.geteuid()}",)
    return ()


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have put files into a folder; true where there is none yet."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    ours = S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return ours and not found.st_mode & _OTHERS_MAY_WRITE
