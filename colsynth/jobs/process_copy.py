"""A copy of this process that does some work.

The copy has everything that was made so far and needs no start, unlike the processes of `Workers`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_PACKAGE = logging.getLogger("colsynth")
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl: which signal a process gets when its parent ends."""

Records = list[logging.LogRecord]
"""What a copy would have logged, for its parent."""


def is_possible() -> bool:
    """Whether processes can copy themselves: on macOS, system libraries do not survive it."""
    return sys.platform == "linux"


def start_copy(work: Callable[[Records], None]) -> int:
    """Begin a copy that ends after some work; return its process id, 0 where none can begin.

    No other thread of this process may hold a lock that the work needs. The copy fails in silence:
    whoever needs the work then does it, and meets the same error.

    Parameters
    ----------
    work : callable
        Takes a list, which grows by what the copy would log.
    """
    if not is_possible():
        return 0
    try:
        process = os.fork()
    except OSError:  # no memory, or too many processes
        return 0
    if not process:
        _work(work)
    return process


def end_copy(process: int) -> None:
    """Kill a copy, which may have ended before."""
    with suppress(ProcessLookupError, ChildProcessError):  # who ignores SIGCHLD has neither
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def repeat(records: Records) -> None:
    """Log in this process what a copy would have logged."""
    for record in records:
        logging.getLogger(record.name).handle(record)


def _work(work: Callable[[Records], None]) -> NoReturn:
    """Do the work in the copy and end, without the parent's cleanup."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        told = _Told()
        _PACKAGE.handlers[:], _PACKAGE.propagate = [told], False
        work(told.records)
    finally:
        os._exit(0)


class _Told(logging.Handler):
    """Keeps log records for the parent."""

    def __init__(self) -> None:
        super().__init__()
        self.records: Records = []

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args = record.getMessage(), None
        self.records.append(record)
