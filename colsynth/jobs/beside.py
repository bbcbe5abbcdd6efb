"""Work that a copy of this process does, beside what this process does meanwhile."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from typing import IO, Generic, TypeVar

from colsynth.jobs.process_copy import Records, end_copy, repeat, start_copy

Result = TypeVar("Result")


class Beside(Generic[Result]):
    """Results that a copy of this process makes, one after the other (`start_copy`).

    Use it as a context: at the end of the block the copy is killed, whether or not its results
    were taken.

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
        if wanted:
            self._start(work)

    def _start(self, work: Callable[[], Iterable[Result]]) -> None:
        reader, writer = os.pipe()

        def tell(records: Records) -> None:
            os.close(reader)
            with os.fdopen(writer, "wb") as stream:
                for result in work():
                    stream.write(pickle.dumps((result, records), pickle.HIGHEST_PROTOCOL))
                    stream.flush()
                    records.clear()

        self._process = start_copy(tell)
        os.close(writer)
        self._stream = os.fdopen(reader, "rb")

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
        repeat(records)
        return result

    def __enter__(self) -> Beside[Result]:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._process:
            end_copy(self._process)
            self._process = 0
