"""Results of plans that a copy of this process measured before it was known who needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colsynth.search.measured import Measured
from colsynth.search.searcher import Alternatives, Searcher
from colsynth.search.wish import Wish


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


def seen_by(searcher: Searcher, work: Callable[[], Sequence[Measured]]) -> Seen:
    """Return what some work finds in a copy of this process, where it is all that is kept."""
    workshop = searcher.workshop
    before = workshop.clock.seconds()
    found = tuple(work())
    after = workshop.clock.seconds()
    spent = {name: seconds - before.get(name, 0) for name, seconds in after.items()}
    best = searcher.objective.best(found)
    return Seen(found, best, () if best is None else workshop.made_of(best.plan), spent)


def measured_ahead(searcher: Searcher, batch: Sequence[Alternatives], wish: Wish) -> list[Measured]:
    """Measure plans and then their variants."""
    workshop, limits = searcher.workshop, searcher.limits()
    first = [m for row in batch for m in workshop.measure(row, limits)]
    variants = wish.variants_of(first, searcher.objective)
    return [*first, *(m for row in variants for m in workshop.measure(row, limits))]


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
