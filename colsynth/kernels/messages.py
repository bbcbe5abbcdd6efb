"""Messages that are passed on from threadblock to threadblock: where each of them comes from.

Step s takes the message of step ``match[s]``, -1 for none, and step s sends where ``sends[s]``.
Steps are int64. O(steps), but for circles of messages, which no program that ends has.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def origins(steps, match, sends):
    """Return the first step of each message, -1 for none, and the hops from it, per step."""
    origin = np.full(match.size, -1, np.int64)
    hops = np.zeros(match.size, np.int64)
    path = np.empty(match.size, np.int64)
    for step in steps:
        at, length = step, 0
        while match[at] >= 0 and origin[at] < 0 and length < match.size:
            path[length] = at
            length += 1
            at = match[at]
        if origin[at] < 0 and sends[at]:
            origin[at] = at
        for place in range(length - 1, -1, -1):
            passed = path[place]
            origin[passed], hops[passed] = origin[at], hops[at] + 1
            at = passed
    return origin, hops
