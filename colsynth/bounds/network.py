"""A topology as integer arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InfeasibleError, InputError
from colsynth.model import Direction, Problem, Topology
from colsynth.text import listed

Ints = NDArray[np.int64]

_LIMIT = 2**62


@dataclass(frozen=True)
class Network:
    """A digraph with exact capacities, and which of its nodes are GPUs and roots.

    Parameters
    ----------
    size : int
        Number of nodes.
    tail, head : int64 (m,)
    capacity : tuple of Fraction
        Per arc.
    gpus : int64 (N,)
        Node of each rank.
    weight : int64 (size,)
        Weight of each node as a root.
    """

    size: int
    tail: Ints
    head: Ints
    capacity: tuple[Fraction, ...]
    gpus: Ints
    weight: Ints

    @cached_property
    def unit(self) -> Fraction:
        """Greatest common divisor of the capacities."""
        return common_divisor(self.capacity)

    @cached_property
    def integers(self) -> Ints:
        """Capacities in multiples of `unit`."""
        scaled = {c: int(c / self.unit) for c in set(self.capacity)}  # few differ
        return to_int64([scaled[c] for c in self.capacity], "link bandwidths")

    @property
    def roots(self) -> Ints:
        """Nodes with a weight, ascending."""
        return np.nonzero(self.weight)[0]


def common_divisor(values: Any) -> Fraction:
    """Return the greatest Fraction of which every value is an integer multiple."""
    fractions = {Fraction(v) for v in set(values)}
    bottom = lcm(*(v.denominator for v in fractions))
    return Fraction(gcd(*(int(v * bottom) for v in fractions)), bottom)


def to_int64(values: list[int], what: str) -> Ints:
    """Return an int64 array; refuse, by name, values the kernels cannot add up exactly."""
    if sum(values) >= _LIMIT:
        least = min(filter(None, values))
        raise InputError(
            Diagnostic(
                "CS301",
                f"{what} do not fit exact 64-bit arithmetic",
                notes=(
                    f"in their common unit they add up to {sum(values)}",
                    f"the largest is 10^{len(str(max(values) // least)) - 1} times the smallest",
                ),
                help="round the bandwidths so that they share a larger common divisor",
            )
        )
    return np.array(values, dtype=np.int64)


def network_of(problem: Problem, direction: Direction) -> Network:
    """Return the network that trees of one phase grow in, outwards from the roots."""
    topology = problem.topology
    forward = direction is Direction.OUT
    ends = [x.ends if forward else (x.target, x.source) for x in topology.links]
    weight = np.zeros(len(topology.nodes), np.int64)
    for rank, part in zip(problem.roots, problem.weights, strict=True):
        weight[topology.ranks[rank]] = part
    return Network(
        size=len(topology.nodes),
        tail=np.array([a for a, _ in ends], np.int64),
        head=np.array([b for _, b in ends], np.int64),
        capacity=tuple(link.bandwidth for link in topology.links),
        gpus=np.array(topology.ranks, np.int64),
        weight=weight,
    )


def refuse_unreachable(topology: Topology, inside: NDArray[np.bool_], forward: bool) -> None:
    """Raise InfeasibleError naming GPUs on both sides of an empty cut."""
    names = topology.gpu_names
    within = [name for name, node in zip(names, topology.ranks, strict=True) if inside[node]]
    without = [name for name in names if name not in set(within)]
    first, second = (within, without) if forward else (without, within)
    raise InfeasibleError(
        Diagnostic(
            "CS302",
            f"no data can pass from {first[0]} to {second[0]}",
            notes=(f"no link leads out of the set {listed(first)}",),
            help="add the missing links, or leave the unreachable GPUs out",
        )
    )


def refuse_pair(topology: Topology, source: int, target: int) -> None:
    """Raise InfeasibleError: no path leads from one rank to another."""
    names = topology.gpu_names
    raise InfeasibleError(
        Diagnostic(
            "CS302",
            f"no data can pass from {names[source]} to {names[target]}",
            help="add the missing links, or leave the unreachable GPUs out",
        )
    )


def refuse_unforwarded(topology: Topology, inside: NDArray[np.bool_]) -> None:
    """Raise InfeasibleError: switches without multicast cannot reach every GPU."""
    missed = [topology.nodes[node].name for node in topology.ranks if not inside[node]]
    raise InfeasibleError(
        Diagnostic(
            "CS305",
            f"switches cannot forward enough to reach {listed(missed)}",
            notes=("a switch sends each unit it receives on one link only",),
            help="give the switches on the way as much ingress as egress",
        )
    )
