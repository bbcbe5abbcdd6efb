"""Direct-connect fabrics: shortest-path broadcast, and cablings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.model import Problem

if TYPE_CHECKING:
    from colsynth.model.steps import StepBound


def steps(problem: Problem) -> StepBound:
    """Return steps and times of shortest-path broadcast on a direct-connect fabric, checked.

    Parameters
    ----------
    problem : Problem
        Of a collective that trees serve, without process groups.

    Raises
    ------
    InputError
        CS309: the topology has switches. CS303: trees cannot serve the problem.
    """
    from colsynth.bounds.steps import step_bound
    from colsynth.verify.steps import check_steps

    found = step_bound(problem)
    if problem.topology.size <= _CHECKED:
        check_steps(problem, found)
    return found


_CHECKED = 1024
"""GPUs up to which witnesses are added up again: 1024 take a second."""
