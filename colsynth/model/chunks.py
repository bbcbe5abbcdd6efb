"""Who moves which chunk where, after what: transfers between named slots.

There are hundreds of thousands of transfers and steps, so they are structs: made twenty times as
fast as dataclasses, and not looked at by the garbage collector. `msgspec.structs.replace` changes
copies of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from colsynth.model.problem import Direction, Problem


class Slot(NamedTuple):
    """A chunk-sized place on a rank: buffer ``i``, ``o`` or ``s``, and an offset in chunks."""

    buffer: str
    offset: int

    def behind(self, chunks: int) -> Slot:
        """Return the place so many chunks behind this one."""
        return Slot(self.buffer, self.offset + chunks)


class Origin(NamedTuple):
    """Where a transfer comes from: a phase of the schedule, a tree of it, a copy of both.

    A tree's chunks may travel in segments, one after the other; `segment` is their place.
    In a timed schedule `tree` is the chunk (the first of several), whose way through the
    phase it identifies. It is -1 for local copies that no schedule asked for.
    """

    phase: int
    direction: Direction
    tree: int
    instance: int = 0
    segment: int = 0


class Transfer(Struct, frozen=True, gc=False):
    """Move `count` adjacent chunks from one rank to another, or within one rank.

    Parameters
    ----------
    source, target : int
        Ranks; equal for a local copy or a local reduction.
    chunk : int
        First chunk, numbered as :mod:`colsynth.model.timed` says with `ChunkProgram.chunks`
        to a message; the next `count - 1` follow it.
    count : int
        Number of adjacent chunks.
    reduces : bool
        Whether the target adds what arrives to what it has.
    after : tuple of int
        Indices of the transfers into `source` that must be complete before this one
        may be sent (for a local one: before it may run).
    origin : Origin
    read : Slot or None
        First slot read, on `source`. None until slots are placed.
    write : Slot or None
        First slot written, on `target`. None until slots are placed.
    operand : Slot or None
        Where `reduces`, the slot on `target` that is added to what arrives.
    """

    source: int
    target: int
    chunk: int
    count: int
    reduces: bool
    after: tuple[int, ...]
    origin: Origin
    read: Slot | None = None
    write: Slot | None = None
    operand: Slot | None = None

    @property
    def is_local(self) -> bool:
        """Whether no connection is involved."""
        return self.source == self.target


class Ordering(Enum):
    """How much the order of a program's transfers means.

    ``FREE``: it is one of the orders that respect `Transfer.after`. ``FIXED``: it is a decision
    of the schedule, which later passes keep. ``LOCKSTEP``: it is fixed, and all chains advance
    level by level, as rings do, so a relay may share a step with its arrival although other
    transfers come between them.
    """

    FREE = "free"
    FIXED = "fixed"
    LOCKSTEP = "lockstep"


@dataclass(frozen=True, slots=True)
class ChunkProgram:
    """Transfers in an order in which every one comes after those it needs.

    Parameters
    ----------
    problem : Problem
    chunks : int
        Chunks of a message (``nchunksperloop``): of every buffer that holds a whole one.
        Every rank of an alltoall sends a message of its own, so chunk numbers go up to
        this times the ranks there, to this elsewhere.
    transfers : tuple of Transfer
        `Transfer.after` holds indices into this tuple, all smaller than its own.
    scratch : tuple of int
        Chunks of scratch per rank; empty until slots are placed.
    ordering : Ordering
        What the order of the transfers means to later passes.
    """

    problem: Problem
    chunks: int
    transfers: tuple[Transfer, ...]
    scratch: tuple[int, ...] = ()
    ordering: Ordering = Ordering.FREE

    @property
    def ordered(self) -> bool:
        """Whether later passes keep the order of the transfers."""
        return self.ordering is not Ordering.FREE
