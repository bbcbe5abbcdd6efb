"""Worker processes: the same function on many values."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.queues import Queue
from threading import Thread
from types import TracebackType
from typing import TypeVar

from colsynth.errors import Diagnostic, InputError, require_least

_PACKAGE = logging.getLogger("colsynth")
Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 1024
"""Largest number of processes. Each takes about 150 MB, and machines have fewer cores."""


def require_jobs(jobs: int) -> None:
    """Raise for a number of processes below 1 or above `_MOST` (CS210)."""
    require_least("--jobs", jobs, 1, _MOST)


class Workers:
    """A pool of worker processes; with one job, this process does the work.

    Parameters
    ----------
    jobs : int
        Number of processes. They start with the first work, and end with this process.

    Raises
    ------
    InputError
        CS210: `jobs` is out of range.
    """

    def __init__(self, jobs: int = 1) -> None:
        require_jobs(jobs)
        self.jobs = jobs
        self.pool: ProcessPoolExecutor | None = None
        self.listener: QueueListener | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):  # on Ctrl-C, wait for no worker
            for process in active_children():
                process.terminate()
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
        if self.listener is not None:
            self.listener.stop()

    def run(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results of `work` on every item as they become ready, in any order.

        Parameters
        ----------
        work : callable
            A module-level function, or a `partial` of one, so that it can be pickled.
        items : sequence

        Raises
        ------
        InputError
            CS218: the system killed a process.
        """
        if self.jobs <= 1 or len(items) == 1:
            yield from map(work, items)
            return
        if self.pool is None:
            self.pool = self._start()
        try:
            # The list is not kept: it would keep every result, however large.
            for future in as_completed(_submitted(self.pool, work, items)):
                yield future.result()
        except BrokenProcessPool:
            phrase = "a process that worked for this one was ended from outside"
            advice = "where memory ran out, fewer --jobs take less of it"
            raise InputError(Diagnostic("CS218", phrase, help=advice)) from None

    def _start(self) -> ProcessPoolExecutor:
        # Spawned: a fork would copy the locks of threads that numba may have started.
        context = get_context("spawn")
        said: Queue[logging.LogRecord] = context.Queue()
        self.listener = QueueListener(said, _Relay())
        self.listener.start()
        level = _PACKAGE.getEffectiveLevel()
        return ProcessPoolExecutor(
            self.jobs, mp_context=context, initializer=_begin, initargs=(said, level)
        )


def _submitted(
    pool: ProcessPoolExecutor, work: Callable[[Item], Result], items: Sequence[Item]
) -> list[Future[Result]]:
    """Submit all items to a pool, with SIGINT blocked in the processes that this starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        return [pool.submit(work, item) for item in items]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Relay(logging.Handler):
    """Repeats the log records of a worker in this process."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(record.name).handle(record)


def _begin(said: Queue[logging.LogRecord], level: int) -> None:
    """Leave Ctrl-C and notices to the parent process, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _PACKAGE.addHandler(QueueHandler(said))
    _PACKAGE.setLevel(level)
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End this process when the parent ends, even if the parent is killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
