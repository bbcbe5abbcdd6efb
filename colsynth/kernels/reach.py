"""Who can be reached at all: breadth-first search along hops. Linear per search."""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True, allocates=True)
def reach(out_first, out, target, starts):
    """Return whether each GPU can be reached from one of `starts`, bool (N,).

    Parameters
    ----------
    out_first, out : int64 (N + 1,), int64 (H,)
        Hops that leave each GPU.
    target : int32 (H,)
    starts : int32
    """
    seen = np.zeros(out_first.size - 1, np.bool_)
    stack = np.empty(seen.size, np.int64)
    top = 0
    for v in starts:
        if not seen[v]:
            seen[v] = True
            stack[top] = v
            top += 1
    while top > 0:
        top -= 1
        v = stack[top]
        for i in range(out_first[v], out_first[v + 1]):
            w = target[out[i]]
            if not seen[w]:
                seen[w] = True
                stack[top] = w
                top += 1
    return seen


@njit(cache=True, nogil=True)
def first_unreached(out_first, out, target, holder_first, holder, wanted_first, wanted):
    """Return (chunk, GPU) of the first GPU that a wanted chunk cannot reach, else (-1, -1)."""
    seen = np.zeros(out_first.size - 1, np.bool_)
    known = -1
    for c in range(holder_first.size - 1):
        holders = holder[holder_first[c] : holder_first[c + 1]]
        if holders.size != 1 or holders[0] != known:
            seen = reach(out_first, out, target, holders)
            known = holders[0] if holders.size == 1 else -1
        for i in range(wanted_first[c], wanted_first[c + 1]):
            if not seen[wanted[i]]:
                return c, wanted[i]
    return -1, -1
