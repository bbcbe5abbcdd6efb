"""Steps and loads of Cayley digraphs of A x| Z_k, many candidates at a time.

A Cayley digraph looks the same from every node, so one source stands for all: with distances from
the identity, element x may come last by generator g if x g^-1 is one nearer. On the transpose, the
same is asked of first letters: g^-1 x. Loads are sums of the largest ratio over sets of generators,
as in ``kernels/shortest.py``, times a common multiple of 1 .. d, so that they are integers.

Element (a, i) has number a k + i. Exact in int64. O(tries (n d + steps 2^d d)). Twin:
`colsynth.cabling.figures` on the same graph, in tests/cabling/test_finder.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def _loads(level, mask, top, d, held, count):
    """Return (sum over steps of the largest ratio, ratio of all steps together), times scale."""
    size = 1 << d
    count[: top + 1] = 0
    for x in range(level.size):
        if level[x] > 0:
            count[level[x], mask[x]] += 1
            count[0, mask[x]] += 1
    total, whole = np.int64(0), np.int64(0)
    for t in range(top + 1):
        bit = 1
        while bit < size:
            for base in range(0, size, 2 * bit):
                for i in range(base, base + bit):
                    count[t, i + bit] += count[t, i]
            bit *= 2
        best = np.int64(0)
        for m in range(1, size):
            best = max(best, count[t, m] * held[m])
        if t == 0:
            whole = best
        else:
            total += best
    return total, whole


@njit(cache=True, nogil=True)
def evaluate(add, act, tries, scale, most_steps):
    """Return (steps, load, load of the transpose, congestion, sum of distances) of every try.

    Parameters
    ----------
    add : int32 (|A|, |A|)
        Sums in A.
    act : int32 (k, |A|)
        M^i a.
    tries : int64 (c, d)
        Generators, by number.
    scale : int
        A multiple of 1 .. d.
    most_steps : int
        Candidates with more steps, or that do not reach every element, have all zeros.
    """
    c, d = tries.shape
    k = act.shape[0]
    n = k * act.shape[1]
    found = np.zeros((c, 5), np.int64)
    level = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    last, ahead = np.empty(n, np.int64), np.empty(n, np.int64)
    count = np.zeros((most_steps + 1, 1 << d), np.int64)
    held = np.zeros(1 << d, np.int64)
    for m in range(1, 1 << d):
        bits = 0
        for j in range(d):
            bits += m >> j & 1
        held[m] = scale // bits
    for c_ in range(c):
        level[:] = -1
        last[:] = 0
        level[0] = 0
        queue[0] = 0
        filled, done, distances = 1, 0, 0
        while done < filled:
            x = queue[done]
            a, i = x // k, x % k
            done += 1
            if level[x] == most_steps:
                break
            for j in range(d):
                g = tries[c_, j]
                y = add[a, act[i, g // k]] * k + (i + g % k) % k
                if level[y] < 0:
                    level[y] = level[x] + 1
                    distances += level[y]
                    queue[filled] = y
                    filled += 1
                if level[y] == level[x] + 1:
                    last[y] |= 1 << j
        if filled < n:
            continue
        ahead[:] = 0
        for x in range(n):
            a, i = x // k, x % k
            for j in range(d):
                g = tries[c_, j]
                y = add[g // k, act[g % k, a]] * k + (i + g % k) % k
                if level[y] == level[x] + 1:
                    ahead[y] |= 1 << j
        top = level[queue[n - 1]]
        load, whole = _loads(level, last, top, d, held, count)
        turned, other = _loads(level, ahead, top, d, held, count)
        found[c_, 0], found[c_, 1], found[c_, 2] = top, load, turned
        found[c_, 3], found[c_, 4] = max(whole, other), distances
    return found
