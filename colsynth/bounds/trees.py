"""The proven optimum of a collective: a cut for every phase.

Allgather: time = (M/N) max over cuts S of |S and GPUs| / B+(S), S leaving out at least
one GPU (ForestColl, arXiv 2402.06787); reduce-scatter is the same on the reversed graph,
broadcast and reduce have weight on the root only (Edmonds 1972), and allreduce is taken
as reduce-scatter followed by allgather.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.cuts import cut_of
from colsynth.bounds.network import (
    Network,
    common_divisor,
    network_of,
    refuse_unreachable,
    to_int64,
)
from colsynth.errors import Diagnostic, InputError
from colsynth.kernels.cuts import smallest_cut_ratio
from colsynth.model import Bound, Direction, Problem
from colsynth.model.problem import PHASES


def phases_of(problem: Problem) -> tuple[Direction, ...]:
    """Return the tree phases of a problem; refuse what trees cannot serve."""
    if problem.topology.size < 2:
        raise InputError(Diagnostic("CS117", "a collective needs two GPUs or more"))
    if problem.collective not in PHASES:
        raise _unserved(f"{problem.collective}", f"they serve {', '.join(PHASES)}")
    if problem.groups:
        raise _unserved("process groups", "every tree reaches all GPUs of the topology")
    return PHASES[problem.collective]


def _unserved(what: str, note: str) -> InputError:
    advice = "'-a ten' does, and so does 'colsynth synthesize'"
    return InputError(Diagnostic("CS303", f"trees cannot serve {what}", notes=(note,), help=advice))


def least_ratio(network: Network) -> tuple[Fraction, NDArray[np.bool_]]:
    """Return the best rate per unit of root weight (bytes/s), and a cut that proves it."""
    roots = int(network.weight.sum())
    to_int64([int(c) * roots for c in network.integers], "link bandwidths times roots")
    p, q, inside = smallest_cut_ratio(
        network.size,
        network.tail,
        network.head,
        network.integers,
        network.gpus,
        network.weight,
    )
    return Fraction(int(p), int(q)) * network.unit, inside


def bound(problem: Problem) -> Bound:
    """Return the optimum of a problem with the cuts that prove it.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302); both sides are named.
    InputError
        There is one GPU (CS117), the collective has no tree phases (CS303), or bandwidths do
        not fit 64 bits (CS301).
    """
    directions = phases_of(problem)
    if problem.topology.is_symmetric:
        parts = [_phase_bound(problem, directions[0])] * len(directions)
    else:
        parts = [_phase_bound(problem, direction) for direction in directions]
    rates = tuple(part[0] for part in parts)
    cuts = tuple(
        cut_of(problem.topology, direction, part[2])
        for direction, part in zip(directions, parts, strict=True)
    )
    return Bound(
        algbw=1 / sum((1 / rate for rate in rates), Fraction(0)),
        trees_per_root=lcm(*(part[1] for part in parts)),
        cuts=cuts,
        rates=rates,
    )


def _phase_bound(problem: Problem, direction: Direction) -> tuple[Fraction, int, NDArray[np.bool_]]:
    """Return (algbw, trees per root, cut) of one phase."""
    network = network_of(problem, direction)
    rate, inside = least_ratio(network)
    if rate == 0:
        refuse_unreachable(problem.topology, inside, direction is Direction.OUT)
    trees = rate / common_divisor((*network.capacity, rate))
    return rate * sum(problem.weights), int(trees), inside
