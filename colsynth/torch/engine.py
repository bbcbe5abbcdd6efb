"""Runs calls in order: on CPUs in a thread of its own, on CUDA on a stream of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist

from colsynth.torch.transport import GlooTransport, NcclTransport

Job = Callable[[Any], None]
"""Executes a call on a transport."""

_FAILURE = "failure"


class RoundsWork(dist.Work):
    """A call under way.

    PyTorch's own work around a future does not raise what the future holds.

    Parameters
    ----------
    future : torch.futures.Future
        Of the output tensors, or of an error.
    told : torch.futures.Future, optional
        Of the message of that error, None where there is none.
    """

    def __init__(
        self,
        future: torch.futures.Future[list[torch.Tensor]],
        told: torch.futures.Future[str | None] | None = None,
    ) -> None:
        super().__init__()
        self._future, self._told = future, told

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the result, on CUDA by the current stream only; raise the error of the call."""
        if timeout:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout.total_seconds()):
                raise RuntimeError(f"colsynth: the call has not ended within {timeout}")
        failure = None if self._told is None else self._told.wait()
        if failure is not None:
            raise RuntimeError(failure)
        self._future.wait()
        return True

    def synchronize(self) -> None:
        """Do as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the call has ended, well or not; on CUDA, whether it was launched."""
        return bool(self._future.done())

    def is_success(self) -> bool:
        """Whether the call has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Return the error of a call that has ended."""
        if self._told is None or not self._told.done() or self._told.value() is None:
            return None
        return RuntimeError(self._told.value())

    def result(self) -> list[torch.Tensor]:
        """Return the output tensors."""
        return self._future.wait()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return the future, as DDP and compiled code wait for it."""
        return self._future


class SeveralWorks(dist.Work):
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

    def synchronize(self) -> None:
        """Do as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether all calls have ended."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether all calls have ended well."""
        return all(work.is_success() for work in self._works)

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


class HostEngine:
    """Executes calls on CPU tensors in a thread of its own, one after the other.

    Parameters
    ----------
    transport : GlooTransport
    store : Store
        Where the first rank that fails tells the others why.
    rank : int
    """

    def __init__(self, transport: GlooTransport, store: Any, rank: int) -> None:
        self._transport, self._store, self._rank = transport, store, rank
        self._jobs: SimpleQueue[tuple[str, Job, Any] | None] = SimpleQueue()
        self._failure: str | None = None
        threading.Thread(target=self._serve, name="colsynth rounds", daemon=True).start()

    def submit(
        self, what: str, job: Job, tensors: list[torch.Tensor], result: list[torch.Tensor]
    ) -> RoundsWork:
        """Return the work of a call that is executed behind all earlier ones.

        Parameters
        ----------
        what : str
            Name of the call, for messages.
        job : callable
        tensors : list of Tensor
            All that the job touches.
        result : list of Tensor
            What the work gives.
        """
        begun: torch.futures.Future[str | None] = torch.futures.Future()

        def finish(done: torch.futures.Future[str | None]) -> list[torch.Tensor]:
            failure = done.value()
            if failure is not None:  # raised here, the error reaches C++ as one
                raise RuntimeError(failure)
            return result

        future = begun.then(finish)
        self._jobs.put((what, job, begun))
        return RoundsWork(future, begun)

    def _serve(self) -> None:
        while (entry := self._jobs.get()) is not None:
            what, job, future = entry
            if self._failure is None:
                try:
                    self._transport.begin()
                    job(self._transport)
                except Exception as fault:  # noqa: BLE001 - any fault must end all ranks
                    self._fail(what, fault)
            with suppress(RuntimeError):  # the error is raised again in a callback of PyTorch's
                future.set_result(self._failure)

    def _fail(self, what: str, fault: Exception) -> None:
        """Keep the reason, tell it to the other ranks, and close what they wait for."""
        first = str(fault).strip().partition("\n")[0].partition(". ")[0]
        text = f"colsynth: {what} failed on rank {self._rank}: {first}"
        with suppress(Exception):  # the store may be gone with the rank that kept it
            known = self._store.compare_set(_FAILURE, "", text).decode()
            text = text if known in (text, "") else f"{text}; before that, {known}"
        self._failure = text
        with suppress(Exception):  # whatever happens, callers must be told
            self._transport.close()

    def close(self) -> None:
        """End the thread when all calls are done."""
        self._jobs.put(None)


class DeviceEngine:
    """Executes calls on CUDA tensors on a stream beside the caller's.

    Nothing waits on the host: the stream waits for what the caller's stream has queued, NCCL's
    stream and this one wait for each other round by round, and whoever waits for the work lets its
    stream wait for this one.

    Parameters
    ----------
    transport : NcclTransport
    """

    def __init__(self, transport: NcclTransport) -> None:
        self._transport = transport
        self._streams: dict[torch.device, Any] = {}

    def submit(
        self, what: str, job: Job, tensors: list[torch.Tensor], result: list[torch.Tensor]
    ) -> RoundsWork:
        """Return the work of a call whose kernels are queued behind all earlier ones."""
        device = result[0].device
        self._transport.begin(device)
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        for tensor in tensors:
            tensor.record_stream(stream)  # the allocator must not reuse it before
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future(devices=[device])
        with torch.cuda.stream(stream):
            job(self._transport)
            future.set_result(result)  # records an event on this stream
        return RoundsWork(future)

    def close(self) -> None:
        """Nothing to end: streams belong to PyTorch."""
