"""Whether a schedule can be held at all: said before the work, not in the midst of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Problem
from colsynth.model.problem import PHASES
from colsynth.synthesis.timed.demands import count_chunks, count_transfers

_MOST_CHUNKS = 2**31 - 1
"""Chunks are numbered in 32 bits."""

_OF_LOGS, _OF_TREES = 3, 64
"""Bytes that a transfer takes at least: in a log, with its port, where everybody wants
everything (`kernels.rounds`); elsewhere as a task, of which 170 to 200 were measured."""

_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Files under /sys/fs/cgroup with the memory that a container may take."""


def refuse_too_large(problem: Problem, chunks_per_gpu: int) -> None:
    """Refuse more chunks than can be numbered, and more transfers than memory holds.

    Raises
    ------
    InputError
        CS125 for the chunks, CS308 for the transfers.
    """
    chunks = count_chunks(problem, chunks_per_gpu)[0]
    advice = "take fewer --chunks-per-gpu, or fewer GPUs"
    if chunks > _MOST_CHUNKS:
        phrase = f"{chunks} chunks are more than {_MOST_CHUNKS}"
        raise InputError(Diagnostic("CS125", phrase, help=advice))
    transfers, memory = count_transfers(problem, chunks_per_gpu), _memory()
    need = transfers * (_OF_LOGS if problem.collective in PHASES else _OF_TREES)
    if memory is not None and need > memory:
        phrase = f"a schedule of {transfers} transfers does not fit into memory"
        note = f"it takes {need / 10**9:.3g} GB at least, this machine has {memory / 10**9:.3g} GB"
        raise InputError(Diagnostic("CS308", phrase, notes=(note,), help=advice))


def _memory() -> int | None:
    """Return the bytes that this process may take, None where the system tells nobody."""
    known: list[int] = []
    with suppress(OSError, ValueError, AttributeError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            known.append(int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii")))
    return min(known, default=None)
