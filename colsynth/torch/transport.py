"""Batches of sends and receives on Gloo and on NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

Batch = Sequence[tuple[bool, int, torch.Tensor]]
"""(whether it is sent, rank of the other end, data)."""


class Transport(Protocol):
    """Moves the messages of rounds."""

    def exchange(self, batch: Batch) -> None:
        """Post all messages of a round at once, and wait for them, on CUDA by the stream only."""


class GlooTransport:
    """Messages over a Gloo backend that nobody else uses, so that tags are ours alone.

    Parameters
    ----------
    backend : ProcessGroupGloo
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._calls = 0

    def begin(self) -> None:
        """Give the messages of the next call a tag of their own: calls never mix."""
        self._calls = (self._calls + 1) % (1 << 30)

    def exchange(self, batch: Batch) -> None:
        """Receives are posted first, so that data finds its place at once."""
        works = []
        for sends, peer, data in sorted(batch, key=lambda message: message[0]):
            post = self._backend.send if sends else self._backend.recv
            works.append(post([data], peer, self._calls))
        for work in works:
            work.wait()

    def close(self) -> None:
        """Close all connections: whoever waits at their other ends gets an error."""
        abort = getattr(self._backend, "abort", None)
        if abort is not None:
            abort()
        self._backend = None


class NcclTransport:
    """Messages over the library's own communicator, one group of NCCL per round.

    A group starts all its sends and receives together. So the order in which ranks list them
    cannot block, and calls are ordered with the library's own by its stream.

    Parameters
    ----------
    backend : ProcessGroupNCCL
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._connected: set[torch.device] = set()

    def begin(self, device: torch.device) -> None:
        """Let all ranks make the communicator together; later batches may leave ranks out.

        A barrier would guess the device.
        """
        if device not in self._connected:
            self._backend.allreduce([torch.zeros(1, device=device)]).wait()
            self._connected.add(device)

    def exchange(self, batch: Batch) -> None:
        """The current stream waits for the group; the caller does not."""
        self._backend._start_coalescing()  # noqa: SLF001 - batch_isend_irecv does it so
        for sends, peer, data in batch:
            post = self._backend.send if sends else self._backend.recv
            post([data], peer, 0)
        self._backend._end_coalescing().wait()  # noqa: SLF001

    def close(self) -> None:
        """The library ends its own communicator."""
