"""Eager broadcast along shortest paths (BFB): steps, time by step, congestion; all exact.

A GPU receives everything of a root at distance t in step t, from any neighbours one step nearer.
Receivers and steps do not depend on each other, so each has an optimum of its own
(`kernels/shortest.py`). Reduce-scatter is the same on the transpose.

Source: Zhao et al., arXiv 2202.03356. No synchronous schedule that sends everything by shortest
paths at the first opportunity is faster.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from colsynth.bounds.direct import Fabric, fabric_of
from colsynth.bounds.trees import phases_of
from colsynth.kernels.shortest import step_loads
from colsynth.model import Direction, Problem
from colsynth.model.steps import StepBound, StepLoad, StepPhase
from colsynth.topology.graphs.moore import moore_steps


def step_bound(problem: Problem) -> StepBound:
    """Return steps and times of eager broadcast, with the links that prove them.

    Raises
    ------
    InputError
        As `fabric_of`; CS301 where numbers do not fit 64 bits.
    """
    topology, directions = problem.topology, phases_of(problem)
    fabrics = [fabric_of(problem, direction) for direction in directions]
    pairs = zip(directions, fabrics, strict=True)
    phases = tuple(_phase(direction, fabric) for direction, fabric in pairs)
    fabric = fabrics[0]
    rates = np.add.reduceat(np.array(fabric.bandwidth, object), fabric.first[:-1])
    leaving: list[Fraction] = [Fraction(0)] * fabric.size
    for tail, bandwidth in zip(fabric.tail.tolist(), fabric.bandwidth, strict=True):
        leaving[tail] += bandwidth
    injection = max(*rates, *leaving)
    ports = int(injection / min(fabric.bandwidth))
    moore = moore_steps(topology.size, ports, duplex=topology.is_symmetric)
    return StepBound(sum(problem.weights), ports, injection, moore, phases)


def _phase(direction: Direction, fabric: Fabric) -> StepPhase:
    every = np.arange(fabric.size)
    found = step_loads(
        fabric.first, fabric.tail, fabric.capacity, fabric.distance, every, every, fabric.weight
    )
    outward = direction is Direction.OUT
    together, *steps = (_load(fabric, row, outward=outward) for row in found.tolist())
    return StepPhase(direction, tuple(steps), together)


def _load(fabric: Fabric, row: list[int], *, outward: bool) -> StepLoad:
    parts, capacity, rank, arcs = row
    entering = range(int(fabric.first[rank]), int(fabric.first[rank + 1]))
    routes = [fabric.routes[arc] for bit, arc in enumerate(entering) if arcs >> bit & 1]
    links = sorted(route[-1 if outward else 0] for route in routes)
    return StepLoad(rank, tuple(links), parts, capacity * fabric.unit)
