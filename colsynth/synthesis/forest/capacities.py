"""Capacities that whole trees fit into and every switch can forward, and the arcs they leave.

Cuts say how many trees links can hold; switches with more ingress than egress, or the reverse,
may forward less. Then programs choose capacities that every switch forwards, and where those
are too large or give up, capacities are cut finer and what survives is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from colsynth.bounds.network import (
    Ints,
    Network,
    refuse_unforwarded,
    to_int64,
)
from colsynth.bounds.trees import least_ratio
from colsynth.model import Direction, Problem, Topology
from colsynth.synthesis.forest.forwarding import forwarding_of
from colsynth.synthesis.forest.grid import Grid
from colsynth.synthesis.forest.rate import Rate, fixed_rate
from colsynth.synthesis.forest.routes import Arc
from colsynth.synthesis.forest.switches import remove_switches

_REFINEMENT = 16
"""How much finer capacities are cut where switches cannot forward all that enters."""

_PRECISION = 2**12
"""Part of the demand up to which the largest one served is sought there."""


def fitted(
    problem: Problem,
    network: Network,
    direction: Direction,
    trees: int,
    rate: Fraction,
    grid: Grid = (),
) -> tuple[Fraction, tuple[Arc, ...]]:
    """Return (bandwidth of a unit, logical arcs) that hold `trees` trees per root.

    Parameters
    ----------
    problem : Problem
    network : Network
        Of the phase.
    direction : Direction
    trees : int
    rate : Fraction
        The optimum per unit of root weight, bytes/s.
    grid : tuple of int
        As of `remove_switches`, where switches lose nothing.
    """
    found = fixed_rate(network, trees, rate)
    arcs, deficit = remove_switches(problem.topology, network, found.units, trees, grid)
    if not deficit:
        return found.unit_bandwidth, arcs
    balanced = _balanced(problem, network, direction, trees, found.unit_bandwidth)
    return balanced or _refined(problem.topology, network, found, trees, rate)


def _balanced(
    problem: Problem, network: Network, direction: Direction, trees: int, most: Fraction
) -> tuple[Fraction, tuple[Arc, ...]] | None:
    """Return (bandwidth of a unit, arcs) of capacities that every switch can forward.

    None where the programs that choose them are too large or give up.
    """
    forwarding = forwarding_of(problem, direction)
    found = forwarding and forwarding.fit(trees, most)
    if not found:
        return None
    arcs, deficit = remove_switches(problem.topology, network, found.units, trees)
    return None if deficit else (found.unit_bandwidth, arcs)


def _refined(
    topology: Topology, network: Network, found: Rate, trees: int, rate: Fraction
) -> tuple[Fraction, tuple[Arc, ...]]:
    """Return (bandwidth of a unit, arcs) of what is left of capacities that are cut finer."""
    whole = Rate(network.integers, network.unit)
    return max(
        _forwarded(topology, network, found, trees, trees),
        _forwarded(topology, network, whole, int(rate / network.unit), trees),
        key=lambda fitted: fitted[0],
    )


def _forwarded(
    topology: Topology, network: Network, base: Rate, demand: int, trees: int
) -> tuple[Fraction, tuple[Arc, ...]]:
    """Return (bandwidth of a unit, arcs) where switches lose some of what cuts allow.

    Capacities that were rounded down to trees, as `base` may be, and switches with more
    ingress than egress or the reverse cannot always forward what the cuts allow. So
    capacities are cut finer, the largest `demand` per root is sought that survives the
    removal of switches, and the trees are fitted to the logical arcs that it leaves.
    """
    finer = [int(units) * _REFINEMENT for units in base.units]
    units = to_int64(finer, "capacities in parts of trees")
    arcs = _largest_served(topology, network, units, demand * _REFINEMENT)
    arcs, scale = _refitted(topology, network, arcs, trees)
    return base.unit_bandwidth / (_REFINEMENT * scale), arcs


def _largest_served(
    topology: Topology, network: Network, units: Ints, most: int
) -> tuple[Arc, ...]:
    """Return the logical arcs of about the largest demand up to `most` that they serve."""
    low, middle, high = 0, most, most + 1
    best: tuple[Arc, ...] = ()
    while high - low > max(1, high // _PRECISION):
        arcs, deficit = remove_switches(topology, network, units, middle)
        if deficit:
            high = middle
        else:
            low, best = middle, arcs
        middle = (low + high) // 2
    return best or remove_switches(topology, network, units, 1)[0]


def _refitted(
    topology: Topology, network: Network, arcs: Sequence[Arc], trees: int
) -> tuple[tuple[Arc, ...], Fraction]:
    """Return the arcs with capacities that hold the trees, and how much finer they are."""
    logical = Network(
        size=network.size,
        tail=np.array([arc.tail for arc in arcs], np.int64),
        head=np.array([arc.head for arc in arcs], np.int64),
        capacity=tuple(Fraction(arc.units) for arc in arcs),
        gpus=network.gpus,
        weight=network.weight,
    )
    rate, inside = least_ratio(logical)
    if rate == 0:
        refuse_unforwarded(topology, inside)
    fitted: Rate = fixed_rate(logical, trees, rate)
    refined = (a._replace(units=int(u)) for a, u in zip(arcs, fitted.units, strict=True))
    return tuple(arc for arc in refined if arc.units), 1 / fitted.unit_bandwidth
