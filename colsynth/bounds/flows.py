"""Bounds of collectives that give every pair of GPUs data of its own."""

from __future__ import annotations

from colsynth.bounds.alltoall import alltoall_bound
from colsynth.bounds.one_root import root_bound
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective, FlowBound, Problem


def flow_bound(problem: Problem) -> FlowBound:
    """Return the least bound found on the bandwidth of an alltoall, scatter or gather.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302).
    InputError
        There is one GPU (CS117), there are process groups (CS306), or bandwidths do not
        fit 64 bits (CS301).
    """
    if problem.topology.size < 2:
        raise InputError(Diagnostic("CS117", "a collective needs two GPUs or more"))
    if problem.groups:
        advice = "'colsynth synthesize' prints a bound on time beside its schedule"
        phrase = f"bandwidth bounds of {problem.collective} are for all GPUs, not for groups"
        raise InputError(Diagnostic("CS306", phrase, help=advice))
    if problem.collective is Collective.ALLTOALL:
        return alltoall_bound(problem)
    return root_bound(problem)
