"""Allreduce beyond reduce-scatter and allgather: roots with shares of their own.

`rooted` says what that can gain and proves it, `limits` what no allreduce can beat,
`pack_roots` makes the forest.
"""

from colsynth.model import Problem


def worth_trying(problem: Problem) -> bool:
    """Whether free roots beat reduce-scatter and allgather by more than trees may lose."""
    from colsynth.synthesis.allreduce.rooted import allreduce_bound
    from colsynth.synthesis.forest.rate import TOLERANCE

    return allreduce_bound(problem).gain > TOLERANCE
