"""Finds calls on a GPU that do not end, as PyTorch's watchdog does with what it has posted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

import torch

_LOOK = 0.5
"""Seconds between two looks."""


class Progress:
    """Counts calls: the GPU writes into memory of the host how many it has done.

    To ask CUDA would end the capture of a graph in another thread.

    Parameters
    ----------
    device : torch.device
    """

    def __init__(self, device: torch.device) -> None:
        self._asked = 0
        self._count = torch.zeros(1, dtype=torch.int64, device=device)
        self._copy = torch.zeros(1, dtype=torch.int64, device="cpu", pin_memory=True)
        self._seen = self._copy.numpy()

    def follow(self) -> int | None:
        """Return the number of a call that was queued on the current stream just now.

        None while a graph is captured, which may run often, or never.
        """
        if torch.cuda.is_current_stream_capturing():
            return None
        self._asked += 1
        self._count += 1
        self._copy.copy_(self._count, non_blocking=True)
        return self._asked

    def done(self) -> int:
        """Return the number of the last call that has ended."""
        return int(self._seen[0])


class Watched(Protocol):
    """What can tell why calls do not end."""

    def fault(self) -> str | None:
        """Return what has failed; None if nothing has."""


class Watch:
    """Looks at calls under way, in a thread of its own.

    Parameters
    ----------
    watched : Watched
    progress : Progress
    timeout : timedelta
        From a call to its end.
    fail : callable
        Takes the name of a call and the reason why it has failed, once.
    """

    def __init__(
        self,
        watched: Watched,
        progress: Progress,
        timeout: timedelta,
        fail: Callable[[str, str], None],
    ) -> None:
        self._watched, self._progress = watched, progress
        self._timeout, self._fail = timeout, fail
        self._open: deque[tuple[int, float, str]] = deque()
        threading.Thread(target=self._look, name="colsynth watch", daemon=True).start()

    def follow(self, what: str) -> None:
        """Watch a call that was queued just now."""
        number = self._progress.follow()
        if number is not None:
            last = time.monotonic() + self._timeout.total_seconds()
            self._open.append((number, last, what))

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK)
            done = self._progress.done()
            while self._open and self._open[0][0] <= done:
                self._open.popleft()
            if not self._open:
                continue
            _, last, what = self._open[0]
            fault = self._watched.fault()
            if fault is None and time.monotonic() > last:
                fault = f"it has not ended within {self._timeout}"
            if fault is not None:
                self._fail(what, fault)
                return
