"""Clocks that say of every component up to which tick what it did has happened before.

They lie in a pool, with counts of how often each is referred to, so that messages share them. What
returns a clock gives a reference to its caller, who drops it or passes it on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

FREE = 0
"""Where `counts` has the number of free clocks."""


class Clocks(NamedTuple):
    """A pool of clocks.

    Parameters
    ----------
    data : int array (most, components)
    uses : int64 (most,)
        References to each.
    free : int64 (most,)
        A stack of those without.
    counts : int64 array
    """

    data: Any
    uses: Any
    free: Any
    counts: Any


@njit(cache=True, nogil=True, allocates=True)
def with_room(clocks, spare):
    """Return the same clocks with some free."""
    counts = clocks.counts
    if counts[FREE] >= spare:
        return clocks
    had = clocks.uses.size
    many = had + had // 2 + spare
    data = np.empty((many, clocks.data.shape[1]), clocks.data.dtype)
    data[:had] = clocks.data
    uses, free = np.zeros(many, np.int64), np.empty(many, np.int64)
    uses[:had] = clocks.uses
    free[: counts[FREE]] = clocks.free[: counts[FREE]]
    for number in range(many - 1, had - 1, -1):
        free[counts[FREE]] = number
        counts[FREE] += 1
    return Clocks(data, uses, free, counts)


@njit(cache=True, nogil=True)
def copied(clocks, number):
    """Return a new clock like another."""
    clocks.counts[FREE] -= 1
    new = clocks.free[clocks.counts[FREE]]
    clocks.uses[new] = 1
    to, source = clocks.data[new], clocks.data[number]
    for k in range(to.size):
        to[k] = source[k]
    return new


@njit(cache=True, nogil=True)
def dropped(clocks, number):
    """Let a clock go where nobody else refers to it."""
    clocks.uses[number] -= 1
    if clocks.uses[number] == 0:
        clocks.free[clocks.counts[FREE]] = number
        clocks.counts[FREE] += 1


@njit(cache=True, nogil=True)
def raise_to(clocks, number, other):
    """Let a clock know what another does."""
    mine, theirs = clocks.data[number], clocks.data[other]
    for k in range(mine.size):
        mine[k] = theirs[k] if theirs[k] > mine[k] else mine[k]
