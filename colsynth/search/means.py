"""The resources of a search: budget, processes, journal, progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colsynth.jobs.journal import Journal
from colsynth.jobs.workers import Workers

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Means:
    """The resources of a search.

    Parameters
    ----------
    budget : int or None
        Largest number of evaluations, including those from the journal; None: that of the level.
    workers : Workers
    journal : Journal, optional
    progress : callable or None
        Called with (what, evaluations done, largest number of evaluations).
    beside : bool
        Whether this process may copy itself, to measure ahead what may be needed.
    """

    budget: int | None = None
    workers: Workers = field(default_factory=Workers)
    journal: Journal | None = None
    progress: Progress | None = None
    beside: bool = False
