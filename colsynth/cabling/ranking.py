"""Which fabric for which message size: time = steps x latency + time by bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from colsynth.cabling.figures import Figures


@dataclass(frozen=True)
class Job:
    """What runs on the fabric.

    Parameters
    ----------
    collective : str
        ``"allgather"``, ``"reduce-scatter"`` or ``"allreduce"``.
    sizes : tuple of int
        Bytes of the messages.
    weights : tuple of Fraction
        Of each size, above zero.
    bandwidth : Fraction
        Of a port, bytes per second in one direction.
    latency : Fraction
        Of a step, seconds.
    """

    collective: str
    sizes: tuple[int, ...]
    weights: tuple[Fraction, ...]
    bandwidth: Fraction
    latency: Fraction

    @property
    def phases(self) -> int:
        """Two for an allreduce: a reduce-scatter, then an allgather."""
        return 2 if self.collective == "allreduce" else 1

    def time(self, found: Figures) -> Fraction:
        """Return T_B of the collective, in units of the message over the bandwidth of a GPU."""
        return {
            "allgather": found.gather,
            "reduce-scatter": found.scatter,
            "allreduce": found.gather + found.scatter,
        }[self.collective]

    def seconds(self, found: Figures, size: int) -> Fraction:
        """Return the time of a message, one step after the other."""
        moved = self.time(found) * size / (found.ports * self.bandwidth)
        return self.phases * found.steps * self.latency + moved


@dataclass(frozen=True)
class Ranking:
    """Fabrics beside each other.

    Parameters
    ----------
    job : Job
    fabrics : tuple of Figures
        The Pareto front by steps.
    winners : tuple of int
        For every size, the place of the fastest fabric.
    overall : int
        Place of the one with the least weighted mean of time over the fastest time.
    losses : tuple of float
        For every fabric, that mean minus one.
    """

    job: Job
    fabrics: tuple[Figures, ...]
    winners: tuple[int, ...]
    overall: int
    losses: tuple[float, ...]


def rank(job: Job, fabrics: Sequence[Figures]) -> Ranking:
    """Return the fabrics with the winner of every size, and the best for all of them."""
    rows = [[job.seconds(found, size) for size in job.sizes] for found in fabrics]
    places = range(len(fabrics))
    winners = [min(places, key=lambda i: (rows[i][k], i)) for k in range(len(job.sizes))]
    whole = sum(job.weights, Fraction(0))
    losses = [
        sum(
            (w * row[k] / rows[winners[k]][k] for k, w in enumerate(job.weights)),
            Fraction(0),
        )
        / whole
        - 1
        for row in rows
    ]
    overall = min(places, key=lambda i: (losses[i], i))
    return Ranking(job, tuple(fabrics), tuple(winners), overall, tuple(map(float, losses)))
