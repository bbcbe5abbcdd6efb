"""Threadblocks that are allocated and ordered together, by list scheduling.

Where reductions are steps of their own, a threadblock that adds up what it received can receive
nothing meanwhile. Here each connection has threadblocks of its own, and so have the local steps of
a GPU. All have as much to do as any other, as far as whole threadblocks allow. A simulation of
a large message then decides which threadblock does what, and in which order: a threadblock that
falls free begins what is due first (`colsynth.kernels.timetable`). Segments are due one after the
other. Along a tree, a step is due as much earlier as the steps behind it take.

All threadblocks follow the order in which their steps begin, so there is a global order of
transfers, and nobody waits in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise

import numpy as np

from colsynth.cost import model_of
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import bandwidth, exact, pace
from colsynth.lowering.allocation import Limits, PlacedThreadblock
from colsynth.lowering.balanced import link_loads
from colsynth.lowering.columns import Columns, Ints, rows
from colsynth.lowering.hazards import Waits
from colsynth.lowering.joined_sums import continues
from colsynth.model import ChunkProgram
from colsynth.runtimes.target import Target

_TICKS = 1 << 20
"""Ticks in which a threadblock sends or receives a chunk where no link slows it down."""

_PERIOD = Fraction(1, 2)
"""When a segment is due behind the one before it, as a part of the time that it takes to carry it.

