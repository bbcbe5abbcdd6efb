"""Launches of a plan, operation by operation: the twin of `colsynth.kernels.launches`.

Clocks are arrays that nobody changes once they were told; memory is lists; sums are expressions.
"""

from collections import deque
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from colsynth.runtimes.plans.form import Op
from colsynth.verify.contents import UNDEFINED, Values
from colsynth.verify.contract import contributions
from colsynth.verify.plans.resolved import (
    ACQUIRE,
    BARRIER,
    DATA,
    NOP,
    PACKET,
    PORT,
    RELEASE,
    SIGNAL,
    WAIT,
)

ALL = -1
"""The thread under which a block keeps what packets told it."""


class Move(NamedTuple):
    sources: tuple
    packets: tuple
    targets: tuple
    sent: tuple


class Item(NamedTuple):
    """One operation in one iteration."""

    kind: int
    op: Op
    step: int
    ends: tuple
    lanes: tuple
    moves: tuple


def items_of(cut, half):
    """Return what each threadblock executes in one half of the scratch buffer."""
    parts, operands = list(cut.program.operations()), len(cut.wrap)
    firsts = [*cut.program.moves.tolist()]

    def cells(operand, turn, size):
        turn = turn % int(cut.wrap[operand]) if cut.wrap[operand] else turn
        apart = int(cut.apart[operand])
        start = int(cut.start[half, operand]) + turn * apart
        return range(start, start + size * apart, apart)

    def item(number, turn, size):
        action, moves = parts[number].action, []
        for move in action.moves:
            ends = [*firsts[move], firsts[move + 1][0]]
            whole = int(cut.length[ends[0]]) if size < 0 and operands else size
            groups = [range(*ends[k : k + 2]) for k in range(4)]
            moves.append(Move(*(tuple(cells(o, turn, whole) for o in g) for g in groups)))
        return Item(action.kind, action.op, action.step, action.ends, action.lanes, tuple(moves))

    first = cut.first.tolist()
    return [[item(*row) for row in cut.items[begin:end].tolist()] for begin, end in pairwise(first)]


class Block:
    """The state of a threadblock.

    Its accesses are stamped with a component of its own; those of packet operations, whose
    threads keep to their own packets, with the next one, where there are two `stamps`.
    """

    def __init__(self, number, rank, clock, stamps):
        self.number, self.rank, self.clock = number, rank, clock
        self.plain, self.packet = stamps * number, stamps * number + stamps - 1
        self.ticks = [0, 0]
        self.pending = {}
        self.at = 0
        self.launch = 0
        self.arrived = False

    def join(self):
        """Let all that its threads did and learned have happened before what follows."""
        clock = self.clock.copy()
        for learned in self.pending.values():
            np.maximum(clock, learned, out=clock)
        clock[self.packet] = self.ticks[1]
        clock[self.plain] = self.ticks[0]
        self.pending = {}
        self.clock = clock

    def learn(self, thread, clock):
        """Remember what a thread learned."""
        known = self.pending.get(thread)
        self.pending[thread] = clock if known is None else np.maximum(known, clock)

    def known(self, thread):
        """Return what a thread knows."""
        learned = self.pending.get(thread)
        return self.clock if learned is None else np.maximum(self.clock, learned)


class Memory:
    """Cells, with what is needed to find races."""

    def __init__(self, locations, told):
        self.values = Values()
        self.value = [UNDEFINED] * locations
        self._writer = [-1] * locations
        self._written = [0] * locations
        self._reads = [None] * locations
        self.flag = [-1] * locations
        self.packet_clock = [None] * locations
        self._told = told

    def read(self, cell, component, tick, clock):
        """Return the value of a cell."""
        writer = self._writer[cell]
        if (
            writer >= 0
            and clock[writer] < self._written[cell]
            and not (writer == component and tick == self._written[cell])
        ):
            self._told(writer, cell, "read while it is written")
        reads = self._reads[cell]
        if reads is None:
            self._reads[cell] = {component: tick}
        else:
            reads[component] = tick
        return self.value[cell]

    def write(self, cell, value, component, tick, clock):
        """Put a value into a cell, which holds no packet then."""
        writer = self._writer[cell]
        if (
            writer >= 0
            and clock[writer] < self._written[cell]
            and not (writer == component and tick == self._written[cell])
        ):
            self._told(writer, cell, "written twice at once")
        reads = self._reads[cell]
        if reads:
            for reader, when in reads.items():
                if clock[reader] < when and not (reader == component and tick == when):
                    self._told(reader, cell, "written while it is read")
            self._reads[cell] = None
        self.value[cell] = value
        self._writer[cell], self._written[cell] = component, tick
        self.flag[cell] = -1


