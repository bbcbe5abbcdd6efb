"""Where a collective finds its input and leaves its output (contract 2.4 and 4.8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from colsynth.lowering.columns import BUFFERS, INPUT, OUTPUT, Ints
from colsynth.model import Collective, Problem, Slot

_slot = cache(Slot)  # a lookup takes a third of the time
_APART = 1 << 32
"""Chunks between the starts of two buffers: more than any holds."""


@dataclass(frozen=True)
class Layout:
    """Buffers of one collective in chunks.

    Parameters
    ----------
    problem : Problem
    chunks : int
        Of a message, `ChunkProgram.chunks`.
    """

    problem: Problem
    chunks: int

    @cached_property
    def _roots(self) -> tuple[int, ...]:
        return self.problem.roots

    @cached_property
    def shard(self) -> int:
        """Chunks of a message that belong to one root; of an alltoall, go to one rank.

        0 where an allreduce has fewer chunks than ranks, which may be added up anywhere.
        """
        return self.chunks // len(self._roots)

    @cached_property
    def exchanges(self) -> bool:
        """Whether every rank has a message of its own, a shard for every other rank."""
        return self.problem.collective is Collective.ALLTOALL

    @cached_property
    def _gathers(self) -> bool:
        return self.problem.collective is Collective.ALLGATHER

    @cached_property
    def _scatters(self) -> bool:
        return self.problem.collective is Collective.REDUCE_SCATTER

    @property
    def grain(self) -> int:
        """Chunks from a multiple of it to the next that memory keeps side by side.

        A shard, whose input and output may be one memory. In place, an alltoall
        overwrites what a rank sends to another by what it gets from there, which may
        travel in other portions: there, every chunk stands for itself.
        """
        return 1 if self.exchanges else max(1, self.shard)

    def owner(self, chunk: int) -> int:
        """Return the rank that has a chunk at first, or where its sum is gathered."""
        return self._roots[chunk // (self.chunks if self.exchanges else self.shard)]

    def keeps(self, rank: int, chunk: int) -> bool:
        """Whether a copied chunk is part of the rank's result, not only passing through."""
        return not self.exchanges or rank == chunk // self.shard % len(self._roots)

    def own_result(self, index: int) -> range:
        """Return the chunks that stay at a root, part of its input and of its result."""
        first = index * (self.chunks + self.shard if self.exchanges else self.shard)
        return range(first, first + self.shard)

    def reverse(self, chunk: int) -> int:
        """Return the chunk of an alltoall that goes the other way between the same ranks."""
        pair, place = divmod(chunk, self.shard)
        source, target = divmod(pair, len(self._roots))
        return (target * len(self._roots) + source) * self.shard + place

    @property
    def input_chunks(self) -> int:
        """Chunks of every rank's input buffer."""
        return self.shard if self._gathers else self.chunks

    @property
    def output_chunks(self) -> int:
        """Chunks of every rank's output buffer."""
        return self.shard if self._scatters else self.chunks

    @property
    def keeps_input(self) -> bool:
        """Whether input never changes: where output shares memory with it, they hold the same."""
        return self.problem.collective in (Collective.ALLGATHER, Collective.BROADCAST)

    def input(self, rank: int, chunk: int) -> Slot:
        """Return where `rank` finds its own contribution to a chunk."""
        if self.exchanges:
            return _slot("i", chunk % self.chunks)
        return _slot("i", chunk - rank * self.shard if self._gathers else chunk)

    def output(self, rank: int, chunk: int) -> Slot:
        """Return where `rank` leaves a chunk of the result."""
        if self.exchanges:
            return _slot("o", self.owner(chunk) * self.shard + chunk % self.shard)
        return _slot("o", chunk - rank * self.shard if self._scatters else chunk)

    def sums_in_output(self, rank: int, chunk: int) -> bool:
        """Whether partial sums of a chunk may be kept in the rank's output buffer."""
        if self.problem.collective is Collective.ALLREDUCE:
            return True
        return rank == self.owner(chunk)

    @cached_property
    def _overlap(self) -> tuple[int, int, int]:
        """In place, the buffer that lies in another, that one, and chunks in by rank."""
        if self._scatters:
            return OUTPUT, INPUT, self.shard
        return INPUT, OUTPUT, self.shard if self._gathers else 0

    def in_place_aliases(self, rank: Ints, buffer: Ints, offset: Ints) -> tuple[Ints, Ints]:
        """Return buffer and offset of slots; in place, equal ones are one place in memory.

        An allgather's input lies at the rank's shard of the output, a reduce-scatter's output at
        its shard of the input, and other buffers are the same.

        Parameters
        ----------
        rank, buffer, offset : int arrays
            Buffers numbered as in `colsynth.lowering.columns.BUFFERS`.
        """
        inner, outer, shift = self._overlap
        lies = buffer == inner
        return np.where(lies, outer, buffer), np.where(lies, offset + rank * shift, offset)

    def memory(self, rank: int, in_place: bool) -> dict[str, int]:
        """Return where each buffer of a rank begins in a memory that all ranks share.

        Buffers that may be one, or lie in each other, meet there; scratch may have any size.
        """
        start = {name: (rank * len(BUFFERS) + k) * _APART for k, name in enumerate(BUFFERS)}
        if in_place:
            inner, outer, shift = self._overlap
            start[BUFFERS[inner]] = start[BUFFERS[outer]] + rank * shift
        return start