With 0, steps with the longest way ahead go first, whatever their segment; with 1, segments are due
as they can be done. Seven programs of 1 GiB on one and two MI250 boxes with RCCL take up to 5 %
less time with 1/2 than with 1, and up to 27 % less than with 0; none takes more.
"""


@dataclass(frozen=True)
class Timetable:
    """The transfers of a program as tasks, each of which occupies one threadblock or one pair.

    Parameters
    ----------
    program : ChunkProgram
    columns : Columns
        Of its transfers.
    needed : tuple of tuple of int
        The waits of each operation.
    target : Target
    """

    program: ChunkProgram
    columns: Columns
    needed: Waits
    target: Target

    def allocate(self, limits: Limits) -> list[PlacedThreadblock] | None:
        """Return the threadblocks of all ranks; None where the limits do not allow it."""
        from colsynth.kernels.timetable import Tasks, due_times, timetable

        found = self._shares(limits)
        if found is None:
            return None
        many, period = found
        local, group = self.columns.local, self._group
        duration = np.where(local, self._work, self.columns.count * self._ticks(many)[group])
        slices = model_of(self.target).slices[self.target.protocol]
        late = np.where(local, 0, duration // slices)
        first, other = self._needs
        tasks = Tasks(group, self._chain, duration, late, self._steps, first, other)
        blocks = np.concatenate([[0], np.cumsum(many)])
        last = self._passed * int(period * _PERIOD) // int(self.columns.count.sum())
        block, begin, fits = timetable(tasks, due_times(tasks, last), blocks, limits.steps)
        return self._placed(many, block, begin, limits) if fits else None

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """Source and target of each pair of ranks between which something is sent."""
        return self.columns.pairs(self.program.problem.topology.size)

    @property
    def _ends(self) -> tuple[list[int], list[int]]:
        """Source and target of each group, the same rank for local steps."""
        ranks = np.arange(self.program.problem.topology.size)
        source, target = (np.concatenate([ends, ranks]).tolist() for ends in self._pairs)
        return source, target

    @cached_property
    def _group(self) -> Ints:
        """The pair of each transfer; behind all pairs, the rank of each local one."""
        size = self.program.problem.topology.size
        (source, target), columns = self._pairs, self.columns
        pair = np.searchsorted(source * size + target, columns.source * size + columns.target)
        return np.where(columns.local, len(source) + columns.target, pair)

    @cached_property
    def _needs(self) -> tuple[Ints, Ints]:
        """What each transfer needs, at both of its ends."""
        begin, op = rows(self.needed)
        of_op = self.columns.of_op
        waiter, other = np.repeat(of_op, np.diff(begin)), of_op[op]
        return np.searchsorted(waiter, np.arange(len(self._group) + 1)), other

    @cached_property
    def _chain(self) -> Ints:
        """The first of the local steps that wait for each other in a row; others alone."""
        first, other = self._needs
        waiter = np.repeat(np.arange(len(self._group)), np.diff(first))
        joined = self.columns.local[waiter] & self.columns.local[other]
        chain: list[int] = list(range(len(self._group)))
        for task, before in zip(waiter[joined].tolist(), other[joined].tolist(), strict=True):
            chain[task] = chain[before]
        return np.array(chain, dtype=np.int64)

    @cached_property
    def _steps(self) -> Ints:
        """The steps of each chain, in the place of its first; nops for further waits included."""
        columns = self.columns
        waits = np.diff(rows(self.needed)[0])
        weight = np.maximum(1, waits[columns.first_op])
        moves = ~columns.local
        weight[moves] = np.maximum(weight, waits[columns.first_op + moves])[moves]
        inside = self._chain != np.arange(len(weight))
        weight[inside] = np.maximum(1, weight[inside] - 1)  # the one before is on its threadblock
        found = np.zeros(len(weight), dtype=np.int64)
        np.add.at(found, self._chain, weight)
        return found

    @cached_property
    def _passed(self) -> Ints:
        """The chunks that have moved when the segment of each transfer is done.

        Segments follow each other, those of the first instance before those of the next one.
        """
        columns = self.columns
        key = columns.instance * (1 + columns.segment.max()) + columns.segment
        segments, number = np.unique(key, return_inverse=True)
        moved = np.zeros(len(segments), dtype=np.int64)
        np.add.at(moved, number, columns.count)
        return np.cumsum(moved)[number]

    @cached_property
    def _chunks(self) -> Ints:
        """The chunks that each group moves."""
        size = len(self._pairs[0]) + self.program.problem.topology.size
        chunks = np.zeros(size, dtype=np.int64)
        np.add.at(chunks, self._group, self.columns.count)
        return chunks

    @cached_property
    def _work(self) -> Ints:
        """The ticks that each transfer needs of its threadblocks where no link slows it down."""
        model, protocol, columns = model_of(self.target), self.target.protocol, self.columns
        slower = exact(model.rate[protocol]) / exact(model.local_rate[protocol])
        shares = 1, exact(model.operand)
        alone, further = (max(1, int(_TICKS * share * slower)) for share in shares)
        inside = continues(columns)[columns.first_op]
        ticks = np.where(columns.local, np.where(inside, further, alone), _TICKS)
        work: Ints = columns.count * ticks
        return work

    @cached_property
    def _loads(self) -> Ints:
        """The ticks that each group needs of its threadblocks."""
        loads = np.zeros(len(self._chunks), dtype=np.int64)
        np.add.at(loads, self._group, self._work)
        return loads

    @cached_property
    def _slowest(self) -> dict[int, Fraction]:
        """For every pair, the ticks that the busiest of its links is busy with all it carries."""
        topology, model = self.program.problem.topology, model_of(self.target)
        pairs = list(zip(*(ends.tolist() for ends in self._pairs), strict=True))
        known = pair_routes(topology, pairs)
        load, whole = link_loads(zip(pairs, self._loads.tolist(), strict=False), known)
        rate = pace(model, self.target.protocol) / exact(model.payload[self.target.protocol])
        busy = {
            link: rate * Fraction(ticks, whole) / bandwidth(topology, link, model)
            for link, ticks in load.items()
        }
        return {
            number: max(busy[link] for way in known[pair] for link in way)
            for number, pair in enumerate(pairs)
        }

    def _ticks(self, many: Ints) -> Ints:
        """Return how long each group takes for a chunk, where all its threadblocks are busy.

        Connections that share a link have parts of it in proportion to what they carry.
        """
        found = self._loads // np.maximum(1, self._chunks)
        for number, busy in self._slowest.items():
            slow = busy * int(many[number]) / int(self._chunks[number])
            found[number] = max(found[number], int(slow))
        return found

    def _shares(self, limits: Limits) -> tuple[Ints, int] | None:
        """Return the threadblocks of each group, and the ticks that the busiest of them takes.

        As few ticks as the threadblocks of every GPU allow, but no fewer than the busiest link
        takes. What is left is for local steps.
        """
        source, target = self._pairs
        steps = np.zeros(len(self._loads), dtype=np.int64)
        np.add.at(steps, self._group, self._steps)
        least = -(-steps // limits.steps)

        def shared(most: int) -> tuple[Ints, Ints]:
            many = np.maximum(least, -(-self._loads // most))
            used = many[len(source) :].copy()
            np.add.at(used, source, many[: len(source)])
            np.add.at(used, target, many[: len(source)])
            return many, used

        low = max(1, int(max(self._slowest.values(), default=Fraction(1))))
        high = max(low, int(self._loads.max()))
        if shared(high)[1].max() > limits.threadblocks:
            return None
        while low < high:
            middle = (low + high) // 2
            if shared(middle)[1].max() > limits.threadblocks:
                low = middle + 1
            else:
                high = middle
        many, used = shared(high)
        many[len(source) :] += np.where(many[len(source) :] > 0, limits.threadblocks - used, 0)
        return many, high

    def _placed(
        self, many: Ints, block: Ints, begin: Ints, limits: Limits
    ) -> list[PlacedThreadblock] | None:
        """Return threadblocks with their operations in the order in which they begin."""
        of_op = self.columns.of_op
        owner = 2 * block[of_op] + ~self.columns.opens  # the sender of a connection, its receiver
        order = np.lexsort((np.arange(len(of_op)), begin[of_op], owner))
        ends = np.searchsorted(owner[order], np.arange(2 * int(many.sum()) + 1)).tolist()
        steps: list[list[tuple[int, ...]]] = [
            [(op,) for op in order[a:b].tolist()] for a, b in pairwise(ends)
        ]
        seats = np.zeros((self.program.problem.topology.size, limits.channels), dtype=np.int64)
        found: list[PlacedThreadblock] = []
        blocks = iter(zip(steps[::2], steps[1::2], strict=True))
        for source, target, number in zip(*self._ends, many.tolist(), strict=True):
            channel = -1
            for sent, received in islice(blocks, number):
                channel = _channel(seats, source, target, channel + 1, limits.per_channel)
                if channel < 0:
                    return None
                if source == target:
                    found.append(PlacedThreadblock(source, channel, None, None, sent))
                    seats[source, channel] += 1
                    continue
                found.append(PlacedThreadblock(source, channel, None, target, sent))
                found.append(PlacedThreadblock(target, channel, source, None, received))
                seats[[source, target], channel] += 1
        return [block for block in found if block.steps]


def _channel(seats: Ints, source: int, target: int, first: int, most: int) -> int:
    """Return a channel for another threadblock, at both ends of a connection; -1 for none.

    A connection takes its channels in ascending order, from `first` on, and local steps that with
    the fewest threadblocks.
    """
    taken = np.maximum(seats[source], seats[target])
    if source == target:
        least = int(taken.argmin())
        return least if taken[least] < most else -1
    room = np.flatnonzero(taken[first:] < most)
    return first + int(room[0]) if len(room) else -1
