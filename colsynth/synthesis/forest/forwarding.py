"""What switches can forward: part of the links, as much of it into each switch as out of it.

Cuts let a switch multiply what it receives, or swallow it. A switch that forwards sends each
unit it receives on one link, so the links of any forest hold it with every switch balanced;
and capacities that balance every switch lose nothing when switches are split off (Bang-Jensen,
Frank, Jackson 1995). So the best rate of trees is a linear program: the most that some
balanced part of the capacities holds, cuts added while one is violated. Where ingress equals
egress at every switch that is the cut bound; elsewhere it may be less.

Whole trees are a mixed-integer program over capacities floor(b / y), tried from the least
1 / y on, which grows where some link comes to hold one tree more. Solvers work in doubles:
what they propose is packed, and the certificate of the forest adds it up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from colsynth.bounds.allreduce.halves import Halves, Side
from colsynth.bounds.allreduce.program import Floats, RootProgram
from colsynth.bounds.network import Ints, Network, common_divisor, network_of
from colsynth.bounds.trees import phases_of
from colsynth.model import Direction, Kind, Problem, Topology
from colsynth.synthesis.whole_numbers import next_scale, whole_solution

_MOST_WORK = 2_000_000
"""GPUs times links up to which the programs are solved: each round sends a flow into every GPU.
On 64 DGX A100 boxes with a twentieth of the links damaged one way (512 GPUs, 1.5 million) they
take 3 s of the 13 s that packing takes."""
MOST_OPTIMAL = 2**12
"""Trees per root up to which the optimum is sought in whole trees."""
_MOST_STEPS = 12
"""Values of 1 / y tried for one number of trees."""
_LARGEST = 2**30
"""Trees on a link up to which the solver's numbers are trusted."""
_FINEST = 10**6
"""Largest denominator that the solver's rate is taken for, in parts of the widest link."""


def is_lopsided(topology: Topology) -> bool:
    """Whether some switch has more ingress than egress, or the reverse."""
    left = dict.fromkeys(range(len(topology.nodes)), Fraction(0))
    for link in topology.links:
        left[link.source] -= link.bandwidth
        left[link.target] += link.bandwidth
    return any(left[i] for i, node in enumerate(topology.nodes) if node.kind is not Kind.GPU)


@dataclass(frozen=True, eq=False)
class Forwarded:
    """Capacities that balance every switch and hold the trees.

    Parameters
    ----------
    units : int64 (m,)
        Trees per link.
    unit_bandwidth : Fraction
        Bytes per second of one tree.
    """

    units: Ints
    unit_bandwidth: Fraction


class Forwarding:
    """The programs for one phase; cuts found once serve all numbers of trees.

    Attributes
    ----------
    network : Network
    parts : int
        Weight of all its roots.
    """

    def __init__(self, topology: Topology, network: Network, direction: Direction) -> None:
        nodes = enumerate(topology.nodes)
        forwards = [i for i, node in nodes if node.kind is not Kind.GPU]
        side = Side(direction, network, np.array(forwards, np.int64))
        # One half alone shares its links with no other: each link is its own partner.
        self._halves = Halves((side,), np.arange(len(network.tail)))
        self.network = network
        self.parts = int(network.weight.sum())

    @cached_property
    def rate(self) -> Fraction:
        """The best rate per unit of root weight, bytes/s; 0 where switches reach not every GPU.

        As the solver has it, taken for the nearest short fraction.
        """
        widest = max(self.network.capacity)
        capacity = np.array([float(c / widest) for c in self.network.capacity])
        found = self._program(capacity, whole=False).solve()
        if found is None:
            return Fraction(0)
        share = float(found.shares.sum()) / self.parts
        return Fraction(share).limit_denominator(_FINEST) * widest

    @property
    def trees(self) -> int:
        """The trees per root at which the rate leaves no fraction of a tree on any link, or 0."""
        if not self.rate:
            return 0
        return int(self.rate / common_divisor((*self.network.capacity, self.rate)))

    def fit(self, trees: int, most: Fraction) -> Forwarded | None:
        """Return the fastest capacities found for `trees` trees per root.

        Parameters
        ----------
        trees : int
        most : Fraction
            Bytes per second of one tree that cuts allow.
        """
        if not self.rate or max(self.network.capacity) / most > _LARGEST:
            return None
        rates = sorted(set(self.network.capacity))
        count = trees * self.parts
        scale = max(trees / self.rate, 1 / most)
        for _ in range(_MOST_STEPS):
            held = np.array([float(int(c * scale)) for c in self.network.capacity])
            level = np.zeros(self.network.size)
            found = whole_solution(self._fractions, self._numbers, held, count, level)
            if found is not None:
                units = np.rint(np.minimum(found.used[0], held)).astype(np.int64)
                return Forwarded(units, 1 / scale)
            scale = next_scale(rates, scale)
        return None

    @cached_property
    def _fractions(self) -> RootProgram:
        return self._program(np.zeros(len(self.network.tail)), whole=False)

    @cached_property
    def _numbers(self) -> RootProgram:
        return self._program(np.zeros(len(self.network.tail)), whole=True)

    def _program(self, capacity: Floats, *, whole: bool) -> RootProgram:
        program = RootProgram(self._halves, capacity, whole=whole)
        program.share_out(self.network.weight)
        return program


def forwarding_of(problem: Problem, direction: Direction) -> Forwarding | None:
    """Return the programs of a phase; None where they are too large."""
    if problem.topology.size * len(problem.topology.links) > _MOST_WORK:
        return None
    return Forwarding(problem.topology, network_of(problem, direction), direction)


def forwardings(problem: Problem) -> tuple[Forwarding, ...]:
    """Return the programs of all phases, one where it stands for both; none if too large."""
    ways = phases_of(problem)
    found = (
        forwarding_of(problem, way) for way in ways[: 1 if problem.topology.is_symmetric else 2]
    )
    return tuple(item for item in found if item is not None)


def counts_forwarded(problem: Problem) -> tuple[int, ...]:
    """Return the trees per root that reach the best that switches can forward, if not too many."""
    found = forwardings(problem)
    whole = lcm(*(phase.trees for phase in found))
    return (whole,) if found and 0 < whole <= MOST_OPTIMAL else ()
