"""Kernels that share their work among threads, in copies of a process that has such threads.

GNU's OpenMP has no threads in a copy, and numba ends a copy that asks it for some. There, kernels
do their work in one thread: they are compiled once more, without `parallel`.
"""

from __future__ import annotations

import os
from threading import Event
from typing import Any

import numba

from colsynth.kernels.kept import Kept

_shared: list[Any] = []
"""Kernels with `parallel`."""

_alone = Event()
"""Set where this process is a copy that can have no threads."""


def follow_forks(kernel: Any) -> None:
    """Let a kernel with `parallel` work in copies of this process too."""
    _shared.append(kernel)
    if _alone.is_set():
        _work_alone(kernel)


def _after_fork() -> None:
    """Leave threads to the process that was copied, if it has any of OpenMP."""
    try:
        layer = numba.threading_layer()  # type: ignore[attr-defined]
    except ValueError:  # no threads so far: the copy can start its own
        return
    if layer == "omp" and not _alone.is_set():  # numba's other layers survive
        _alone.set()
        for kernel in _shared:
            _work_alone(kernel)


def _work_alone(kernel: Any) -> None:
    """Forget what was compiled for threads."""
    kernel.targetoptions["parallel"] = False
    kernel.overloads.clear()
    kernel._reset_overloads()  # noqa: SLF001 - numba's `recompile` would compile at once
    if isinstance(kernel._cache, Kept):  # noqa: SLF001
        kernel._cache = Kept(kernel.py_func, threads=False)  # noqa: SLF001


os.register_at_fork(after_in_child=_after_fork)
