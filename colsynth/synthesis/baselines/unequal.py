"""Shares that differ by a chunk, where the ranks do not divide the message of an allreduce.

A runtime selects a file only for messages whose elements its chunks divide (contract 1.4), so an
allreduce of a power of two bytes on 24 GPUs has no 24 equal shards.
"""

from __future__ import annotations

from itertools import pairwise

from colsynth.model import Problem
from colsynth.runtimes.selection import divided_by_ranks
from colsynth.runtimes.target import Target


def loose_parts(problem: Problem, shards: int, target: Target) -> int:
    """Return into how many parts a message can be cut that equal shards do not divide.

    0 where they do, or have to be equal.
    """
    alike = problem.groups or divided_by_ranks(problem.collective)
    return 0 if alike or target.parts(problem, shards) else target.parts(problem, 1)


def spread(chunks: int, rows: int, columns: int) -> list[tuple[int, ...]]:
    """Return the chunks of each cell of a table, as evenly as can be: they differ by one."""
    cells = rows * columns
    ends = [number * chunks // cells for number in range(cells + 1)]
    each = [after - before for before, after in pairwise(ends)]
    return [tuple(each[begin : begin + columns]) for begin in range(0, cells, columns)]
