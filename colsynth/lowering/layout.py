"""Where a collective finds its input and leaves its output (contract 2.4 and 4.8)."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.model import Collective, Problem, Slot


@dataclass(frozen=True, slots=True)
class Layout:
    """Buffers of one collective in chunks.

    Parameters
    ----------
    problem : Problem
    chunks : int
        Of the whole collective.
    """

    problem: Problem
    chunks: int

    @property
    def shard(self) -> int:
        """Chunks that one root owns."""
        return self.chunks // len(self.problem.roots)

    def owner(self, chunk: int) -> int:
        """Return the rank at which the trees of a chunk are rooted."""
        return self.problem.roots[chunk // self.shard]

    @property
    def input_chunks(self) -> int:
        """Chunks of every rank's input buffer."""
        gathers = self.problem.collective is Collective.ALLGATHER
        return self.shard if gathers else self.chunks

    @property
    def output_chunks(self) -> int:
        """Chunks of every rank's output buffer."""
        scatters = self.problem.collective is Collective.REDUCE_SCATTER
        return self.shard if scatters else self.chunks

    def input(self, rank: int, chunk: int) -> Slot:
        """Return where `rank` finds its own contribution to a chunk."""
        gathers = self.problem.collective is Collective.ALLGATHER
        return Slot("i", chunk - rank * self.shard if gathers else chunk)

    def output(self, rank: int, chunk: int) -> Slot:
        """Return where `rank` leaves a chunk of the result."""
        scatters = self.problem.collective is Collective.REDUCE_SCATTER
        return Slot("o", chunk - rank * self.shard if scatters else chunk)

    def sums_in_output(self, rank: int, chunk: int) -> bool:
        """Whether partial sums of a chunk may be kept in the rank's output buffer."""
        if self.problem.collective is Collective.ALLREDUCE:
            return True
        return rank == self.owner(chunk)

    def in_place_alias(self, rank: int, slot: Slot) -> Slot:
        """Return the slot itself, or for input the output slot it shares memory with.

        Slots are returned as ``o`` where both buffers meet; an allgather's input lies at
        the rank's shard of the output, a reduce-scatter's output at its shard of the input.
        """
        collective = self.problem.collective
        if slot.buffer == "i" and collective is Collective.REDUCE_SCATTER:
            inside = slot.offset - rank * self.shard
            return Slot("o", inside) if 0 <= inside < self.shard else slot
        if slot.buffer == "i" and collective is Collective.ALLGATHER:
            return Slot("o", rank * self.shard + slot.offset)
        return Slot("o", slot.offset) if slot.buffer == "i" else slot
