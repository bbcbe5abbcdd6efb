"""Topological order with a choice among what is ready."""

from __future__ import annotations

import numpy as np

from colsynth.lowering.columns import Ints


def sort_after(waiters: Ints, others: Ints, place: Ints) -> Ints | None:
    """Return numbers 0..n-1, each after those it waits for; None where that is a circle.

    Of several that may come next, the one of least `place` does, then of least number.
    `networkx.lexicographical_topological_sort` gives the same; every lowering sorts, and it
    takes some 30 times as long (20,000 numbers of 40,000 pairs: 0.16 s against 0.005 s).

    Parameters
    ----------
    waiters, others : int64 (m,)
        Pairs: the first of each waits for the second. A pair may occur more than once.
    place : int64 (n,)

    Examples
    --------
    >>> sort_after(np.array([0]), np.array([2]), np.array([0, -1, -2]))
    array([2, 1, 0])
    """
    from colsynth.kernels.sorting import sort_ready

    size = len(place)
    order = np.argsort(others, kind="stable")
    first = np.searchsorted(others[order], np.arange(size + 1))
    found: tuple[Ints, int] = sort_ready(
        first, waiters[order], np.bincount(waiters, minlength=size), place
    )
    return found[0] if found[1] == size else None
