"""How many replicas of a forest with few, wide trees fill the links."""

from __future__ import annotations

from collections import Counter
from math import ceil

from colsynth.model import Forest
from colsynth.runtimes.target import Target


def replicas(forest: Forest, target: Target) -> int:
    """Return the number of replicas of a forest, each with a part of every chunk.

    One threadblock moves less than a wide tree's share of a link, so several replicas fill it.
    A power of two, since its chunks divide more messages, within the limit at which every
    connection still has a resident threadblock of its own.
    """
    from colsynth.cost import model_of

    profile = target.profile
    passes = 1 if profile.fuses else 2  # it receives, then adds or sends
    pace = model_of(target).rate[target.protocol] * 10**9 / passes
    widest = max(
        float(phase.unit_bandwidth * max(tree.weight for tree in phase.trees))
        for phase in forest.phases
    )
    wanted = ceil(widest / pace)
    most = profile.usable_threadblocks // _threadblocks(forest)
    found = 1
    while found < wanted and 2 * found <= most:
        found *= 2
    return found


def _threadblocks(forest: Forest) -> int:
    """Return about how many threadblocks the busiest GPU needs for one replica.

    One for every child in every tree, which also takes what comes from the parent.
    """
    busy: Counter[int] = Counter()
    for phase in forest.phases:
        for tree in phase.trees:
            parents = {edge.parent for edge in tree.edges}
            busy.update(edge.parent for edge in tree.edges)
            busy.update(edge.child for edge in tree.edges if edge.child not in parents)
    return max(busy.values())
