"""Exact schedules in a search: what the highest level tries of them.

Their times in the model say little about their times in files, where steps are not kept. So of
schedules that the model finds about equally good, with other numbers of steps, the simulator
decides, together with the number of copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from typing import Any

from colsynth.search.levels import HEAVY
from colsynth.search.plan import Plan
from colsynth.search.searcher import Searcher
from colsynth.search.wish import Wish

_STARTS: tuple[Mapping[str, Any], ...] = (
    {"chunks_per_gpu": 1},
    {"chunks_per_gpu": 2},
    {"chunks_per_gpu": 1, "steps": 3},
    {"chunks_per_gpu": 1, "between": "relays"},
)
"""What is tried at every size."""

_WORK = 2
"""The solver's work for each."""

_COPIES = ("lower-timed.instances",)
_TOGETHER = ("solve-exact.steps", *_COPIES)
"""Choices that are varied from every start, and together from the best plan: each by itself may
make it slower."""


def try_exact(searcher: Searcher, wish: Wish) -> None:
    """Try exact schedules, if their solver is installed: starts, copies, then steps with them."""
    if not wish.allows(HEAVY) or find_spec("ortools") is None:
        return
    sizes = searcher.workshop.case.sizes
    values = ({"size": size, "work": _WORK, **some} for size in sizes for some in _STARTS)
    starts = [wish.start(HEAVY, **given) for given in values]
    searcher.try_all([(replace(x, protocol=y),) for x in starts for y in searcher.protocols])
    of_starts = (
        searcher.objective.best(m for m in searcher.found.values() if m.plan.passes == x.passes)
        for x in starts
    )
    parents = [m.plan for m in of_starts if m is not None]
    searcher.try_all([(x,) for parent in parents for x in _varied(parent, _COPIES, wish)])
    best = searcher.best(HEAVY)
    if best is not None:
        searcher.try_all([(x,) for x in _varied(best.plan, _TOGETHER, wish)])


def _varied(plan: Plan, names: Sequence[str], wish: Wish) -> Iterator[Plan]:
    """Yield a plan with all combinations of the values of some choices that nobody fixed.

    Rounds have no threadblocks, so their plans lack some of the choices.
    """
    values = {f"{owner}.{choice.option}": choice.values for owner, choice in plan.choices()}
    known = [name for name in names if name in values]
    free = [name for name in known if name.partition(".")[2] not in wish.settings]
    rows = product(*(values[name] for name in free))
    yield from plan.with_each(dict(zip(free, row, strict=True)) for row in rows)
