"""The memory of this machine, and the refusal of what does not fit into it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from colsynth.errors import Diagnostic, InputError, Span

GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells the limits of a container."""
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Files there with the memory that it may take."""


def refuse_beyond_memory(what: str, need: int, advice: str, span: Span | None = None) -> None:
    """Refuse what needs more bytes than this process may take (CS308)."""
    memory = memory_bytes()
    if memory is not None and need > memory:
        phrase = f"{what} does not fit into memory"
        note = f"it takes {need / 10**9:.3g} GB at least, this machine has {memory / 10**9:.3g} GB"
        raise InputError(Diagnostic("CS308", phrase, span, (note,), advice))


def memory_bytes() -> int | None:
    """Return the bytes that this process may take, None where the system tells nobody."""
    known: list[int] = []
    with suppress(OSError, ValueError, AttributeError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            known.append(int((GROUP / name).read_text(encoding="ascii")))
    return min(known, default=None)
