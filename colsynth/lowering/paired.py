"""Threadblocks that serve a connection in each direction and share the work evenly.

Where reductions are steps of their own (RCCL), a threadblock that receives has twice the work of
one that sends. A threadblock that does both, and reduces, has as much as any other. Within a box
it sends as far round the box as its data comes from. All GPUs then do the same at a time, and
sums pass from threadblock to threadblock at the same beat. Data that leaves a box shares a NIC,
and a send that waits for it would delay the other work of its threadblock, so such sends have
threadblocks of their own where these suffice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from fractions import Fraction
from math import ceil

from colsynth.cost.routes import routes
from colsynth.lowering.balanced import Connection
from colsynth.model import Topology

Partners = Mapping[tuple[int, int], int]
"""By rank and the peer it sends to: the peer that the same threadblock receives from."""


def partners(
    topology: Topology, *, between: bool = False, used: Collection[tuple[int, int]] = ()
) -> Partners:
    """Return for all pairs of ranks in a box who is as far away in the other direction.

    With `between`, also for those in the same place of their boxes, if boxes are of equal size. If
    they are not, GPUs of two boxes that both send to each other, as `used` says, are partners.
    """
    box = topology.gpu_boxes
    members: defaultdict[int, list[int]] = defaultdict(list)
    for rank, number in enumerate(box):
        members[number].append(rank)
    groups = list(members.values())
    equal = len({len(ranks) for ranks in groups}) == 1
    if between and equal:
        groups += map(list, zip(*groups, strict=True))
    found = {
        (rank, ranks[(place + away) % len(ranks)]): ranks[(place - away) % len(ranks)]
        for ranks in groups
        for place, rank in enumerate(ranks)
        for away in range(1, len(ranks))
    }
    if between and not equal:
        both = ((a, b) for a, b in used if box[a] != box[b] and (b, a) in used)
        found |= {pair: pair[1] for pair in both}
    return found


def is_round(topology: Topology) -> bool:
    """Whether each GPU reaches as many places round its box in one direction as in the other.

    Then every connection within a box has its partner, as on switches. On other fabrics most
    connections are left alone, and pairs have too few threadblocks.
    """
    joined = {(source, target) for source, target, _ in routes(topology)}
    pairs = partners(topology)
    return all((back, rank) in joined for (rank, to), back in pairs.items() if (rank, to) in joined)


def paired_threadblocks(
    loads: Mapping[Connection, int], pairs: Partners, threadblocks: int
) -> dict[Connection, int]:
    """Return how many threadblocks each connection needs so that the most loaded does least.

    Parameters
    ----------
    loads : mapping
        Chunks of each connection.
    pairs : mapping
        `partners`.
    threadblocks : int
        Of a GPU, for all its connections.
    """

    def shared(most: Fraction) -> dict[Connection, int]:
        return {connection: ceil(load / most) for connection, load in sorted(loads.items())}

    shares = range(1, threadblocks + 1)
    candidates = sorted({Fraction(n, k) for n in set(loads.values()) for k in shares})
    fits = bisect_left(
        candidates, True, key=lambda most: _busiest(shared(most), pairs) <= threadblocks
    )
    return shared(candidates[min(fits, len(candidates) - 1)])


def _busiest(needs: Mapping[Connection, int], pairs: Partners) -> int:
    """Return the most threadblocks of any GPU."""
    count: Counter[int] = Counter()
    for (first, source, target), number in needs.items():
        if (source, target) not in pairs:
            count[source] += number
            count[target] += number
            continue
        before = first, pairs[source, target], source
        count[source] += max(number, needs.get(before, 0))
        if (first, target, pairs[target, source]) not in needs:
            count[target] += number
    return max(count.values())
