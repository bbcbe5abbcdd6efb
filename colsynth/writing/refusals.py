"""The diagnostics of a place that cannot be written to."""

from __future__ import annotations

import errno
from pathlib import Path

from colsynth.errors import Diagnostic, InputError

_FULL = "free some space, or choose another place"
_FORBIDDEN = "choose another place, or get the permission"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: "choose a place on another file system; this one is read-only",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: one of its folders is a file",
    errno.EBADF: "open the stream for writing, as in `colsynth ... > file`",
    errno.EMFILE: "raise the limit of open files with `ulimit -n`",
    errno.ENOMEM: "free some memory, and run the command again",
}
"""What to do, by the number of the system's refusal."""

_OTHERWISE = "mend the cause or choose another place, and run the command again"


def exists(path: Path, advice: str = "--force overwrites it, or choose another") -> InputError:
    """Return the error for a place that is taken."""
    return InputError(Diagnostic("CS207", f"{path} exists", help=advice))


def unwritable(path: Path, reason: str | OSError, advice: str | None = None) -> InputError:
    """Return the error for a place where the system lets nothing be written (CS208).

    Parameters
    ----------
    path : Path
    reason : str or OSError
    advice : str, optional
        What to do, where the reason alone does not tell.
    """
    text, usual = str(reason), "choose another place"
    if isinstance(reason, OSError):
        text, usual = reason.strerror or text, advice_on(reason)
    phrase = f"cannot write {path}"
    return InputError(Diagnostic("CS208", phrase, notes=(text,), help=advice or usual))


def advice_on(fault: OSError) -> str:
    """Return what to do about a refusal of the system."""
    return _ADVICE.get(fault.errno or 0, _OTHERWISE)
