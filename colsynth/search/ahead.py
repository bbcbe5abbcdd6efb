"""Results of plans that a copy of this process measured before it was known who needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def look_ahead(searcher: Searcher, batch: Sequence[Alternatives], wish: Wish) -> Seen:
    """Measure plans and then their variants in a copy of this process.

    What the searcher knows there is lost.
    """
    workshop, limits = searcher.workshop, searcher.limits()
    before = workshop.clock.seconds()
    first = [m for row in batch for m in workshop.measure(row, limits)]
    variants = wish.variants_of(first, searcher.objective)
    found = (*first, *(m for row in variants for m in workshop.measure(row, limits)))
    after = workshop.clock.seconds()
    spent = {name: seconds - before.get(name, 0) for name, seconds in after.items()}
    best = searcher.objective.best(found)
    return Seen(found, best, () if best is None else workshop.made_of(best.plan), spent)


def learn(searcher: Searcher, seen: Seen) -> None:
    """Take over what was measured ahead; the best of all is not made again."""
    searcher.known = {**searcher.known, **{m.plan: m for m in seen.found}}
    searcher.workshop.clock.add(seen.spent)
    best, rival = searcher.best(), seen.best
    if rival and best and searcher.objective.best((best, rival)) is rival:
        searcher.workshop.adopt(rival, seen.made)
        searcher.workshop.pin(rival.plan)
