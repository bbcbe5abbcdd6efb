"""Chunks that every transfer moves together, counted once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from colsynth.model import Slot, Transfer


class Segments:
    """The coarsest cut of all chunks such that each transfer moves whole segments.

    A place in memory only ever holds one chunk, so two steps touch the same memory
    exactly when they touch it for the same segment: its first chunk stands for all.

    Parameters
    ----------
    transfers : iterable of Transfer
    shard : int
        Segments also end where shards do: there, input and output alias differently.
    """

    def __init__(self, transfers: Iterable[Transfer], shard: int) -> None:
        firsts: set[int] = set()
        for transfer in transfers:
            end = transfer.chunk + transfer.count
            firsts.update((transfer.chunk, end))
            firsts.update(range(-(-transfer.chunk // shard) * shard, end, shard))
        self._firsts = sorted(firsts)

    def slots(self, transfer: Transfer, slot: Slot | None) -> list[Slot]:
        """Return one slot per segment of a transfer, where its first chunk is at `slot`."""
        if slot is None:
            return []
        begin = bisect_left(self._firsts, transfer.chunk)
        end = bisect_left(self._firsts, transfer.chunk + transfer.count, begin)
        shift = slot.offset - transfer.chunk
        return [Slot(slot.buffer, first + shift) for first in self._firsts[begin:end]]
