"""What a plan is resolved into: operations with the counters and the cells that they touch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from colsynth.model import Header
from colsynth.runtimes.plans.form import Op
from colsynth.verify.contract import Layout

Cells = range
NOP, BARRIER, SIGNAL, WAIT, RELEASE, ACQUIRE, FLUSH, DATA, PORT, PACKET = range(10)


@dataclass(frozen=True, slots=True)
class Move:
    """A sum of sources, cell by cell, that goes to some targets.

    Packets are read and written as such; their cells are twice as far apart.
    """

    sources: tuple[Cells, ...]
    packets: tuple[Cells, ...]
    targets: tuple[Cells, ...]
    sent: tuple[Cells, ...]


@dataclass(slots=True)
class Action:
    """One operation in one iteration.

    Parameters
    ----------
    kind : int
    op : Op
    step : int
        Place in the threadblock's list, of the pipeline where it stands in one.
    ends : tuple of int
        Queues that are signalled or waited for, or semaphores, one per thread.
    lanes : tuple of int
        Of every end, the port channel whose order the signal follows; -1 for none.
    moves : tuple of Move
    """

    kind: int
    op: Op
    step: int
    ends: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """An operation of a threadblock, however often it is executed.

    Parameters
    ----------
    action : Action
        In the first iteration.
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
    """A plan at one length of message.

    Parameters
    ----------
    header
    cells : int
        Cells of a chunk.
    blocks : list of (int, int)
        Rank and id of every threadblock.
    actions : list of list of Action
        By threadblock and half of the scratch buffer (one half unless it is double).
    parts : list of list of Part
        By threadblock.
    queues, semaphores : int
    start : list of int
        Initial values of the semaphores.
    lanes : int
        Ends of port channels.
    memory : Layout
        Input and output in chunks.
    locations : int
        Cells of all ranks.
    """

    header: Header
    cells: int
    memory: Layout
    locations: int
    blocks: list[tuple[int, int]] = field(default_factory=list)
    actions: list[list[list[Action]]] = field(default_factory=list)
    parts: list[list[Part]] = field(default_factory=list)
    queues: int = 0
    lanes: int = 0
    start: list[int] = field(default_factory=list)


def most_ticks(program: Resolved, launches: int) -> int:
    """Return a number that no tick of a threadblock or a port channel exceeds."""
    ported = Counter(
        lane
        for halves in program.actions
        for half in halves
        for action in half
        for lane in action.lanes
        if lane >= 0
    )
    lengths = (len(half) for halves in program.actions for half in halves)
    return launches * max([1, *ported.values(), *lengths])
