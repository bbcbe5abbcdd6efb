"""Results of plans that a copy of this process measured before it was known who needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colsynth.search.measured import Measured
from colsynth.search.searcher import Searcher


@dataclass(frozen=True)
class Seen:
    """Results from a copy of this process.

    Parameters
    ----------
    found : tuple of Measured
    best : Measured or None
    made : tuple
        What the passes of the best plan gave.
    spent : mapping
        Seconds by name.
    """

    found: tuple[Measured, ...]
    best: Measured | None
    made: tuple[Any, ...]
    spent: Mapping[str, float]


def seen_by(searcher: Searcher, work: Callable[[], None]) -> Seen:
    """Return what some work finds in a copy of this process, where it is all that is kept."""
    workshop, known = searcher.workshop, set(searcher.found)
    before = workshop.clock.seconds()
    work()
    found = tuple(m for plan, m in searcher.found.items() if plan not in known)
    after = workshop.clock.seconds()
    spent = {name: seconds - before.get(name, 0) for name, seconds in after.items()}
    best = searcher.objective.best(found)
    return Seen(found, best, () if best is None else workshop.made_of(best.plan), spent)


def learn(searcher: Searcher, seen: Seen | None) -> None:
    """Take over what was measured ahead, if anything; the best of all is not made again."""
    if seen is None:
        return
    searcher.known = {**searcher.known, **{m.plan: m for m in seen.found}}
    searcher.workshop.clock.add(seen.spent)
    best, rival = searcher.best(), seen.best
    if rival and best and searcher.objective.best((best, rival)) is rival:
        searcher.workshop.adopt(rival, seen.made)
        searcher.workshop.pin(rival.plan)
