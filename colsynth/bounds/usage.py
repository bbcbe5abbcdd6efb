"""How long links are used by bytes that are worth less in the beginning, or at the end."""

from __future__ import annotations

from itertools import pairwise

Levels = tuple[tuple[float, float], ...]
"""From when on (seconds), in order, and what a byte is worth from then on (rising, 1 at last)."""

ALWAYS: Levels = ((0.0, 1.0),)


def least_use(once: float, first: Levels, last: Levels = ALWAYS) -> float:
    """Return how long links have to be used, in seconds.

    A byte that leaves `t` seconds after the first, and `s` seconds before the links are done, is
    worth `first` at `t` times `last` at `s`. Both are sums of jumps, so bytes that pass in a time
    `T` are worth, over all pairs of jumps at `t` and `s`, the product of these times `T - t - s`.

    Parameters
    ----------
    once : float
        Seconds that would do if every byte were worth 1.
    first, last : Levels
    """
    jumps = sorted(
        (begin + end, more * further)
        for begin, more in _jumps(first)
        for end, further in _jumps(last)
    )
    worth = slope = 0.0
    for (time, jump), (until, _) in pairwise([*jumps, (float("inf"), 0.0)]):
        slope += jump
        if worth + slope * (until - time) >= once:
            return time + (once - worth) / slope
        worth += slope * (until - time)
    return float("inf")


def _jumps(levels: Levels) -> list[tuple[float, float]]:
    """Return when, and by how much, a byte becomes worth more."""
    before = [0.0, *(worth for _, worth in levels)]
    return [(time, worth - less) for (time, worth), less in zip(levels, before, strict=False)]
