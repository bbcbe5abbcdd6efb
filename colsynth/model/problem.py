"""What is asked for: a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from colsynth.model.topology import Topology


class Collective(StrEnum):
    """Collectives, by the name the command line uses."""

    ALLGATHER = "allgather"
    REDUCE_SCATTER = "reduce-scatter"
    ALLREDUCE = "allreduce"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALLTOALL = "alltoall"

    @property
    def rooted(self) -> bool:
        """Whether one rank is the root."""
        return self in (Collective.BROADCAST, Collective.REDUCE)


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
class Problem:
    """A collective on a topology.

    Parameters
    ----------
    topology : Topology
    collective : Collective
    root : int or None
        A rank for broadcast and reduce, None otherwise.
    """

    topology: Topology
    collective: Collective
    root: int | None = None

    @property
    def roots(self) -> tuple[int, ...]:
        """The ranks that trees are rooted at."""
        return tuple(range(self.topology.size)) if self.root is None else (self.root,)
