"""Roots that carry a chunk less than others, so that chunks divide a message that ranks do not.

A runtime selects a file only for messages whose elements its chunks divide (contract 1.4). An
allreduce of a power of two bytes on 24 GPUs has no 24 equal shards. With 43 chunks for 16 of the
roots and 42 for 8, there are 1024, and the busiest root carries 1 % more than its share.
"""

from __future__ import annotations

from fractions import Fraction

from colsynth.model import Forest
from colsynth.runtimes.selection import trimmed
from colsynth.runtimes.target import Target

_ENOUGH = Fraction(98, 100)
"""The share of the chunks of equal roots that is enough, as `round-weights` has it."""

_FEW = Fraction(94, 100)
"""The same where each chunk takes a step: fewer chunks make small messages faster.

An allreduce of 1 GiB by msccl on three DGX A100 reaches 123 GB/s with 11 chunks of each root (a
share of 0.97), 128 with 43 (0.99); 1 MiB takes 159 and 454 us.
"""


def carriers(forest: Forest) -> list[int]:
    """Return the roots that have trees: where roots are free, some have none."""
    each = zip(forest.problem.roots, forest.weights, strict=True)
    return [root for root, weight in each if weight]


def left_out(forest: Forest, target: Target, instances: int, chunks: int) -> int:
    """Return how many roots carry a chunk less in each instance; 0 where that is of no use.

    Parameters
    ----------
    forest : Forest
    target : Target
    instances, chunks : int
        Copies of the program, and chunks of each, while roots are equal.
    """
    parts = target.loose_parts(forest.problem, forest.chunks, instances)
    whole = trimmed(parts, chunks, len(carriers(forest)))
    return chunks - whole if whole else 0


def chunks_of_weight(forest: Forest, target: Target, instances: int, *, alone: bool) -> int:
    """Return the fewest chunks per unit of weight with which roots hardly differ, 1 if they do not.

    Parameters
    ----------
    forest : Forest
    target : Target
    instances : int
    alone : bool
        Whether each chunk travels by itself.
    """
    parts = target.loose_parts(forest.problem, forest.chunks, instances)
    best = Fraction(0), 1
    for number in range(1, target.profile.max_count + 1 if parts else 1):
        whole = trimmed(parts, forest.chunks * number, len(carriers(forest)))
        share = Fraction(whole, forest.chunks * number)
        if share > best[0]:
            best = share, number
        if share >= (_FEW if alone else _ENOUGH):
            break
    return best[1]
