"""The messages of a round, on Gloo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from colsynth.torch.rounds import Part
from colsynth.torch.runs import cut


class Transport(Protocol):
    """Moves the messages of rounds."""

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """Post all messages of a round at once, and wait for them, on CUDA by the stream only.

        Parameters
        ----------
        part : Part
            Its posts are done, no local steps.
        buffers : dict
            Flat tensors of bytes by the names that slots have.
        chunk : int
            Bytes.
        """


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
