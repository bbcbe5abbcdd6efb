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
    if problem.collective is Collective.CUSTOM:
        from colsynth.bounds.custom import custom_bound

        return custom_bound(problem)
    if problem.groups:
        from colsynth.bounds.groups.bounds import bound_of_groups, flow_bound_of_group

        of_pairs = problem.collective in _OF_FLOWS
        return flow_bound_of_group(problem) if of_pairs else bound_of_groups(problem)
    if problem.collective in _OF_FLOWS:
        from colsynth.bounds.flows import flow_bound

        return flow_bound(problem)
    from colsynth.bounds.trees import bound

    return bound(problem)


def best_optimum(problem: Problem) -> Bound | FlowBound | AllreduceBound:
    """Return the optimum that compilations aim at: an allreduce may choose its roots.

    Raises
    ------
    InfeasibleError, InputError
        As `optimum`.
    """
    if problem.collective is Collective.ALLREDUCE and len(problem.groups) < 2:
        return allreduce_optimum(problem)
    return optimum(problem)


def allreduce_optimum(problem: Problem) -> AllreduceBound:
    """Return what an allreduce reaches with equal roots, with free ones, and what none beats.

    Raises
    ------
    InfeasibleError, InputError
        As `optimum`; CS321 for another collective, CS303 for several process groups.
    """
    if problem.groups:
        from colsynth.bounds.groups.bounds import allreduce_bound_of_group

        return allreduce_bound_of_group(problem)
    from colsynth.bounds.allreduce.rooted import allreduce_bound

    return allreduce_bound(problem)
