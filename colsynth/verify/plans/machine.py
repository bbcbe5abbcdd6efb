"""Executes a resolved plan: launches one after the other on every rank, ranks independent.

A threadblock's operations are unordered between two nops; signals and semaphores order what came
before the last nop. Every counter has one threadblock at each end (rule P07), so all executions
do the same, and one of them tells whether any hangs, races or goes wrong. The next launch of a
rank begins when its threadblocks are done, whatever the others do; that is a rank arbitrarily
late.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from colsynth.verify.contract import contributions
from colsynth.verify.plans.memory import Memory
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
    Action,
    Move,
    Resolved,
    most_ticks,
)
from colsynth.verify.plans.threads import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from colsynth.verify.plans.memory import Clock


_MOST_ACQUIRES = 1 << 16
"""More than any semaphore is acquired: operations, iterations and launches are few (P03, P16)."""

_ALL = -1
"""The thread under which a block keeps what packets told it."""


class Machine:
    """Runs a plan for some launches.

    Parameters
    ----------
    program : Resolved
    launches : int
    race : callable
        Called with rank, threadblock, step and what is wrong.
    finished : callable
        Called with the machine, a rank and the number of a launch when it is done.
    flushes : bool
        Whether ``pwsf`` waits until its source was read.
    """

    def __init__(
        self,
        program: Resolved,
        launches: int,
        race: Callable[[int, int, int | None, str], None],
        finished: Callable[[Machine, int, int], None],
        *,
        flushes: bool,
    ) -> None:
        self.program, self.launches, self.race, self.finished = program, launches, race, finished
        self.flushes = flushes
        count, ranks = len(program.blocks), program.header.ranks
        kinds = {a.kind for halves in program.actions for half in halves for a in half}
        self.stamps = 2 if PACKET in kinds else 1
        self.first_lane = self.stamps * count
        self.first_host = self.first_lane + program.lanes
        # Messages on their way hold clocks, which large machines need most of their memory for.
        ticks = np.min_scalar_type(-1 - most_ticks(program, launches))
        zero = np.zeros(self.first_host + ranks, ticks)
        self.blocks = [
            Block(n, rank, zero, self.stamps) for n, (rank, _) in enumerate(program.blocks)
        ]
        self.memory = Memory(program.locations, self._raced)
        self.queues: list[deque[Clock]] = [deque() for _ in range(program.queues)]
        self.semaphores = [deque([zero] * min(n, _MOST_ACQUIRES)) for n in program.start]
        self.lane_tick = [0] * program.lanes
        self.barriers: dict[tuple[int, int], list[Block]] = {}
        self.waiting: dict[tuple[str, int], list[int]] = {}
        self.members: list[list[Block]] = [[] for _ in range(ranks)]
        for block in self.blocks:
            self.members[block.rank].append(block)
        self.running = [len(members) for members in self.members]
        self.host_tick = [0] * ranks
        self.ready: deque[int] = deque()
        self.current: tuple[Block, Action] | None = None
        self.key = program.header.ranks * program.header.chunks * program.cells

    def run(self) -> list[tuple[int, int, Action]]:
        """Return (rank, threadblock, operation) of all that never finish."""
        for rank in range(len(self.members)):
            self._launch(rank, 0)
        while self.ready:
            self._advance(self.blocks[self.ready.popleft()])
        stuck = []
        for block in self.blocks:
            actions = self._actions(block)
            if block.launch < self.launches and block.at < len(actions):
                stuck.append((*self.program.blocks[block.number], actions[block.at]))
        return stuck

    def _actions(self, block: Block) -> list[Action]:
        halves = self.program.actions[block.number]
        return halves[block.launch % len(halves)]

    def _launch(self, rank: int, launch: int) -> None:
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

    def _advance(self, block: Block) -> None:
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

    def _done(self, rank: int, launch: int) -> None:
        self.finished(self, rank, launch)
        for block in self.members[rank]:
            block.launch = launch + 1
        if launch + 1 < self.launches:
            self._launch(rank, launch + 1)

    def _do(self, block: Block, action: Action) -> bool:
        """Carry out an operation; return whether it is done."""
        kind = action.kind
        if kind == WAIT:
            return self._take(block, action, self.queues, "channel")
        if kind == ACQUIRE:
            return self._take(block, action, self.semaphores, "semaphore")
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

    def _speak(self, block: Block, action: Action) -> None:
        """Signal, release or flush, thread by thread."""
        if action.kind == RELEASE:
            for thread, end in enumerate(action.ends):
                self.semaphores[end].append(block.known(thread))
                self._wake(("semaphore", end))
            return
        for thread, lane in enumerate(action.lanes):
            told = self._spoken(block, thread, lane)
            if action.kind == SIGNAL:
                self._signal(action.ends[thread], told)
            else:
                block.learn(thread, told)

    def _spoken(self, block: Block, thread: int, lane: int) -> Clock:
        """Return what a signal of a thread tells, with the puts before it on its port channel."""
        clock = block.known(thread)
        if lane >= 0:
            clock = clock.copy()
            clock[self.first_lane + lane] = self.lane_tick[lane]
        return clock

    def _signal(self, end: int, clock: Clock) -> None:
        self.queues[end].append(clock)
        self._wake(("channel", end))

    def _wake(self, what: tuple[str, int]) -> None:
        if what in self.waiting:
            self.ready.extend(self.waiting.pop(what))

    def _take(self, block: Block, action: Action, queues: list[deque[Clock]], kind: str) -> bool:
        for end in action.ends:
            if not queues[end]:
                self.waiting.setdefault((kind, end), []).append(block.number)
                return False
        for thread, end in enumerate(action.ends):
            block.learn(thread, queues[end].popleft())
        return True

    def _barrier(self, block: Block, action: Action) -> bool:
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

    def _move(self, move: Move, component: int, tick: int, clock: Clock) -> None:
        memory, add = self.memory, self.memory.values.add
        for place in range(len(move.targets[0])):
            value = memory.read(move.sources[0][place], component, tick, clock)
            for source in move.sources[1:]:
                value = add(value, memory.read(source[place], component, tick, clock))
            for target in move.targets:
                memory.write(target[place], value, component, tick, clock)

    def _port(self, block: Block, action: Action) -> bool:
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

    def _arrived(self, block: Block, action: Action) -> bool:
        """Whether all packets are there that an operation reads."""
        flag = self.memory.flag
        for move in action.moves:
            for packets in move.packets:
                for cell in packets:
                    if flag[cell] != block.launch:
                        self.waiting.setdefault(("packet", cell), []).append(block.number)
                        return False
        return True

    def _packets(self, block: Block, action: Action) -> bool:
        if not self._arrived(block, action):
            return False
        block.ticks[1] += 1
        tick = block.ticks[1]
        for move in action.moves:
            known = self._told_by(move, block.clock)
            if move.packets:
                block.learn(_ALL, known)
            told = known.copy()
            told[block.packet] = tick  # a thread keeps to its own packets, one after the other
            self._forward(move, (block.packet, tick), told, known)
        return True

    def _told_by(self, move: Move, clock: Clock) -> Clock:
        """Return what is known at a clock and by the packets that a move reads."""
        known = clock.copy()
        for packets in move.packets:
            for cell in packets:
                np.maximum(known, self.memory.packet_clock[cell], out=known)
        return known

    def _forward(self, move: Move, stamp: tuple[int, int], told: Clock, known: Clock) -> None:
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

    def _raced(self, component: int, cell: int, what: str) -> None:
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
        self.race(*self.program.blocks[block.number], action.step, f"{name}: {what} by {other}")
