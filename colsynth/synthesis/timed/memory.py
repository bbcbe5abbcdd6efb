"""Whether a schedule can be held at all: said before the work, not in the midst of it."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError
from colsynth.memory import refuse_beyond_memory
from colsynth.model import Problem
from colsynth.model.problem import PHASES
from colsynth.synthesis.timed.demands import count_chunks, count_transfers

_MOST_CHUNKS = 2**31 - 1
"""Chunks are numbered in 32 bits."""

_OF_LOGS, _OF_TREES = 3, 64
"""Bytes that a transfer takes at least: in a log, with its port, where everybody wants
everything (`kernels.rounds`); elsewhere as a task, of which 170 to 200 were measured."""


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
    transfers = count_transfers(problem, chunks_per_gpu)
    need = transfers * (_OF_LOGS if problem.collective in PHASES else _OF_TREES)
    refuse_beyond_memory(f"a schedule of {transfers} transfers", need, advice)
