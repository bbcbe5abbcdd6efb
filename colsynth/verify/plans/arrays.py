"""The arrays in which a kernel executes a plan, with room for all that can happen."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from colsynth.runtimes.rules import CAP
from colsynth.verify.contents import words_for
from colsynth.verify.contract import contributions
from colsynth.verify.plans.resolved import PACKET, PACKETS

if TYPE_CHECKING:
    from colsynth.kernels.cells import Memory
    from colsynth.kernels.clocks import Clocks
    from colsynth.kernels.plans import Program, State
    from colsynth.verify.plans.counters import Counters
    from colsynth.verify.plans.cut import Cut

_MOST_ACQUIRES = 1 << 16
"""More than any semaphore is acquired: operations, iterations and launches are few (P03, P16)."""


class Arrays:
    """Makes the arrays of one execution; the parameters are those of `machine.execute`.

    Every threadblock has a component of the clocks, or two where there are packets (`stamps`). Port
    channels follow them (`first_lane`), then the callers of all ranks (`first_host`).
    """

    def __init__(self, cut: Cut, counters: Counters, launches: int, *, flushes: bool) -> None:
        from colsynth.kernels.plans import COUNTS

        self.cut, self.counters, self.launches, self.flushes = cut, counters, launches, flushes
        self.header, program = cut.program.header, cut.program
        self.parts = list(program.operations())
        self.kinds = np.array([part.action.kind for part in self.parts])
        self.stamps = 2 if (self.kinds == PACKET).any() else 1
        self.first_lane = self.stamps * len(program.blocks)
        self.first_host = self.first_lane + program.lanes
        self.period = self.header.ranks * self.header.chunks * cut.cells
        self.counts = np.zeros(COUNTS, np.int64)

    def program(self) -> Program:
        """Return what is executed."""
        from colsynth.kernels.plans import (
            KIND,
            MEETS,
            MOVES,
            OPERATION,
            RETURNS,
            THREADS,
            WITH,
            Program,
        )

        cut, parts, counters = self.cut, self.parts, self.counters
        program, launches = cut.program, self.launches
        ops = np.zeros((len(parts) + 1, OPERATION), np.int64)
        ops[:-1, KIND], ops[:, THREADS] = self.kinds, counters.begins
        ops[:, MOVES] = [0, *accumulate(len(part.action.moves) for part in parts)]
        ops[:-1, MEETS] = [part.action.op.barrier_id or 0 for part in parts]
        ops[:-1, WITH] = [part.action.op.num_threadblocks or 0 for part in parts]
        ops[:-1, RETURNS] = [self.flushes and part.action.op.name == "pwsf" for part in parts]
        ranks = np.array([rank for rank, _ in program.blocks])
        header, cells = self.header, cut.cells
        base, size = cut.memory.base * cells, cut.memory.size
        firsts = [contributions(header, r, int(size[r, 0])).start for r in range(header.ranks)]
        call = [base[:, 0], size[:, 0] * cells, base[:, 1], size[:, 1] * cells]
        return Program(
            cut.first,
            cut.items,
            ops,
            np.stack([counters.queue, counters.lane], axis=1),
            program.moves,
            cut.length,
            cut.start,
            cut.wrap,
            cut.apart,
            np.array([launches, self.stamps, self.first_lane, self.first_host]),
            np.searchsorted(ranks, np.arange(header.ranks + 1)),
            np.stack([*call, np.array(firsts) * cells], axis=1),
            self.period,
        )

    def state(self) -> State:
        """Return the state before the first launch."""
        from colsynth.kernels.plans import BARRIERS, BLOCK, RANK, State

        cut, counters, program = self.cut, self.counters, self.cut.program
        count, ranks = len(program.blocks), self.header.ranks
        start = np.array([min(many, _MOST_ACQUIRES) for many in program.start], np.int64)
        turns = np.repeat(cut.turns, np.diff(counters.begins))[counters.gives]
        given = np.bincount(counters.queue[counters.gives], turns, len(start)).astype(np.int64)
        room = np.concatenate([np.zeros(1, np.int64), np.cumsum(start + self.launches * given)])
        block = np.zeros((count, BLOCK), np.int64)
        block[:, RANK] = [rank for rank, _ in program.blocks]
        threads = int(np.diff(counters.begins).max(initial=0))
        meeting = np.full((ranks * BARRIERS, 3), -1, np.int64)
        meeting[:, 2] = 0
        packets = bool(program.operands[:, PACKETS].any())
        waiting = len(start) + self._places() * packets
        return State(
            block,
            np.full((count, threads + 1), -1, np.int64),
            np.zeros(count, np.int64),
            np.full((waiting, 2), -1, np.int64),
            room,
            np.stack([np.zeros_like(start), start], axis=1),
            np.zeros(room[-1], np.int64),
            meeting,
            np.zeros(self.first_host + ranks, np.int64),
            np.zeros(ranks, np.int64),
            self.counts,
        )

    def _places(self) -> int:
        """Return a number of cells that no operand leaves, whatever it says."""
        cut = self.cut
        if not cut.start.size:
            return cut.locations
        size = max(cut.length.max(), cut.items[:, 2].max())
        return max(cut.locations, int(cut.start.max() + 2 * (cut.items[:, 1].max() + size) + 2))

    def memory(self) -> Memory:
        """Return cells that nobody wrote."""
        from colsynth.kernels.cells import (
            CELL,
            CHUNK,
            CURRENT,
            FLAG,
            READS,
            TOLD,
            UNDEFINED,
            WRITER,
            Memory,
        )

        words, places = words_for(self.header.ranks), self._places()
        cell = np.zeros((places, CELL), np.int64)
        cell[:, [WRITER, READS, FLAG, TOLD]], cell[:, CHUNK] = -1, UNDEFINED
        self.counts[CURRENT] = -1
        return Memory(
            cell,
            np.zeros((places, words), np.uint64),
            np.zeros(words, np.uint64),
            np.zeros((self._reads() + 1, 3), np.int64),
            np.zeros((CAP, 4), np.int64),
            self.counts,
        )

    def _reads(self) -> int:
        """Return how often cells are read in all launches."""
        cut, moves = self.cut, self.cut.program.moves
        each = 2 * moves[:-1, 2] - moves[:-1, 0] - moves[:-1, 1]
        owner = np.repeat(
            np.arange(len(self.parts)), [len(part.action.moves) for part in self.parts]
        )
        several = np.bincount(owner, each, len(self.parts))
        length = cut.length[moves[:-1, 0]] if len(each) else each
        whole = np.bincount(owner, each * length, len(self.parts))
        number, size = cut.items[:, 0], cut.items[:, 2]
        return self.launches * int(np.where(size < 0, whole[number], several[number] * size).sum())

    def clocks(self, used: int) -> Clocks:
        """Return clocks of which the first knows nothing and is referred to so often."""
        from colsynth.kernels.clocks import FREE, Clocks

        turns = np.repeat(self.cut.turns, np.diff(self.counters.begins))
        ported = self.counters.lane >= 0
        lanes = np.bincount(self.counters.lane[ported], turns[ported], 1)
        longest = max(1, int(np.diff(self.cut.first).max()), int(lanes.max()))
        # Clocks are what large machines need most of their memory for.
        ticks = np.int16 if self.launches * longest < 1 << 15 else np.int32
        # Most pages of this pool are never touched, and then take no memory.
        many = 4 * len(self.cut.program.blocks) + 64
        data = np.zeros((many, self.first_host + self.header.ranks), ticks)
        uses, free = np.zeros(many, np.int64), np.arange(many)[::-1].copy()
        uses[0] = used
        self.counts[FREE] = many - 1
        return Clocks(data, uses, free, self.counts)
