"""What a search works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colsynth.jobs.journal import Journal
from colsynth.jobs.workers import Workers

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Means:
    """Processes, memory, and somebody who is told.

    Parameters
    ----------
    budget : int or None
        Most evaluations, those of the journal included; None is that of the level.
    workers : Workers
    journal : Journal
    progress : callable or None
        Told (what, evaluations done, most evaluations).
    """

    budget: int | None = None
    workers: Workers = field(default_factory=Workers)
    journal: Journal = field(default_factory=Journal)
    progress: Progress | None = None
