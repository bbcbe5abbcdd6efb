"""Runs calls in order: on CPUs in a thread of its own, on CUDA on a stream of its own."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import torch

from colsynth.torch.transport import GlooTransport, NcclTransport
from colsynth.torch.works import DeviceWork, HostWork

Job = Callable[[Any], None]
"""Executes a call on a transport."""

_FAILURE = "failure"
_PATIENCE = 10.0
"""Seconds that the end of a group or of the program waits for calls under way."""


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
        self._thread = threading.Thread(target=self._serve, name="colsynth rounds", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # Python ends threads; inside PyTorch, that aborts

    def submit(
        self, what: str, job: Job, tensors: list[torch.Tensor], result: list[torch.Tensor]
    ) -> HostWork:
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
        return HostWork(future, begun)

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
            del entry, job, future  # what a call touches can be freed when it has ended

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
        """End the thread when all calls are done; wait for it, though not for ever."""
        atexit.unregister(self.close)
        self._jobs.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)


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
    ) -> DeviceWork:
        """Return the work of a call whose kernels are queued behind all earlier ones."""
        device = result[0].device
        self._transport.begin(device)
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        for tensor in tensors:
            tensor.record_stream(stream)  # the allocator must not reuse it before
        with torch.cuda.stream(stream):
            job(self._transport)
        return DeviceWork(stream, result)

    def close(self) -> None:
        """Nothing to end: streams belong to PyTorch."""
