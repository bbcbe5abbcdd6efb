"""What a plan is resolved into: operations with the counters and the operands that they touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from colsynth.model import Header
from colsynth.runtimes.plans.form import Loop, Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NOP, BARRIER, SIGNAL, WAIT, RELEASE, ACQUIRE, FLUSH, DATA, PORT, PACKET = range(10)
"""Kinds of operations, as `colsynth.kernels.launches` numbers them."""
GIVES, TAKES = (SIGNAL, PORT, RELEASE), (WAIT, ACQUIRE)
"""Kinds that add to a counter or take from one, thread by thread."""

OWNER, BUFFER, RANK, INDEX, SIZE, PACKETS, SLICE, SLICES, HALVED = range(9)
"""Columns of an operand: rank and buffer where it lies, the rank that executes the operation, first
chunk and chunks, whether they are packets, which of how many slices of each it is, and whether it
lies in the half of the scratch buffer that belongs to the launch."""
OPERAND = 9


@dataclass(frozen=True, slots=True)
class Action:
    """One operation.

    Parameters
    ----------
    kind : int
    op : Op
    step : int
        Place in the threadblock's list, of the pipeline where it stands in one.
    ends : tuple of int
        Counters that are given to or taken from, one per thread.
    lanes : tuple of int
        Of every end, the port channel whose order the signal follows; -1 for none.
    moves : range
        Sums of operands, cell by cell, that go to others.
    """

    kind: int
    op: Op
    step: int
    ends: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    moves: range = range(0)


@dataclass(frozen=True, slots=True)
class Part:
    """An operation of a threadblock, however often it is executed.

    Parameters
    ----------
    action : Action
    loop : int
        Number of the pipeline in its threadblock; -1 for none.
    rate : Fraction
        Iterations per byte of a chunk, rounded up for a whole one; 0 outside pipelines.
    """

    action: Action
    loop: int = -1
    rate: Fraction = Fraction(0)


@dataclass
class Resolved:
    """A plan, at any length of message.

    Parameters
    ----------
    header
    blocks : list of (int, int)
        Rank and id of every threadblock.
    parts : list of list of Part
        By threadblock.
    groups : list of (int, Loop or None)
        How many operations, in the order of all threadblocks, are one pipeline or none.
    moves : int array (M + 1, 4)
        First source, packet that is read, target, and packet that is sent.
    operands : int array (N, 9)
    channels, lanes : int
        Ends of channels, and of port channels.
    start : list of int
        What every counter begins at: first those of channels, at 0, then semaphores.
    """

    header: Header
    blocks: list[tuple[int, int]] = field(default_factory=list)
    parts: list[list[Part]] = field(default_factory=list)
    groups: list[tuple[int, Loop | None]] = field(default_factory=list)
    moves: Ints = field(default_factory=lambda: np.zeros((1, 4), np.int64))
    operands: Ints = field(default_factory=lambda: np.zeros((0, OPERAND), np.int64))
    channels: int = 0
    lanes: int = 0
    start: list[int] = field(default_factory=list)

    def operations(self) -> Iterator[Part]:
        """Yield those of all threadblocks in order."""
        for block in self.parts:
            yield from block

    def kind(self, counter: int) -> str:
        """Return what a counter belongs to: ``channel`` or ``semaphore``."""
        return "channel" if counter < self.channels else "semaphore"
