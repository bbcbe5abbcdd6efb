"""Whole numbers of trees: the linear program over roots, asked for integers.

With y bytes/s for a tree, a link of bandwidth b holds floor(b / y) of them. So what fits
changes only where 1 / y lets some link hold one tree more.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from colsynth.bounds.allreduce.program import Floats, RootProgram, Solution

_MOST_WHOLE_ROUNDS = 12
"""Rounds of cuts in the search for whole numbers, after those for fractions."""
_MOST_ANYWHERE = 150
"""Links up to which whole numbers are also sought far from the fractions."""


def next_scale(bandwidths: Iterable[Fraction], scale: Fraction) -> Fraction:
    """Return the least 1 / y beyond `scale` at which some link holds one tree more."""
    return min(Fraction(int(rate * scale) + 1) / rate for rate in bandwidths)


def whole_solution(
    fractions: RootProgram, numbers: RootProgram, capacity: Floats, count: int, depth: Floats
) -> Solution | None:
    """Return whole numbers of `count` trees; None where none were found.

    Fractions are quick to find, and few of them are no whole numbers: those are rounded
    first, up or down; only on small topologies is everything tried.

    Parameters
    ----------
    fractions, numbers : RootProgram
        For the same halves; the second one is `whole`.
    capacity, count, depth
        As `RootProgram.demand` takes them.
    """
    fractions.demand(capacity, count, depth)
    loose = fractions.solve()
    if loose is None or not loose.settled:
        return None
    numbers.adopt(loose)
    numbers.demand(capacity, count, depth)
    numbers.stay_near(loose)
    found = numbers.solve(_MOST_WHOLE_ROUNDS)
    if (found is None or not found.settled) and len(capacity) <= _MOST_ANYWHERE:
        numbers.stay_near(None)
        found = numbers.solve(_MOST_WHOLE_ROUNDS)
    return found if found is not None and found.settled else None