class Machine:
    """Runs a plan; `races` are (threadblock, step, text), `left` what launches left in outputs."""

    def __init__(self, cut, launches, *, flushes):
        resolved = cut.program
        halves = [items_of(cut, half) for half in range(len(cut.start))]
        self.program = SimpleNamespace(
            header=resolved.header,
            blocks=resolved.blocks,
            actions=list(zip(*halves, strict=True)),
            lanes=resolved.lanes,
            start=resolved.start,
            cells=cut.cells,
            memory=cut.memory,
            locations=cut.locations,
        )
        program = self.program
        self.launches, self.flushes, self.races, self.left = launches, flushes, [], {}
        count, ranks = len(program.blocks), program.header.ranks
        kinds = {a.kind for halves in program.actions for half in halves for a in half}
        self.stamps = 2 if PACKET in kinds else 1
        self.first_lane = self.stamps * count
        self.first_host = self.first_lane + program.lanes
        zero = np.zeros(self.first_host + ranks, np.int64)
        self.blocks = [
            Block(n, rank, zero, self.stamps) for n, (rank, _) in enumerate(program.blocks)
        ]
        self.memory = Memory(program.locations, self._raced)
        self.queues = [deque([zero] * n) for n in program.start]
        self.lane_tick = [0] * program.lanes
        self.barriers = {}
        self.waiting = {}
        self.members = [[] for _ in range(ranks)]
        for block in self.blocks:
            self.members[block.rank].append(block)
        self.running = [len(members) for members in self.members]
        self.host_tick = [0] * ranks
        self.ready = deque()
        self.current = None
        self.key = program.header.ranks * program.header.chunks * program.cells

    def run(self):
        """Return (threadblock, name of the operation) of all that never finish."""
        for rank in range(len(self.members)):
            self._launch(rank, 0)
        while self.ready:
            self._advance(self.blocks[self.ready.popleft()])
        stuck = []
        for block in self.blocks:
            actions = self._actions(block)
            if block.launch < self.launches and block.at < len(actions):
                stuck.append((block.number, actions[block.at].op.name))
        return stuck

    def _actions(self, block):
        halves = self.program.actions[block.number]
        return halves[block.launch % len(halves)]

    def _launch(self, rank, launch):
        """Let the caller fill the input of a rank, and start its threadblocks."""
        program, memory, header = self.program, self.memory, self.program.header
        clock = np.zeros_like(self.members[rank][0].clock)
        for block in self.members[rank]:
            block.join()
            np.maximum(clock, block.clock, out=clock)
        self.host_tick[rank] += 1
        tick, host, cells = self.host_tick[rank], self.first_host + rank, program.cells
        clock[host] = tick - 1
        starts = (program.memory.base[rank] * cells).tolist()
        counts = (program.memory.size[rank] * cells).tolist()
        for cell in range(starts[1], starts[1] + counts[1]):
            memory.write(cell, 0, host, tick, clock)
        numbers = contributions(header, rank, counts[0] // cells)
        first = launch * self.key
        keys = [first + number * cells + c for number in numbers for c in range(cells)]
        for place, value in enumerate(memory.values.leaves(keys, rank)):
            memory.write(starts[0] + place, value, host, tick, clock)
        clock[host] = tick
        for block in self.members[rank]:
            block.clock, block.launch, block.at = clock, launch, 0
            self.ready.append(block.number)
        self.running[rank] = len(self.members[rank])
        if not self.members[rank]:
            self._done(rank, launch)

    def _advance(self, block):
        actions = self._actions(block)
        while block.at < len(actions):
            action = actions[block.at]
            self.current = (block, action)
            if not self._do(block, action):
                return
            block.at += 1
        if block.launch >= self.launches:
            return
        self.running[block.rank] -= 1
        if self.running[block.rank] == 0:
            self._done(block.rank, block.launch)

    def _done(self, rank, launch):
        cells, memory, values = self.program.cells, self.program.memory, self.memory.values
        first, count = memory.base[rank, 1] * cells, memory.size[rank, 1] * cells
        held = self.memory.value[first : first + count]
        self.left[launch, rank] = [
            (-1 - (v > 0), 0) if v in values.fault else (values.chunk[v], values.mask[v])
            for v in held
        ]
        for block in self.members[rank]:
            block.launch = launch + 1
        if launch + 1 < self.launches:
            self._launch(rank, launch + 1)

    def _do(self, block, action):
        """Carry out an operation; return whether it is done."""
        kind = action.kind
        if kind in (WAIT, ACQUIRE):
            return self._take(block, action)
        if kind in (BARRIER, PORT, PACKET):
            slow = {BARRIER: self._barrier, PORT: self._port, PACKET: self._packets}
            return slow[kind](block, action)
        if kind == NOP:
            block.join()
        elif kind == DATA:
            block.ticks[0] += 1
            for move in action.moves:
                self._move(move, block.plain, block.ticks[0], block.clock)
        else:
            self._speak(block, action)
        return True

    def _speak(self, block, action):
        """Signal, release or flush, thread by thread."""
        if action.kind == RELEASE:
            for thread, end in enumerate(action.ends):
                self.queues[end].append(block.known(thread))
                self._wake(("queue", end))
            return
        for thread, lane in enumerate(action.lanes):
            told = self._spoken(block, thread, lane)
            if action.kind == SIGNAL:
                self._signal(action.ends[thread], told)
            else:
                block.learn(thread, told)

    def _spoken(self, block, thread, lane):
        """Return what a signal of a thread tells, with the puts before it on its port channel."""
        clock = block.known(thread)
        if lane >= 0:
            clock = clock.copy()
            clock[self.first_lane + lane] = self.lane_tick[lane]
        return clock

    def _signal(self, end, clock):
        self.queues[end].append(clock)
        self._wake(("queue", end))

    def _wake(self, what):
        if what in self.waiting:
            self.ready.extend(self.waiting.pop(what))

    def _take(self, block, action):
        for end in action.ends:
            if not self.queues[end]:
                self.waiting.setdefault(("queue", end), []).append(block.number)
                return False
        for thread, end in enumerate(action.ends):
            block.learn(thread, self.queues[end].popleft())
        return True

    def _barrier(self, block, action):
        if block.arrived:
            block.arrived = False
            return True
        key = (block.rank, action.op.barrier_id or 0)
        here = self.barriers.setdefault(key, [])
        block.join()
        here.append(block)
        if len(here) < (action.op.num_threadblocks or 0):
            block.arrived = True
            return False
        clock = block.clock.copy()
        for other in here:
            np.maximum(clock, other.clock, out=clock)
        for other in here:
            other.clock = clock
            if other is not block:
                self.ready.append(other.number)
        self.barriers[key] = []
        return True

    def _move(self, move, component, tick, clock):
        memory, add = self.memory, self.memory.values.add
        for place in range(len(move.targets[0])):
            value = memory.read(move.sources[0][place], component, tick, clock)
            for source in move.sources[1:]:
                value = add(value, memory.read(source[place], component, tick, clock))
            for target in move.targets:
                memory.write(target[place], value, component, tick, clock)

    def _port(self, block, action):
        if not self._arrived(block, action):
            return False
        for thread, (move, lane) in enumerate(zip(action.moves, action.lanes, strict=True)):
            # Threads meet once the packets are there, before anything is put (rppkt).
            clock = self._told_by(move, block.known(thread))
            self.lane_tick[lane] += 1
            component, tick = self.first_lane + lane, self.lane_tick[lane]
            if move.sent:
                told = clock.copy()
                told[component] = tick
                self._forward(move, (component, tick), told, clock)
            else:
                self._move(move, component, tick, clock)
            if action.ends:
                self._signal(action.ends[thread], self._spoken(block, thread, lane))
            if action.op.name == "pwsf" and self.flushes:
                block.learn(thread, self._spoken(block, thread, lane))
        return True

    def _arrived(self, block, action):
        """Whether all packets are there that an operation reads."""
        flag = self.memory.flag
        for move in action.moves:
            for packets in move.packets:
                for cell in packets:
                    if flag[cell] != block.launch:
                        self.waiting.setdefault(("packet", cell), []).append(block.number)
                        return False
        return True

    def _packets(self, block, action):
        if not self._arrived(block, action):
            return False
        block.ticks[1] += 1
        tick = block.ticks[1]
        for move in action.moves:
            known = self._told_by(move, block.clock)
            if move.packets:
                block.learn(ALL, known)
            told = known.copy()
            told[block.packet] = tick  # a thread keeps to its own packets, one after the other
            self._forward(move, (block.packet, tick), told, known)
        return True

    def _told_by(self, move, clock):
        """Return what is known at a clock and by the packets that a move reads."""
        known = clock.copy()
        for packets in move.packets:
            for cell in packets:
                np.maximum(known, self.memory.packet_clock[cell], out=known)
        return known

    def _forward(self, move, stamp, told, known):
        """Move data of which sources or targets are packets.

        Parameters
        ----------
        move : Move
        stamp : tuple of int
            Component and tick.
        told, known : clocks
            What the packets tell, and what happened before.
        """
        memory, add = self.memory, self.memory.values.add
        launch = 0 if self.current is None else self.current[0].launch
        for place in range(len((*move.sources, *move.packets)[0])):
            value = None
            for source in (*move.sources, *move.packets):
                found = memory.read(source[place], *stamp, known)
                value = found if value is None else add(value, found)
            for packets in move.packets:
                memory.read(packets[place] + 1, *stamp, known)
            for target in move.targets:
                memory.write(target[place], value or 0, *stamp, known)
            for target in move.sent:
                cell = target[place]
                memory.write(cell, value or 0, *stamp, known)
                memory.write(cell + 1, value or 0, *stamp, known)
                memory.flag[cell] = launch
                memory.packet_clock[cell] = told
                self._wake(("packet", cell))

    def _raced(self, component, cell, what):
        if self.current is None:
            return
        block, action = self.current
        other = "the caller"
        if component < self.first_lane:
            rank, number = self.program.blocks[component // self.stamps]
            other = f"threadblock {rank}/{number}"
        elif component < self.first_host:
            other = "a port channel"
        name = action.op.name if block.at < len(self._actions(block)) else "the next call"
        self.races.append((block.number, action.step, f"{name}: {what} by {other}"))
