"""Calls under way, as PyTorch's callers, DDP and compiled code wait for them."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

_LOOK = 1e-4
"""Seconds between two looks at a GPU by a caller with a time limit."""


class _Work(dist.Work):
    """What all kinds of call have in common."""

    def synchronize(self) -> None:
        """Do as `wait`."""
        self.wait()

    def is_success(self) -> bool:
        """Whether all of it has ended well."""
        return self.is_completed() and self.exception() is None


class HostWork(_Work):
    """A call on CPU tensors.

    PyTorch's own work around a future does not raise what the future holds.

    Parameters
    ----------
    future : torch.futures.Future
        Of the output tensors, or of an error.
    told : torch.futures.Future
        Of the message of that error, None where there is none.
    """

    def __init__(
        self,
        future: torch.futures.Future[list[torch.Tensor]],
        told: torch.futures.Future[str | None],
    ) -> None:
        super().__init__()
        self._future, self._told = future, told

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the result; raise the error of the call."""
        if timeout:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout.total_seconds()):
                raise _late(timeout)
        failure = self._told.wait()
        if failure is not None:
            raise RuntimeError(failure)
        self._future.wait()
        return True

    def is_completed(self) -> bool:
        """Whether the call has ended, well or not."""
        return bool(self._future.done())

    def exception(self) -> Exception | None:
        """Return the error of a call that has ended."""
        if not self._told.done() or self._told.value() is None:
            return None
        return RuntimeError(self._told.value())

    def result(self) -> list[torch.Tensor]:
        """Return the output tensors."""
        return self._future.wait()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return the future, as DDP and compiled code wait for it."""
        return self._future


class DeviceWork(_Work):
    """A call on CUDA tensors, whose kernels are queued on a stream.

    Errors of the GPU or of NCCL reach the program as in every job of PyTorch: its watchdog ends
    the process.

    Parameters
    ----------
    stream : torch.cuda.Stream
        Where all that the call does was queued just now.
    result : list of Tensor
    """

    def __init__(self, stream: Any, result: list[torch.Tensor]) -> None:
        super().__init__()
        self._stream, self._result = stream, result
        self._end = stream.record_event()
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Let the current stream wait for the result; with a time limit, the caller waits too."""
        last = time.monotonic() + timeout.total_seconds()
        while timeout and not self._end.query():
            if time.monotonic() > last:
                raise _late(timeout)
            time.sleep(_LOOK)
        torch.cuda.current_stream(self._stream.device).wait_event(self._end)
        return True

    def is_completed(self) -> bool:
        """Whether the GPU has done all of it."""
        return bool(self._end.query())

    def exception(self) -> None:
        """Return None: see the class."""

    def result(self) -> list[torch.Tensor]:
        """Return the output tensors, for the current stream."""
        self.wait()
        return self._result

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future, as DDP and compiled code wait for it; making one takes a while."""
        if self._future is None:
            self._future = torch.futures.Future(devices=[self._stream.device])
            with torch.cuda.stream(self._stream):
                self._future.set_result(self._result)  # records an event on this stream
        return self._future


class SeveralWorks(_Work):
    """Calls that count as one: it ends when all have ended.

    Parameters
    ----------
    works : list of Work
    """

    def __init__(self, works: list[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for all; raise the error of the first that failed."""
        return all(work.wait(timeout) for work in self._works)

    def is_completed(self) -> bool:
        """Whether all calls have ended."""
        return all(work.is_completed() for work in self._works)

    def exception(self) -> Exception | None:
        """Return the error of the first call that failed."""
        found = (work.exception() for work in self._works)
        return next((fault for fault in found if fault is not None), None)

    def result(self) -> list[torch.Tensor]:
        """Return the output tensors of all calls."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future of the output tensors of all calls."""
        together = torch.futures.collect_all([work.get_future() for work in self._works])
        return together.then(lambda done: [x for one in done.value() for x in one.value()])


def _late(timeout: timedelta) -> RuntimeError:
    return RuntimeError(f"colsynth: the call has not ended within {timeout}")
