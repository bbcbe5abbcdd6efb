"""The proven optimum of scatter and gather: what one GPU can give to, or take from, all.

All data starts at the root, so any mixture of it is one flow: every GPU can have its
part at rate r exactly if no cut around the root has less than r for each GPU beyond it
(max-flow min-cut). The least ratio is found by Newton's method on violated cuts, each
from a single maximum flow; gather is the same on the reversed graph.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.cuts import cut_of
from colsynth.bounds.network import Network, network_of, refuse_unreachable, to_int64
from colsynth.kernels.maxflow import max_flow, reset, residual_index, source_side
from colsynth.model import Collective, Direction, FlowBound, Problem


def root_bound(problem: Problem) -> FlowBound:
    """Return the optimum of a scatter or gather with the cut that proves it.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302).
    InputError
        Bandwidths do not fit 64 bits (CS301).
    """
    topology = problem.topology
    outwards = problem.collective is Collective.SCATTER
    direction = Direction.OUT if outwards else Direction.IN
    network = network_of(problem, direction)
    ratio, inside = _least_ratio(network)
    if ratio == 0:
        refuse_unreachable(topology, inside, outwards)
    algbw = topology.size * ratio * network.unit
    return FlowBound(
        algbw=algbw,
        cut=cut_of(topology, direction, inside),
        cut_algbw=algbw,
        prices=(),
        reached=None,
        exact=True,
    )


def _least_ratio(network: Network) -> tuple[Fraction, NDArray[np.bool_]]:
    """Return the least capacity per GPU beyond a cut around the root, and the cut."""
    root = int(network.roots[0])
    others = network.gpus[network.gpus != root]
    capacity = network.integers
    to_int64([int(c) * len(others) for c in capacity], "link bandwidths times GPUs")
    sink = network.size
    tail = np.concatenate((network.tail, others))
    head = np.concatenate((network.head, np.full(len(others), sink)))
    first, arcs, to = residual_index(network.size + 1, tail, head)
    residual = np.empty(2 * len(tail), np.int64)
    inside = np.arange(network.size) == root
    while True:
        crosses = inside[network.tail] & ~inside[network.head]
        ratio = Fraction(int(capacity[crosses].sum()), int((~inside[others]).sum()))
        p, q = ratio.numerator, ratio.denominator
        if p == 0:
            return ratio, inside
        reset(residual, np.concatenate((capacity * q, np.full(len(others), p))))
        flow = max_flow(first, arcs, to, residual, root, sink, p * len(others))
        if flow == p * len(others):
            return ratio, inside
        inside = source_side(first, arcs, to, residual, root)[: network.size]
