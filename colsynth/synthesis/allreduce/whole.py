"""Whole trees for free roots: how many each root gets, and which part of links each half.

With K trees in all, each given y bytes/s on its links, a link holds floor(b / y) of them.
The least 1 / y is K over the rate that prices prove; it grows where some link comes to
hold one tree more. At each such step an integer program, its cuts found as in
`bounds.allreduce.program`, says whether the K trees fit. Prices, rounded down with the
capacities, rule out most steps before that. Where K trees fit at the least 1 / y, they reach
the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from colsynth.bounds.allreduce.halves import Halves, halves_of
from colsynth.bounds.allreduce.program import Floats, RootProgram
from colsynth.bounds.allreduce.rooted import prices_of
from colsynth.bounds.network import Ints, common_divisor
from colsynth.bounds.offsets import group_by
from colsynth.kernels.shortest import distances
from colsynth.model import Problem, RootedBound
from colsynth.synthesis.forest.rate import TOLERANCE
from colsynth.synthesis.whole_numbers import next_scale, whole_solution

MOST_TREES = 128
"""Largest number of trees in all that is tried."""
_MOST_OPTIMAL = 4096
"""Trees at which the rate and all bandwidths are whole, up to which they are tried."""
_MOST_STEPS = 12
"""Steps tried for one number of trees."""


@dataclass(frozen=True, eq=False)
class WholeTrees:
    """Whole numbers of trees that fit.

    Parameters
    ----------
    counts : int64 (n,)
        Trees rooted at each node.
    units : tuple of int64 (m,)
        Of every side: trees that each link holds for it.
    unit_bandwidth : Fraction
        Bytes per second of one tree.
    """

    counts: Ints
    units: tuple[Ints, ...]
    unit_bandwidth: Fraction


class WholeSearch:
    """The search for one problem; cuts found once serve all numbers of trees.

    Parameters
    ----------
    problem : Problem
    rooted : RootedBound
        What to come near to.
    halves : Halves, optional
        Those of switches that only forward, unless given.
    """

    def __init__(self, problem: Problem, rooted: RootedBound, halves: Halves | None = None) -> None:
        self._topology, self._rooted = problem.topology, rooted
        self.halves = halves_of(problem) if halves is None else halves
        self._prices, self._least = prices_of(problem, rooted)
        none = np.zeros(len(self._topology.links))
        self._fractions = RootProgram(self.halves, none)
        self._numbers = RootProgram(self.halves, none, whole=True)
        self._depth = _eccentricity(self.halves)

    def choose(self, trees: str, tolerance: Fraction = TOLERANCE) -> WholeTrees | None:
        """Return ``"auto"``, ``"optimal"`` or a number of trees in all; None where not found.

        ``"auto"`` are the fewest within the tolerance.
        """
        if trees == "auto":
            return self.fewest(tolerance)
        if trees != "optimal":
            return self.fit(int(trees))
        unit = common_divisor(
            (*(link.bandwidth for link in self._topology.links), self._rooted.algbw)
        )
        whole = int(self._rooted.algbw / unit)
        found = self.fewest(Fraction(0))
        for times in (1, 2) if found is None and whole <= _MOST_OPTIMAL else ():
            found = found or self.fit(times * whole, Fraction(0))
        return found

    def fewest(self, tolerance: Fraction) -> WholeTrees | None:
        """Return the fewest trees within a tolerance of the bound; None beyond `MOST_TREES`."""
        for count in range(1, MOST_TREES + 1):
            found = self.fit(count, tolerance)
            if found is not None:
                return found
        return None

    def fit(self, count: int, tolerance: Fraction | None = None) -> WholeTrees | None:
        """Return the fastest `count` trees found; None where that misses the tolerance."""
        steps = self._steps(count, Fraction(1) if tolerance is None else tolerance)
        for scale in steps:
            units = np.array([int(x.bandwidth * scale) for x in self._topology.links], np.int64)
            if int((units * self._prices).sum()) < count * self._least:
                continue
            found = whole_solution(
                self._fractions, self._numbers, units.astype(np.float64), count, self._depth
            )
            if found is None:
                continue
            used = tuple(np.rint(x).astype(np.int64) for x in found.used)
            return WholeTrees(np.rint(found.shares).astype(np.int64), used, 1 / scale)
        return None

    def _steps(self, count: int, tolerance: Fraction) -> Iterator[Fraction]:
        """Yield 1 / y from the least on, at which some link comes to hold one tree more."""
        least = count / self._rooted.algbw
        yield least
        rates = sorted({link.bandwidth for link in self._topology.links})
        scale = least
        for _ in range(_MOST_STEPS - 1):
            scale = next_scale(rates, scale)
            if scale > least * (1 + tolerance):
                return
            yield scale


def _eccentricity(halves: Halves) -> Floats:
    """Return the hops from each node to the GPU that is farthest, outwards."""
    network = halves.sides[0].network
    first, order = group_by(network.tail, network.size)
    hops = distances(first, network.head[order], np.arange(network.size))
    return np.asarray(hops.max(axis=1), np.float64)
