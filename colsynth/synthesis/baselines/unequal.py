"""Shares that differ by a chunk, where the ranks do not divide the message of an allreduce.

A runtime selects a file only for messages whose elements its chunks divide (contract 1.4), so an
allreduce of a power of two bytes on 24 GPUs has no 24 equal shards.
"""

from __future__ import annotations

from itertools import pairwise


def spread(chunks: int, rows: int, columns: int) -> list[tuple[int, ...]]:
    """Return the chunks of each cell of a table, as evenly as can be: they differ by one."""
    cells = rows * columns
    ends = [number * chunks // cells for number in range(cells + 1)]
    each = [after - before for before, after in pairwise(ends)]
    return [tuple(each[begin : begin + columns]) for begin in range(0, cells, columns)]
