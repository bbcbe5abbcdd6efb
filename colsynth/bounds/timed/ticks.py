"""Seconds to integer ticks: scaled once, exact wherever 64 bits allow it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from colsynth.bounds.network import common_divisor
from colsynth.model import Topology

_MOST_TICKS = 2**40
"""Ticks in the longest single transfer; leaves room for 2**22 of them one after another."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The unit of time of one schedule.

    Parameters
    ----------
    unit : Fraction
        Seconds.
    """

    unit: Fraction

    def at_least(self, seconds: Fraction) -> int:
        """Return the fewest ticks that last `seconds`."""
        return ceil(seconds / self.unit)

    def at_most(self, seconds: Fraction) -> int:
        """Return the most ticks within `seconds`."""
        return floor(seconds / self.unit)


def choose_ticks(topology: Topology, chunk_bytes: Fraction) -> Ticks:
    """Return the unit in which every link's latency and transfer time are whole.

    Where that unit is too fine for 64-bit sums, a coarser one is taken, about a trillionth
    of the slowest transfer; times are then rounded up, which keeps schedules valid.
    """
    times = _times(topology, chunk_bytes)
    if not times:
        return Ticks(Fraction(1))
    return Ticks(max(common_divisor(times), max(times) / _MOST_TICKS))


def _times(topology: Topology, chunk_bytes: Fraction) -> set[Fraction]:
    kinds = link_kinds(topology)[0]
    return {t for bandwidth, latency in kinds for t in (chunk_bytes / bandwidth, latency)} - {
        Fraction(0)
    }


def link_kinds(topology: Topology) -> tuple[list[tuple[Fraction, Fraction]], list[int]]:
    """Return the distinct (bandwidth, latency) of links, and which of them each link has."""
    # Integers are hashed many times faster than fractions.
    known: dict[tuple[int, int, int, int], int] = {}
    kinds: list[tuple[Fraction, Fraction]] = []
    kind_of: list[int] = []
    for link in topology.links:
        bandwidth, latency = link.bandwidth, link.latency
        key = (
            bandwidth.numerator,
            bandwidth.denominator,
            latency.numerator,
            latency.denominator,
        )
        kind_of.append(known.setdefault(key, len(known)))
        if len(known) > len(kinds):
            kinds.append((bandwidth, latency))
    return kinds, kind_of
