"""Evaluations on several cores."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from types import TracebackType

from colsynth.tuning.candidates import Candidate
from colsynth.tuning.evaluate import Case, Measured, evaluate


class Workers:
    """Processes that evaluate candidates; one alone evaluates in this process.

    Parameters
    ----------
    jobs : int
        Processes; they start with the first work.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def run(self, case: Case, candidates: Sequence[Candidate]) -> Iterator[Measured]:
        """Yield the measurement of every candidate as it is ready, in no order."""
        if self.jobs <= 1 or len(candidates) == 1:
            yield from (evaluate(case, candidate) for candidate in candidates)
            return
        if self.pool is None:
            # Spawned: a fork would copy the locks of threads that numba may have started.
            self.pool = ProcessPoolExecutor(
                self.jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts
            )
        waiting = [self.pool.submit(evaluate, case, candidate) for candidate in candidates]
        for future in as_completed(waiting):
            yield future.result()


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
