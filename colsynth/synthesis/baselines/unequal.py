"""Shares that differ by a chunk, where the ranks do not divide the message of an allreduce.

A runtime selects a file only for messages whose elements its chunks divide (contract 1.4), so an
allreduce of a power of two bytes on 24 GPUs has no 24 equal shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from colsynth.model import Slot


def spread(chunks: int, rows: int, columns: int) -> list[tuple[int, ...]]:
    """Return the chunks of each cell of a table, as evenly as can be: they differ by one."""
    cells = rows * columns
    ends = [number * chunks // cells for number in range(cells + 1)]
    each = [after - before for before, after in pairwise(ends)]
    return [tuple(each[begin : begin + columns]) for begin in range(0, cells, columns)]


@dataclass(frozen=True)
class Cells:
    """The parts of shards that travel by themselves, and where they lie.

    Parameters
    ----------
    counts : sequence of tuple of int
        By part (a channel or a segment), the chunks of each shard. Those of a shard lie side by
        side in the message.
    """

    counts: tuple[tuple[int, ...], ...]

    @cached_property
    def ranges(self) -> tuple[tuple[range, ...], ...]:
        """By part, the chunks of each shard in the message."""
        each = [count for shard in zip(*self.counts, strict=True) for count in shard]
        cells = [range(*ends) for ends in pairwise(accumulate(each, initial=0))]
        parts = len(self.counts)
        return tuple(tuple(cells[part::parts]) for part in range(parts))

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """Where each part begins in room for any shard, and at last the size of the room."""
        return tuple(accumulate(map(max, self.counts), initial=0))

    @property
    def room(self) -> int:
        """Chunks of scratch in which any shard fits."""
        return self.begins[-1]

    @property
    def chunks(self) -> int:
        """Chunks of all shards."""
        return sum(map(sum, self.counts))

    def slot(self, room: int, part: int) -> Slot:
        """Return where a part begins in a room of the scratch."""
        return Slot("s", room * self.room + self.begins[part])
