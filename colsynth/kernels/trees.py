"""Trees given as hops in order of growth: whose child each hop is, what is below it.

Linear in the number of hops.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit


@njit(cache=True, nogil=True)
def link_tasks(first, hop, source, target, duration, load, gpus):
    """Return (parent, tail, lead, crux) of every tree edge.

    Parameters
    ----------
    first, hop : int64 (C + 1,), int32 (T,)
        Hops of each chunk's tree, each after the one that reaches its source.
    source, target, duration, load : int32 (H,), int32 (H,), int64 (H,), int64 (H,)
        The load of a hop is what its links have to carry, in ticks.
    gpus : int

    Returns
    -------
    parent : int64 (T,)
        The edge that brings the chunk to an edge's source, -1 where it is there at first.
    tail : int64 (T,)
        Ticks from the start of the edge until the last GPU below it is reached.
    lead, crux : int64 (T,), int32 (T,)
        The hop, this edge's or one below it, that would be done last if it carried its
        whole load from the moment it is reached, and how long after the start that is.
    """
    parent = np.full(hop.size, -1, np.int64)
    tail = np.empty(hop.size, np.int64)
    lead = np.zeros(hop.size, np.int64)
    crux = hop.copy()
    reached = np.full(gpus, -1, np.int64)
    for c in range(first.size - 1):
        for e in range(first[c], first[c + 1]):
            parent[e] = reached[source[hop[e]]]
            reached[target[hop[e]]] = e
            tail[e] = duration[hop[e]]
        for e in range(first[c + 1] - 1, first[c] - 1, -1):
            reached[target[hop[e]]] = -1
            p = parent[e]
            if p >= 0:
                moved = duration[hop[p]]
                tail[p] = max(tail[p], moved + tail[e])
                if moved + lead[e] + load[crux[e]] > lead[p] + load[crux[p]]:
                    lead[p], crux[p] = moved + lead[e], crux[e]
    return parent, tail, lead, crux
