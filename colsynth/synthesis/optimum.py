"""The best that any schedule of a problem can do, by whichever theorem serves its collective."""

from __future__ import annotations

from colsynth.model import AllreduceBound, Bound, Collective, FlowBound, Problem

_OF_FLOWS = (Collective.ALLTOALL, Collective.SCATTER, Collective.GATHER)


def optimum(problem: Problem) -> Bound | FlowBound:
    """Return the proven optimum of a problem, with the cuts that prove it.

    Raises
    ------
    InfeasibleError
        No data can pass between some two GPUs.
    InputError
        No bound is known for such a problem, or its numbers do not fit 64 bits.
    """
    if problem.collective in _OF_FLOWS:
        from colsynth.synthesis.flow_bound import flow_bound

        return flow_bound(problem)
    from colsynth.synthesis.bound import bound

    return bound(problem)


def best_optimum(problem: Problem) -> Bound | FlowBound | AllreduceBound:
    """Return the optimum that compilations aim at: an allreduce may choose its roots.

    Raises
    ------
    InfeasibleError, InputError
        As `optimum`.
    """
    if problem.collective is Collective.ALLREDUCE and not problem.groups:
        from colsynth.synthesis.allreduce.rooted import allreduce_bound

        return allreduce_bound(problem)
    return optimum(problem)
