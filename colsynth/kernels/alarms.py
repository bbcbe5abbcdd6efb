"""Events of threadblocks, one at most for each: a tree of the earliest, by (time, number).

Number b has its time at ``tree[tree.size // 2 + b]``, infinity for no event. The places 2 i and
2 i + 1 are below i, which holds the earlier of their times, so ``tree[1]`` is the earliest of all.
Each call takes O(log B), and an update ends where the earliest stays as it was: soon, as many
threadblocks do the same at the same time. Ties need no look at numbers: lower ones are left.

Kernels call these several times for each slice, so every step on the way counts: `min` would be
a call that could raise, for which numba counts references (a sixth of all time); unsigned places
need no look at their sign (a twentieth); equal times are equal as integers too, which compare
faster (a tenth).
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True, allocates=True)
def no_events(blocks):
    """Return the tree of so many threadblocks, float64, with no event."""
    width = 1
    while width < blocks:
        width *= 2
    return np.full(2 * width, np.inf)


@njit(cache=True, nogil=True)
def schedule(tree, b, time):
    """Give threadblock b its event, or move it; infinity takes it away. No time is below 0."""
    i = tree.size // 2 + b
    tree[i] = time
    while i > 1:
        i >>= 1
        left, right = tree[2 * i], tree[2 * i + 1]
        earliest = left if left < right else right
        if tree[i] == earliest:
            break
        tree[i] = earliest


@njit(cache=True, nogil=True)
def first_of(bits):
    """Return the threadblock of the first event; there is one. `bits` is the tree as int64."""
    half, earliest = np.uint64(bits.size // 2), bits[1]
    i = np.uint64(1)
    while i < half:
        i <<= np.uint64(1)
        if bits[i] != earliest:
            i += np.uint64(1)
    return np.int64(i - half)
