"""Pass build-halving-doubling: Problem -> ChunkProgram of recursive halving and doubling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.refusals import require_collective, require_ways, unfit
from colsynth.synthesis.baselines.replicated import Replicated
from colsynth.synthesis.baselines.script import Script

SERVED = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER)


@dataclass(frozen=True, slots=True)
class BuildHalvingDoubling(Replicated):
    """Exchange halves with partners at distances of powers of two: log2 N rounds a phase.

    To add up, partners exchange the half that is the other's and keep half of what they
    had; to copy, they exchange all they have and hold twice as much (R. Thakur,
    R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in
    MPICH", 2005). An allreduce exchanges most with the nearest: it begins and ends with
    partners next to each other. Of a reduce-scatter and an allgather the shards say which
    rounds move adjacent chunks: the first with the farthest, the second with the nearest.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of every shard.
    """

    name: ClassVar[str] = "build-halving-doubling"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return the exchanges of all rounds, chunk by chunk.

        Raises
        ------
        InputError
            CS311: the collective is not served. CS312: the number of GPUs is no power of
            two, or partners have no way to each other.
        """
        require_collective("halving-doubling", value, SERVED)
        size = value.topology.size
        if size & (size - 1):
            note = "every round pairs all GPUs, at distances 1, 2, 4, ..."
            reason = f"{size} GPUs are no power of two"
            raise unfit("halving-doubling", value.topology, reason, note)
        distances = [1 << k for k in range(size.bit_length() - 1)]
        pairs = [(rank, rank ^ apart) for apart in distances for rank in range(size)]
        require_ways("halving-doubling", value.topology, pairs)
        script = Script(value, size, self.instances)
        arrived: dict[tuple[int, int], list[int]] = {}
        for phase, direction in enumerate(PHASES[value.collective]):
            for exchange in _exchanges(size, value.collective, direction):
                _send(script, exchange, Origin(phase, direction, 0), arrived)
        return script.program(Ordering.FIXED)


Exchange = list[tuple[int, int, int]]
"""(source, sink, chunk) of one round."""


def _exchanges(size: int, collective: Collective, direction: Direction) -> Iterator[Exchange]:
    """Yield the rounds of one phase.

    A chunk is at home where the bits of its number are those of the rank, or, in an allreduce,
    in which any rank may add up any chunk, where they are so in reverse: either way, what
    partners exchange lies side by side.
    """
    bits = size.bit_length() - 1
    summed = collective is Collective.ALLREDUCE
    home = [_reversed(rank, bits) if summed else rank for rank in range(size)]
    inwards = direction is Direction.IN
    rising = inwards == summed
    order = range(bits) if rising else range(bits - 1, -1, -1)
    done: list[int] = []
    for bit in order:
        done.append(bit)
        left = [b for b in order if b not in done]
        free = left if inwards else done[:-1]
        yield [
            (rank, rank ^ 1 << bit, chunk)
            for rank in range(size)
            for chunk in sorted(
                home[member] for member in _within(rank ^ 1 << bit if inwards else rank, free)
            )
        ]


def _within(rank: int, bits: list[int]) -> list[int]:
    """Return the ranks that differ from one in some of the given bits at most."""
    found = [rank]
    for bit in bits:
        found += [other ^ 1 << bit for other in found]
    return found


def _reversed(rank: int, bits: int) -> int:
    return sum(1 << (bits - 1 - bit) for bit in range(bits) if rank >> bit & 1)


def _send(
    script: Script, exchange: Exchange, origin: Origin, arrived: dict[tuple[int, int], list[int]]
) -> None:
    """Send the chunks of one round: what a rank sends waits for all that reached it of that."""
    after: dict[int, set[int]] = {}
    for source, _, chunk in exchange:
        after.setdefault(source, set()).update(arrived.get((source, chunk), ()))
    numbers = [
        script.send(source, sink, chunk, after[source], origin=origin._replace(tree=chunk))
        for source, sink, chunk in exchange
    ]
    for number, (_, sink, chunk) in zip(numbers, exchange, strict=True):
        arrived.setdefault((sink, chunk), []).append(number)
