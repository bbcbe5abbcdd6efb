"""Kinds of problems: they decide which trees a search begins with, and which it tries too."""

from __future__ import annotations

from colsynth.bounds.runtime import Optimum
from colsynth.model import AllreduceBound, Problem
from colsynth.model.problem import PHASES


def is_fabric(problem: Problem) -> bool:
    """Whether shortest-path trees are worth a search: equal direct links, not between all GPUs."""
    topology = problem.topology
    return (
        problem.collective in PHASES
        and not problem.groups
        and topology.is_direct
        and len({link.bandwidth for link in topology.links}) == 1
        and len(topology.links) < topology.size * (topology.size - 1)
    )


def gains_by_free_roots(optimum: Optimum) -> bool:
    """Whether the bound of an allreduce is better with free roots."""
    from colsynth.synthesis.forest.rate import TOLERANCE

    return isinstance(optimum, AllreduceBound) and optimum.gain > TOLERANCE
