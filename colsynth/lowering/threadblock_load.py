"""The fewest threadblocks that can share the work of a program: what need not be tried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colsynth.lowering.columns import Columns

Totals = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
"""(chunks, transfers) of each connection into a rank, and of each out of it, sorted."""


@dataclass(frozen=True, slots=True)
class RankLoads:
    """What the connections of each rank carry, and how few threadblocks suffice for it.

    Parameters
    ----------
    ranks : frozenset of Totals
        Of every rank; ranks with the same work stand for each other.
    """

    ranks: frozenset[Totals]

    @staticmethod
    def of(columns: Columns, separate: bool) -> RankLoads:
        """Return the work of transfers, with phases on connections of their own or not."""
        moves = ~columns.local
        source, target = columns.source[moves], columns.target[moves]
        phase = columns.phase[moves] if separate else 0
        size = 1 + int(max(source.max(initial=0), target.max(initial=0)))
        ways, way = np.unique((phase * size + source) * size + target, return_inverse=True)
        chunks = np.zeros(len(ways), dtype=np.int64)
        np.add.at(chunks, way, columns.count[moves])
        steps = np.bincount(way, minlength=len(ways))
        into, out = defaultdict(list), defaultdict(list)
        for key, *load in zip(ways.tolist(), chunks.tolist(), steps.tolist(), strict=True):
            out[key // size % size].append(tuple(load))
            into[key % size].append(tuple(load))
        ranks = into.keys() | out.keys()
        return RankLoads(frozenset((tuple(sorted(into[r])), tuple(sorted(out[r]))) for r in ranks))

    @property
    def busiest(self) -> int:
        """Most chunks that come into and leave any one rank."""
        return max((sum(c for side in both for c, _ in side) for both in self.ranks), default=1)

    def least(self, chunks: int, steps: int, *, fused: bool) -> int:
        """Return threadblocks below which the busiest rank cannot do its work.

        A threadblock takes no more than `chunks` and `steps` of one connection, and where it
        is `fused`, of one connection in each direction.
        """
        most = 0
        for both in self.ranks:
            blocks = [sum(max(-(-c // chunks), -(-s // steps)) for c, s in side) for side in both]
            most = max(most, max(blocks) if fused else sum(blocks))
        return most

    def loads(self, threadblocks: int) -> Iterator[int]:
        """Yield chunks per threadblock, from what the busiest rank could do upwards."""
        load = -(-self.busiest // (2 * threadblocks))
        while load < self.busiest:
            yield load
            load += -(-load // 4)
