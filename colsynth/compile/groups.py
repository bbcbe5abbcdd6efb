"""One file for several process groups: compiled for the first, used by all.

A runtime selects files by collective and number of ranks, so communicators of one size in a job run
the same file. The file is correct on all of them. The simulator predicts how fast it is on each.
"""

from __future__ import annotations

from dataclasses import replace

from colsynth.bounds.optimum import optimum
from colsynth.bounds.runtime import runtime_bounds
from colsynth.errors import Diagnostic, InfeasibleError, LimitError
from colsynth.model import Collective, Problem, Program
from colsynth.model.problem import PHASES
from colsynth.pipeline.target import SYNTHESIZE
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import LARGE, usual_size
from colsynth.runtimes.target import Target
from colsynth.topology.communicator import Communicator, communicators, spell_ranks
from colsynth.units import format_bandwidth, format_size, percent

_ALIKE = 1.01
"""Up to this ratio of times, a group counts as equal to the first."""

_WORTH = 1.1
"""From this ratio to the least time of any file on, a group may gain by a file of its own."""


def machines_of(problem: Problem, profile: Profile) -> tuple[Communicator, ...]:
    """Return every process group as a machine of its own, for which a file can be compiled.

    Raises
    ------
    LimitError
        CS404: other GPUs should forward data, or only some of the groups are in one box.
    """
    if problem.transit:
        phrase = f"in a file for {profile.name} only ranks of the communicator can pass data on"
        advice = f"leave --transit out, or take more GPUs into the group; {SYNTHESIZE}"
        raise LimitError(Diagnostic("CS404", phrase, help=advice))
    found = communicators(problem)
    first, *others = (len(group.problem.topology.boxes) > 1 for group in found)
    if any(other != first for other in others):
        phrase = "some of the groups are in one box, and others are not"
        advice = "one file would suit neither: compile one --group after the other"
        raise LimitError(Diagnostic("CS404", phrase, help=advice))
    return found


def machine_of(problem: Problem, profile: Profile) -> Problem:
    """Return the only process group as a machine of its own.

    Raises
    ------
    LimitError
        CS404: there are several groups, or other GPUs should forward data.
    """
    found = machines_of(problem, profile)
    if len(found) > 1:
        phrase = f"this is worked out for one process group, and there are {len(found)}"
        raise LimitError(Diagnostic("CS404", phrase, help="give one group at a time"))
    return found[0].problem


def group_notes(problem: Problem, program: Program, target: Target) -> tuple[str, ...]:
    """Return notes on how a program for the first group performs on the others.

    Raises
    ------
    LimitError
        CS404: a group lacks links that the program needs.
    """
    if len(problem.groups) < 2:
        return ()
    size = usual_size(LARGE, problem.collective, program.header.ranks)
    seconds = _seconds(problem, program, target, size)
    first, *others = (spell_ranks(group) for group in problem.groups)
    notes = []
    worst = max(seconds)
    if worst <= seconds[0] * _ALIKE:
        notes.append(f"one file for {len(seconds)} groups, as fast on each as on {first}")
    else:
        place = seconds.index(worst)
        least = _least(communicators(problem)[place].problem, target, size)
        slower = (
            f"the file is made for group {first}; on group {[first, *others][place]} it is "
            f"predicted to take {worst / seconds[0]:.2f} times as long at {format_size(size)}"
        )
        if worst < _WORTH * least:
            notes.append(f"{slower}, and any other file at least {least / seconds[0]:.2f} times")
        else:
            notes.append(f"{slower}: compile that --group by itself, for jobs of its own")
    return (*notes, *_together(problem))


def _seconds(problem: Problem, program: Program, target: Target, size: int) -> list[float]:
    """Return the predicted seconds of a message of `size` bytes on each group alone."""
    from colsynth.simulate import simulate

    seconds = []
    for group in communicators(problem):
        topology = group.problem.topology
        try:
            points = simulate(program, topology, target.profile, [size], target.model)
        except InfeasibleError as fault:
            phrase = f"the file of the first group cannot run on {topology.name}"
            notes = (fault.diagnostic.phrase,)
            advice = "compile one --group after the other"
            raise LimitError(Diagnostic("CS404", phrase, notes=notes, help=advice)) from None
        seconds.append(points[0].seconds)
    return seconds


def _least(problem: Problem, target: Target, size: int) -> float:
    """Return the least seconds that any file takes on a group, alone."""
    (bound,) = runtime_bounds(problem, target.profile, optimum(problem), (size,), target.model)
    return bound.seconds


def _together(problem: Problem) -> tuple[str, ...]:
    """Return a note if groups that run at the same time must be slower than each alone."""
    if problem.collective not in PHASES:
        return ()
    jointly = optimum(problem).algbw
    alone = min(optimum(replace(problem, groups=(group,))).algbw for group in problem.groups)
    if jointly >= alone:
        return ()
    less = f"{percent(1 - jointly / alone):.2f} % less than each alone"
    by = " by reduce-scatter and allgather" if problem.collective is Collective.ALLREDUCE else ""
    return (f"at the same time groups reach {format_bandwidth(jointly)} at most{by}, {less}",)
