"""Batches of sends and receives on Gloo and on NCCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from colsynth.torch.rounds import Part
from colsynth.torch.runs import cut


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

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """Receives are posted first, so that data finds its place at once."""
        views, works = cut(buffers, part.sent, chunk), []
        for message in sorted(part.posts, key=lambda message: message.sends):
            post = self._backend.send if message.sends else self._backend.recv
            works.append(post([views[message.data]], message.peer, self._calls))
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
    cannot block, and calls are ordered with the library's own by its stream. PyTorch's ``alltoall``
    would post a round in one call, but it sends empty messages too, which others do not receive.

    Parameters
    ----------
    backend : ProcessGroupNCCL
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._connected: set[torch.device] = set()

    def begin(self, device: torch.device) -> None:
        """Let all ranks make the communicator together; later groups may leave ranks out.

        A barrier would guess the device.
        """
        if device not in self._connected:
            self._backend.allreduce([torch.zeros(1, device=device)]).wait()
            self._connected.add(device)

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """The current stream waits for the group; the caller does not."""
        views = cut(buffers, part.sent, chunk)
        self._backend._start_coalescing()  # noqa: SLF001 - batch_isend_irecv does it so
        for message in part.posts:
            post = self._backend.send if message.sends else self._backend.recv
            post([views[message.data]], message.peer, 0)
        self._backend._end_coalescing().wait()  # noqa: SLF001

    def close(self) -> None:
        """The library ends its own communicator."""
