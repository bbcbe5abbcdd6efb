"""Work in a copy of this process, beside what this process does meanwhile.

The copy has everything that was made so far and needs no start, unlike the processes of `Workers`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Generic, NoReturn, TypeVar

_PACKAGE = logging.getLogger("colsynth")
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl: which signal a process gets when its parent ends."""

Result = TypeVar("Result")


def is_possible() -> bool:
    """Whether processes can copy themselves: on macOS, system libraries do not survive it."""
    return sys.platform == "linux"


class Beside(Generic[Result]):
    """Results that a copy of this process makes, one after the other.

    No other thread of this process may hold a lock that the work needs. Use it as a context:
    at the end of the block the copy is killed, whether or not its results were taken.

    Parameters
    ----------
    work : callable
        Takes nothing and returns the results, which must allow pickling.
    wanted : bool
        Whether to start at all.
    """

    def __init__(self, work: Callable[[], Iterable[Result]], *, wanted: bool = True) -> None:
        self._process = 0
        self._stream: IO[bytes] | None = None
        if wanted and is_possible():
            self._start(work)

    def _start(self, work: Callable[[], Iterable[Result]]) -> None:
        reader, writer = os.pipe()
        try:
            process = os.fork()
        except OSError:  # no memory, or too many processes: the caller does the work itself
            os.close(reader)
            os.close(writer)
            return
        if not process:
            os.close(reader)
            _work(work, writer)
        os.close(writer)
        self._process, self._stream = process, os.fdopen(reader, "rb")

    def result(self) -> Result | None:
        """Wait for the next result and return it; None where there is none, or the copy failed.

        The caller then does the work itself, and meets the same error.
        """
        if self._stream is None:
            return None
        result: Result
        try:
            result, records = pickle.load(self._stream)  # noqa: S301 - this program wrote it
        except (EOFError, pickle.UnpicklingError):  # the copy was through, or killed before
            return None
        for record in records:
            logging.getLogger(record.name).handle(record)
        return result

    def __enter__(self) -> Beside[Result]:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._process:
            with suppress(ProcessLookupError, ChildProcessError):  # who ignores SIGCHLD has neither
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
            self._process = 0


def _work(work: Callable[[], Iterable[Any]], writer: int) -> NoReturn:
    """Do the work in the copy, write its results and end, without the parent's cleanup."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        # The copy fails in silence: the caller then does the work, and meets the same error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        told = _Told()
        _PACKAGE.handlers[:], _PACKAGE.propagate = [told], False
        with os.fdopen(writer, "wb") as stream:
            for result in work():
                stream.write(pickle.dumps((result, told.records), pickle.HIGHEST_PROTOCOL))
                stream.flush()
                told.records.clear()
    finally:
        os._exit(0)


class _Told(logging.Handler):
    """Keeps log records for the parent."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args = record.getMessage(), None
        self.records.append(record)
