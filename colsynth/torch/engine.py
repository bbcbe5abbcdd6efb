"""Runs calls in order: on CPUs in a thread of its own, on CUDA on a stream of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import torch

from colsynth.torch.failures import told
from colsynth.torch.nccl import DirectTransport, NcclTransport
from colsynth.torch.transport import GlooTransport
from colsynth.torch.watch import Progress, Watch
from colsynth.torch.works import DeviceWork, HostWork

Job = Callable[[Any], None]
"""Executes a call on a transport."""


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

    def _fail(self, what: str, fault: Exception) -> None:
        """Keep the reason, tell it to the other ranks, and close what they wait for."""
        first = str(fault).strip().partition("\n")[0].partition(". ")[0]
        self._failure = told(self._store, self._rank, what, first)
        with suppress(Exception):  # whatever happens, callers must be told
            self._transport.close()

    def close(self) -> None:
        """End the thread when all calls are done."""
        self._jobs.put(None)


class DeviceEngine:
    """Executes calls on CUDA tensors on a stream beside the caller's.

    Nothing waits on the host: the stream waits for what the caller's stream has queued, and whoever
    waits for the work lets its stream wait for this one.

    Parameters
    ----------
    transport : NcclTransport
    timeout : timedelta
    fail : callable
        Takes the name of a call and the reason why it has failed.
    """

    def __init__(
        self, transport: NcclTransport, timeout: timedelta, fail: Callable[[str, str], None]
    ) -> None:
        self._transport, self._timeout, self._fail = transport, timeout, fail
        self._streams: dict[torch.device, Any] = {}
        self._watches: dict[torch.device, Watch] = {}

    def submit(
        self, what: str, job: Job, tensors: list[torch.Tensor], result: list[torch.Tensor]
    ) -> DeviceWork:
        """Return the work of a call whose kernels are queued behind all earlier ones."""
        device = result[0].device
        if device not in self._streams:
            self._add(device)
        stream, watch = self._streams[device], self._watches.get(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        for tensor in tensors:
            tensor.record_stream(stream)  # the allocator must not reuse it before
        with torch.cuda.stream(stream):
            self._transport.begin(device)
            job(self._transport)
            if watch is not None:
                watch.follow(what)
        return DeviceWork(stream, result)

    def _add(self, device: torch.device) -> None:
        self._streams[device] = stream = torch.cuda.Stream(device)
        if isinstance(self._transport, DirectTransport):
            with torch.cuda.stream(stream):
                progress = Progress(device)
            watch = Watch(self._transport, progress, self._timeout, self._fail)
            self._watches[device] = watch

    def close(self) -> None:
        """Nothing to end: streams belong to PyTorch."""
