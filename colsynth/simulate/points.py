"""What a simulation says: times and bandwidths as nccl-tests defines them."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.model import Collective

_PASSES = {
    Collective.ALLREDUCE: 2,
    Collective.ALLGATHER: 1,
    Collective.REDUCE_SCATTER: 1,
    Collective.ALLTOALL: 1,
    Collective.SCATTER: 1,
    Collective.GATHER: 1,
}
"""How often (n - 1) / n of the message passes each GPU (nccl-tests doc/PERFORMANCE.md)."""


@dataclass(frozen=True, slots=True)
class Point:
    """The time of one message size.

    Parameters
    ----------
    size_bytes : int
        The message as nccl-tests counts it.
    seconds : float
    ranks : int
    collective : Collective
    """

    size_bytes: int
    seconds: float
    ranks: int
    collective: Collective

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth, bytes per second: size over time."""
        return self.size_bytes / self.seconds if self.seconds else 0.0

    @property
    def busbw(self) -> float:
        """Bus bandwidth, bytes per second: comparable with what the hardware carries."""
        return self.algbw * bus_factor(self.collective, self.ranks)


def bus_factor(collective: Collective, ranks: int) -> float:
    """Return busbw over algbw, as nccl-tests defines it."""
    passes = _PASSES.get(collective)
    return 1.0 if passes is None else passes * (ranks - 1) / ranks


@dataclass(frozen=True, slots=True)
class Simulation:
    """The points of one file.

    Parameters
    ----------
    file : str
        Its name, or the name of the program.
    runtime, topology : str
        Their names: who runs it, and where.
    ranks : int
    collective : Collective
    points : tuple of Point
        In the order of the sizes asked for; where a call of one uses the file, with the size of
        that call, as nccl-tests rounds it.
    selected : tuple of bool
        Of every point, whether the runtime selects the file for a message of that size. Where
        it does not the library's own algorithm runs, and the time is not that of such a call.
    """

    file: str
    runtime: str
    topology: str
    ranks: int
    collective: Collective
    points: tuple[Point, ...]
    selected: tuple[bool, ...]
