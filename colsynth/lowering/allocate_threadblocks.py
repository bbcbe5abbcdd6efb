"""Threadblock allocation: every chain of the global order gets its threadblocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from colsynth.lowering.allocation import Limits, PlacedThreadblock
from colsynth.lowering.balanced import balanced_threadblocks
from colsynth.lowering.chains import Chains, Operations
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import Op, Waits
from colsynth.lowering.lockstep import in_send_order
from colsynth.lowering.paired import paired_threadblocks, partners
from colsynth.lowering.paired_order import (
    in_rounds,
    places,
    receivers_first,
    sends_before_sums,
)
from colsynth.lowering.strategies import Quota, Strategy
from colsynth.model import ChunkProgram, Ordering
from colsynth.runtimes.target import Target

if TYPE_CHECKING:
    from colsynth.kernels.threadblocks import Rules, Threadblocks


class Allocator:
    """Allocates threadblocks to the chains of a program, for as many limits as are tried.

    In a program in lockstep, a relay may share a step with its arrival wherever it stands,
    elsewhere only right behind it. The steps of a threadblock are then sorted once more, so that
    it sends what it can before it receives. So are those that serve one connection in each
    direction, in a program whose sends wait for nothing.

    Parameters
    ----------
    program : ChunkProgram
        In its final order, with slots.
    columns : Columns
        Of its transfers.
    ops : tuple of Op
        Its operations, `colsynth.lowering.hazards.operations`.
    needed : tuple of tuple of int
        The waits of each operation, `colsynth.lowering.hazards.waits`.
    strategy : Strategy
        With a quota of ``PAIRS``, threadblocks work in rounds (`colsynth.lowering.paired_order`).
    target : Target
    """

    def __init__(
        self,
        program: ChunkProgram,
        columns: Columns,
        ops: tuple[Op, ...],
        needed: Waits,
        strategy: Strategy,
        target: Target,
    ) -> None:
        self.program = program
        self.columns = columns
        self.ops = ops
        self.needed = needed
        self._strategy = strategy
        self._target = target
        self._lockstep = program.ordering is Ordering.LOCKSTEP
        size = program.problem.topology.size
        plan = bool(target.profile.plans)
        self._operations = Operations(columns, ops, needed, size, plan)
        self._chains: dict[tuple[bool, bool], Chains] = {}
        self._refused: set[tuple[Limits, bool, bool, bool, bytes]] = set()

    def allocate(
        self,
        limits: Limits,
        *,
        fuse: bool = False,
        separate: bool = False,
        spare: int = 0,
        between: bool = False,
    ) -> list[PlacedThreadblock] | None:
        """Return the threadblocks of all ranks; None where the limits do not allow it.

        Parameters
        ----------
        limits : Limits
        fuse : bool
            Whether relays share a step with their arrival.
        separate : bool
            Whether phases have threadblocks of their own.
        spare : int
            Of a quota of ``PAIRS``: threadblocks that are left for local steps.
        between : bool
            Whether that pairs connections between boxes as well.
        """
        from colsynth.kernels.allocation import fill

        chains = self._chains_of(fuse, separate)
        rules = self._rules(limits, chains, spare, between)
        size = self.program.problem.topology.size
        question = limits, fuse, separate, between, rules.needs.tobytes()
        if question in self._refused:
            return None
        found, fits = fill(chains.work, rules, size, len(chains.pairs), len(chains.ways))
        if not fits:
            self._refused.add(question)
            return None
        result = _blocks(found, list(chains.pairs))
        if self._operations.chained.any():
            for block in result:
                block.steps.sort()
        if self._lockstep and not self._sort_steps(result):
            return None
        if limits.duplex and not self._lockstep and self._never_waits(result):
            for block in result:
                block.steps.sort(key=lambda step: not self.ops[step[0]].sends)
        if self._strategy.quota is Quota.PAIRS:
            self._sort_rounds(result)
        return result

    def _chains_of(self, fuse: bool, separate: bool) -> Chains:
        if (fuse, separate) not in self._chains:
            operations = self._operations
            alone = np.full(len(self.ops), -1)
            departure = operations.departures(self._lockstep) if fuse else alone
            self._chains[fuse, separate] = operations.chains(departure, separate)
        return self._chains[fuse, separate]

    def _rules(self, limits: Limits, chains: Chains, spare: int, between: bool) -> Rules:
        from colsynth.kernels.threadblocks import (
            ANYBODY,
            APART,
            BALANCED,
            FEWEST,
            NOBODY,
            PAIRED,
            Rules,
        )

        shares = APART if self._strategy.shares_local else NOBODY
        shares = ANYBODY if self._strategy.helps else shares
        mode, needs, partner = FEWEST, np.empty(0, np.int64), np.empty(0, np.int64)
        topology = self.program.problem.topology
        if self._strategy.quota is Quota.PAIRS:
            pairs, mode = partners(topology, between=between, used=chains.pairs), PAIRED
            blocks = limits.threadblocks - spare
            needs = chains.needs(paired_threadblocks(chains.chunks, pairs, blocks))
            back = [(pairs.get((source, target), -1), source) for source, target in chains.pairs]
            partner = np.array([chains.pairs.get(pair, -1) for pair in back], dtype=np.int64)
        elif self._strategy.quota is Quota.LOAD:
            load = chains.chunks, chains.transfers
            wanted = balanced_threadblocks(*load, limits.steps, topology, self._target)
            mode, needs = BALANCED, chains.needs(wanted)
        steps = limits.steps * self._operations.unit
        numbers = (
            *(limits.threadblocks, steps, limits.chunks, limits.channels),
            *(limits.per_channel, chains.stride, limits.duplex, shares),
        )
        return Rules(np.array(numbers, dtype=np.int64), mode, needs, partner)

    def _sort_rounds(self, blocks: list[PlacedThreadblock]) -> None:
        """Sort the steps of threadblocks that work in rounds."""
        order = places(self.program.transfers, self.ops, self.needed)
        short = self._is_short()
        second = frozenset() if short else receivers_first(blocks)
        for number, block in enumerate(blocks):
            if short and block.channel % 2:
                block.steps = sends_before_sums(block.steps, order, self.needed)
            else:
                block.steps = in_rounds(block.steps, order, number in second)

    def _is_short(self) -> bool:
        """Return whether a FIFO holds all calls of every step."""
        depth = self._target.profile.fifo_calls[self._target.protocol]
        return max(transfer.count for transfer in self.program.transfers) <= depth

    def _never_waits(self, blocks: list[PlacedThreadblock]) -> bool:
        """Return whether all sends of a tile can begin at once.

        None waits for another operation, and FIFOs hold all calls that a threadblock sends. In a
        direct exchange, threadblocks that receive before they send would otherwise wait for each
        other all around the machine.
        """
        if any(needed for op, needed in zip(self.ops, self.needed, strict=True) if op.sends):
            return False
        depth = self._target.profile.fifo_calls[self._target.protocol]
        transfers = self.program.transfers
        return all(
            sum(transfers[op.transfer].count for op in self._sends(block)) <= depth
            for block in blocks
        )

    def _sends(self, block: PlacedThreadblock) -> Iterator[Op]:
        return (self.ops[op] for step in block.steps for op in step if self.ops[op].sends)

    def _sort_steps(self, blocks: list[PlacedThreadblock]) -> bool:
        """Sort the steps of every threadblock; return whether that was possible."""
        known = [step for block in blocks for step in block.steps]
        lengths = [len(block.steps) for block in blocks]
        order = in_send_order(
            np.repeat(np.arange(len(blocks)), lengths),
            np.array([(step[0], step[-1]) for step in known], dtype=np.int64).reshape(-1, 2),
            self.columns,
            self._operations.waits,
        )
        if order is None:
            return False
        left = iter(order.tolist())
        for block, length in zip(blocks, lengths, strict=True):
            block.steps = [known[number] for number in islice(left, length)]
        return True


def _blocks(found: Threadblocks, pairs: list[tuple[int, int]]) -> list[PlacedThreadblock]:
    """Return threadblocks with the operations of their steps, in the order they were opened."""
    from colsynth.kernels.threadblocks import AT, CHANNEL, FROM, TO

    size, count = found.size.tolist()
    sorted_steps = found.steps[np.argsort(found.steps[:count, 0], kind="stable")]
    ends = np.searchsorted(sorted_steps[:, 0], np.arange(size + 1)).tolist()
    both = sorted_steps[:, 1:].tolist()
    steps: list[tuple[int, ...]] = [
        (first,) if second < 0 else (first, second) for first, second in both
    ]
    rows = found.table[:size, [AT, CHANNEL, FROM, TO]].tolist()
    return [
        PlacedThreadblock(
            rank,
            channel,
            None if into < 0 else pairs[into][0],
            None if out < 0 else pairs[out][1],
            steps[begin:end],
        )
        for (rank, channel, into, out), (begin, end) in zip(rows, pairwise(ends), strict=True)
    ]
