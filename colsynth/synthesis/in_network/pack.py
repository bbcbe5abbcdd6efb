"""The forest in the network of a problem without process groups."""

from __future__ import annotations

from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import Collective, Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.in_network.both_ways import allreduce_forest
from colsynth.synthesis.in_network.one_way import one_way_forest


def forest_in_network(problem: Problem, trees: str, target: Target) -> Forest | None:
    """Return trees that branch at switches, or join at them; None where none can.

    Parameters
    ----------
    problem : Problem
    trees : str
        As in `PackInNetwork`.
    target : Target
        Told of progress.
    """
    if problem.collective is not Collective.ALLREDUCE:
        return one_way_forest(problem, trees, target)
    target.progress("sharing out roots", 0, 2)
    return allreduce_forest(problem, allreduce_bound(problem), trees)


def nothing_found(problem: Problem) -> InfeasibleError:
    """Return the error where there is no such forest (CS324)."""
    phrase = f"no {problem.collective} in the network was found on {problem.topology.name}"
    note = "it takes switches that multicast outwards and reduce inwards"
    advice = "give switches capabilities, or take -a forest"
    return InfeasibleError(Diagnostic("CS324", phrase, notes=(note,), help=advice))
