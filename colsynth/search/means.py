"""The resources of a search: budget, processes, journal, progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from colsynth.jobs.journal import Journal
from colsynth.jobs.workers import Workers

if TYPE_CHECKING:
    from colsynth.search.sharing import Sharing

Progress = Callable[[str, int, int], None]


def onward(told: Progress | None) -> Progress | None:
    """Return what tells progress that never goes back.

    A search inside another counts what it finds again, since its budget does; the other counts only
    what is new to it, and may have fewer evaluations afterwards.
    """
    if told is None:
        return None
    most_done = 0

    def tell(what: str, done: int, most: int) -> None:
        nonlocal most_done
        most_done = max(most_done, done)
        told(what, most_done, most)

    return tell


def in_turn(told: Progress | None, parts: int) -> tuple[Progress | None, ...]:
    """Return what tells the progress of each of several searches as a part of one work.

    Every part counts as much as the first one, so the whole has one size from the beginning.
    """
    if told is None:
        return (None,) * parts
    whole, unit = onward(told), 0

    def part(place: int) -> Progress:
        def tell(what: str, done: int, most: int) -> None:
            nonlocal unit
            unit = unit or most
            share = done * unit // most if most else 0
            if whole is not None:
                whole(what, place * unit + share, parts * unit)

        return tell

    return tuple(map(part, range(parts)))


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
        Called with (what, evaluations done, largest number of evaluations). That is 0 where only
        the work is limited, since nobody knows then how many there will be.
    beside : bool
        Whether this process may copy itself.
    sharing : Sharing, optional
        A copy of this process that measures, too; `workers` do nothing then.
    """

    budget: int | None = None
    workers: Workers = field(default_factory=Workers)
    journal: Journal | None = None
    progress: Progress | None = None
    beside: bool = False
    sharing: Sharing | None = None

    def within(self, before: int, budget: int | None) -> Means:
        """Return those of a search inside one that has made so many evaluations before."""
        told = self.progress
        if told is None:
            return replace(self, budget=budget)

        def tell(what: str, done: int, most: int) -> None:
            told(what, before + done, before + most if most else 0)

        return replace(self, budget=budget, progress=tell)
