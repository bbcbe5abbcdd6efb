"""The same function on many values: in this process, in others, or on any executor."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from functools import partial
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from threading import Thread
from types import TracebackType
from typing import TypeVar

from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.jobs.evaluation import evaluate, fingerprint

_PACKAGE = logging.getLogger("colsynth")
Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 1024
"""Largest number of processes. Each takes about 150 MB, and machines have fewer cores."""


def require_jobs(jobs: int) -> None:
    """Raise for a number of processes below 1 or above `_MOST` (CS210)."""
    require_least("--jobs", jobs, 1, _MOST)


class Workers:
    """Processes that work: a pool on this machine, or those behind an executor.

    Parameters
    ----------
    jobs : int
        Number of processes on this machine. They start with the first work, and end with this
        process, which does the work itself where one is enough.
    executor : concurrent.futures.Executor, optional
        What works instead, such as that of a cluster. Its owner shuts it down. Its processes
        must have the same colsynth as this one.

    Raises
    ------
    InputError
        CS210: `jobs` is out of range.
    """

    def __init__(self, jobs: int = 1, executor: Executor | None = None) -> None:
        require_jobs(jobs)
        self.jobs, self.executor = jobs, executor
        self.pool: ProcessPoolExecutor | None = None
        self.listener: QueueListener | None = None
        self.started: Event | None = None

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
            CS218: the system killed a process, or none could start. CS254: the executor's processes
            have other versions.
        """
        if self.executor is None and (self.jobs <= 1 or len(items) == 1):
            yield from map(work, items)
            return
        waiting = self._submitted(work, items)
        try:
            # Only futures without a result are kept: results may be large.
            for future in as_completed(tuple(waiting)):
                waiting.discard(future)
                yield future.result()
        except BrokenExecutor:
            raise self._broken() from None
        except KeyboardInterrupt:
            if self.pool is not None:  # its thread tells all futures that it ends, and fails where
                waiting.clear()  # one was cancelled meanwhile (Python 3.11)
            raise
        finally:
            for future in waiting:
                future.cancel()

    def _broken(self) -> InputError:
        """Return what is said where a process ended in the midst of the work, or before it."""
        if self.started is not None and not self.started.is_set():
            phrase = "no process could start to work for this one; Python's message is above"
            note = "each process first imports the script that calls colsynth"
            advice = (
                "save the script as a file, and put the call under `if __name__ == '__main__':`"
            )
            return InputError(Diagnostic("CS218", phrase, notes=(note,), help=advice))
        phrase = "a process that worked for this one was ended from outside"
        advice = "where memory ran out, fewer --jobs take less of it"
        return InputError(Diagnostic("CS218", phrase, help=advice))

    def _submitted(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> set[Future[Result]]:
        """Submit all items; the pool's processes start with SIGINT blocked."""
        if self.executor is not None:
            there = partial(evaluate, fingerprint(), work)
            return {self.executor.submit(there, item) for item in items}
        if self.pool is None:
            self.pool = self._start()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            return {self.pool.submit(work, item) for item in items}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self) -> ProcessPoolExecutor:
        # Spawned: a fork would copy the locks of threads that numba may have started.
        context = get_context("spawn")
        said: Queue[logging.LogRecord] = context.Queue()
        self.listener = QueueListener(said, _Relay())
        self.listener.start()
        self.started = context.Event()
        level = _PACKAGE.getEffectiveLevel()
        return ProcessPoolExecutor(
            self.jobs, mp_context=context, initializer=_begin, initargs=(said, level, self.started)
        )


class _Relay(logging.Handler):
    """Repeats the log records of a worker in this process."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(record.name).handle(record)


def _begin(said: Queue[logging.LogRecord], level: int, started: Event) -> None:
    """Leave Ctrl-C and notices to the parent process, and end when it ends."""
    started.set()
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
