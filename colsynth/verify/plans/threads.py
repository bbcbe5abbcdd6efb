"""The state of a threadblock that executes a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from colsynth.verify.plans.memory import Clock


class Block:
    """The state of a threadblock.

    Its accesses are stamped with a component of its own; those of packet operations, whose
    threads keep to their own packets, with the next one, where there are two `stamps`.
    """

    def __init__(self, number: int, rank: int, clock: Clock, stamps: int) -> None:
        self.number, self.rank, self.clock = number, rank, clock
        self.plain, self.packet = stamps * number, stamps * number + stamps - 1
        self.ticks = [0, 0]
        self.pending: dict[int, Clock] = {}
        self.at = 0
        self.launch = 0
        self.arrived = False

    def join(self) -> None:
        """Let all that its threads did and learned have happened before what follows."""
        clock = self.clock.copy()
        for learned in self.pending.values():
            np.maximum(clock, learned, out=clock)
        clock[self.packet] = self.ticks[1]
        clock[self.plain] = self.ticks[0]
        self.pending = {}
        self.clock = clock

    def learn(self, thread: int, clock: Clock) -> None:
        """Remember what a thread learned."""
        known = self.pending.get(thread)
        self.pending[thread] = clock if known is None else np.maximum(known, clock)

    def known(self, thread: int) -> Clock:
        """Return what a thread knows."""
        learned = self.pending.get(thread)
        return self.clock if learned is None else np.maximum(self.clock, learned)
