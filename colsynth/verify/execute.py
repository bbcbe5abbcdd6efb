"""Abstract execution: whether every threadblock finishes, given FIFOs of bounded depth.

Threadblocks are sequential processes joined by bounded FIFOs and by flags that only
grow, so whether the program finishes does not depend on the order in which they are
run (a Kahn network), and one order decides. A step that moves `count` chunks is
``ceil(count / group)`` calls on its connection; a fused step takes from one FIFO and
puts into another in the same call (contract 4.4 to 4.6).

Long steps are cut short without changing the answer. Ask of a call which others must
come before it: within the units of one message these are earlier calls of the same
unit, the same call upstream, and - for want of room - a call `depth` earlier downstream.
From the last call of a step one can thus get `h` units downstream only if the step has
more than ``h * depth`` calls. A message passes at most ``longest_chain`` receive-and-sends,
hence ``h`` is at most one more, and all lengths above ``depth * (longest_chain + 1)`` have
the same circles.
"""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.verify.units import Units

UNBOUNDED = 1 << 60
_TILE = 1 << 32
"""Flags hold tile * _TILE + ordinal: they compare first by tile, as in the runtime."""


@dataclass(frozen=True)
class Run:
    """What happened.

    Parameters
    ----------
    order : list of int
        Units in the order in which they completed in the first tile.
    stuck : list of (int, int)
        Threadblock and unit for each threadblock that did not finish, in order.
    """

    order: list[int]
    stuck: list[tuple[int, int]]


class _Machine:
    """State of one execution."""

    def __init__(self, units: Units, depth: int, group: int, tiles: int) -> None:
        self.units, self.depth, self.tiles = units, depth, tiles
        table = units.table
        enough = min(depth * (units.longest_chain + 1) + 1, UNBOUNDED)
        self.calls = (-(-table.count // group)).clip(1, enough).tolist()
        self.signals = table.signals.tolist()
        self.ordinal = table.ordinal.tolist()
        blocks, links = table.threadblocks, len(units.connections)
        self.filled = [0] * links
        self.reader, self.writer = [-1] * links, [-1] * links
        self.flag = [-1] * (blocks + 1)
        self.waiting: list[list[int]] = [[] for _ in range(blocks + 1)]
        self.at, self.done, self.tile = [0] * blocks, [0] * blocks, [0] * blocks
        self.ready = list(range(blocks - 1, -1, -1))
        self.order: list[int] = []

    def advance(self, block: int) -> None:
        """Run one threadblock until it blocks or finishes."""
        program, at = self.units.program[block], self.at[block]
        while self.tile[block] < self.tiles:
            while at < len(program):
                if not self._unit(block, program[at]):
                    self.at[block] = at
                    return
                at += 1
            at = 0
            self.tile[block] += 1
        self.at[block] = 0

    def _unit(self, block: int, unit: int) -> bool:
        """Run a unit as far as possible; return whether it completed."""
        units = self.units
        if self.done[block] == 0 and units.waits[unit] and not self._may_start(block, unit):
            return False
        source, target = units.recv[unit], units.send[unit]
        if source >= 0 or target >= 0:
            left = self.calls[unit] - self.done[block]
            while left:
                moved = self._move(block, source, target, left)
                if not moved:
                    self.done[block] = self.calls[unit] - left
                    return False
                left -= moved
            self.done[block] = 0
        if self.tile[block] == 0:
            self.order.append(unit)
        if self.signals[unit]:
            self.flag[block] = self.tile[block] * _TILE + self.ordinal[unit]
            if self.waiting[block]:
                self.ready.extend(self.waiting[block])
                self.waiting[block] = []
        return True

    def _may_start(self, block: int, unit: int) -> bool:
        base = self.tile[block] * _TILE
        for other, ordinal in self.units.waits[unit]:
            if self.flag[other] < base + ordinal:
                self.waiting[other].append(block)
                return False
        return True

    def _move(self, block: int, source: int, target: int, calls: int) -> int:
        """Make up to `calls` calls; return how many could be made now."""
        filled = self.filled
        if source >= 0:
            calls = min(calls, filled[source])
            if calls == 0:
                self.reader[source] = block
                return 0
        if target >= 0:
            calls = min(calls, self.depth - filled[target])
            if calls == 0:
                self.writer[target] = block
                return 0
            filled[target] += calls
            if self.reader[target] >= 0:
                self.ready.append(self.reader[target])
                self.reader[target] = -1
        if source >= 0:
            filled[source] -= calls
            if self.writer[source] >= 0:
                self.ready.append(self.writer[source])
                self.writer[source] = -1
        return calls


def execute(units: Units, *, depth: int, group: int, tiles: int) -> Run:
    """Run a program and say whether it finishes.

    Parameters
    ----------
    units : Units
    depth : int
        Calls a connection holds before its sender blocks.
    group : int
        Chunks that one call moves (M of the contract).
    tiles : int
        Passes of the outer loop.
    """
    machine = _Machine(units, depth, group, tiles)
    while machine.ready:
        machine.advance(machine.ready.pop())
    stuck = [
        (block, units.program[block][machine.at[block]])
        for block in range(units.table.threadblocks)
        if machine.tile[block] < tiles and units.program[block]
    ]
    return Run(machine.order, stuck)
