"""What is asked for: a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from colsynth.model.sketch import Sketch
from colsynth.model.topology import Topology


class Collective(StrEnum):
    """Collectives, by the name the command line uses."""

    ALLGATHER = "allgather"
    REDUCE_SCATTER = "reduce-scatter"
    ALLREDUCE = "allreduce"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALLTOALL = "alltoall"
    SCATTER = "scatter"
    GATHER = "gather"
    CUSTOM = "custom"

    @property
    def rooted(self) -> bool:
        """Whether one rank is the root."""
        return self in _ROOTED


_ROOTED = (Collective.BROADCAST, Collective.REDUCE, Collective.SCATTER, Collective.GATHER)


class Direction(StrEnum):
    """How a phase walks its trees: IN reduces towards roots, OUT copies from them."""

    IN = "in"
    OUT = "out"


PHASES: dict[Collective, tuple[Direction, ...]] = {
    Collective.ALLGATHER: (Direction.OUT,),
    Collective.BROADCAST: (Direction.OUT,),
    Collective.REDUCE_SCATTER: (Direction.IN,),
    Collective.REDUCE: (Direction.IN,),
    Collective.ALLREDUCE: (Direction.IN, Direction.OUT),
}
"""The phases of each collective that trees can serve, in order."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Chunks with the same condition before and after.

    Parameters
    ----------
    holders : tuple of int
        Ranks that hold the chunks at first, ascending. Where `reduces`, each holds a
        contribution of its own; otherwise all hold the same.
    wanted : tuple of int
        Ranks that must hold them (the sum of all contributions) at the end, ascending.
        One rank where `reduces`.
    count : int
        Number of chunks, one or more.
    reduces : bool
    """

    holders: tuple[int, ...]
    wanted: tuple[int, ...]
    count: int = 1
    reduces: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A collective on a topology.

    Parameters
    ----------
    topology : Topology
    collective : Collective
    root : int or None
        A rank for broadcast, reduce, scatter and gather, None otherwise. In every group
        it is the member at this place. None also where a broadcast or reduce has several
        roots, those with shards.
    groups : tuple of tuple of int
        Process groups that run the collective at the same time, each by its ranks in
        order; no rank is in two. Empty: all ranks are one group.
    transit : bool
        Whether GPUs outside a group, in another one or in none, may pass its chunks on.
    demands : tuple of Demand
        What a custom collective asks for; empty otherwise.
    shards : tuple of int
        By rank, how much it contributes to an allgather or gets of a reduce-scatter, or
        which part of a broadcast or reduce it is the root of, relative to others; zero or
        more, without a common divisor, zero outside groups. Empty: all the same.
    sketch : Sketch or None
        What timed schedules must keep to beside the topology.
    """

    topology: Topology
    collective: Collective
    root: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    transit: bool = False
    demands: tuple[Demand, ...] = ()
    shards: tuple[int, ...] = ()
    sketch: Sketch | None = None

    @property
    def roots(self) -> tuple[int, ...]:
        """The ranks that trees are rooted at, group after group."""
        if self.root is None:
            return tuple(rank for group in self.members for rank in group)
        return tuple(group[self.root] for group in self.members)

    @property
    def weights(self) -> tuple[int, ...]:
        """The part of the message that each of `roots` is root of, relative to others."""
        if self.shards:
            return tuple(self.shards[rank] for rank in self.roots)
        return (1,) * len(self.roots)

    @property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of every group."""
        return self.groups or (tuple(range(self.topology.size)),)

    @property
    def has_several_roots(self) -> bool:
        """Whether a collective that is made for one root has more."""
        return self.collective.rooted and self.root is None
