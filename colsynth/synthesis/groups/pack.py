"""Forests of process groups, by way of the group's own machine.

Packers below serve problems without groups. Here it is decided which of them serves a group,
and what they find is told of the whole machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.bounds.groups.bounds import advised, forwarding, relayed_bound
from colsynth.bounds.groups.outward import Outward
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Bound, Collective, Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.allreduce.pack import free_forest
from colsynth.synthesis.forest.equal_roots import equal_forest
from colsynth.synthesis.groups.outward import OutwardTrees
from colsynth.synthesis.groups.several import forest_of_several
from colsynth.synthesis.in_network.both_ways import allreduce_forest
from colsynth.synthesis.in_network.pack import forest_in_network, nothing_found
from colsynth.topology.communicator import Communicator, communicators


def forest_of_groups(problem: Problem, trees: str, prefer: str, target: Target) -> Forest:
    """Return trees that are rooted at members of process groups and span the others.

    Parameters
    ----------
    problem : Problem
        With groups. With transit trees may pass and branch at other GPUs.
    trees, prefer : str
        As in `PackTrees`, for every group.
    target : Target
        Told of progress.

    Raises
    ------
    InfeasibleError
        CS302: some member cannot be reached.
    """
    with advised(problem):
        if len(problem.groups) == 1:
            return _of_one(problem, trees, prefer, target)
        return forest_of_several(problem, trees, prefer, target)


def group_in_network(problem: Problem, trees: str, target: Target) -> Forest:
    """Return trees of one process group that also branch at switches that multicast or reduce.

    Raises
    ------
    InfeasibleError
        CS302, and CS324 as `PackInNetwork`.
    InputError
        CS303: there are several groups.
    """
    if len(problem.groups) > 1:
        phrase = "trees in the network are packed for one process group at a time"
        raise InputError(Diagnostic("CS303", phrase, help="give one --group"))
    (group,) = communicators(problem)
    with advised(problem):
        forest = forest_in_network(group.problem, trees, target)
    if forest is None:
        raise nothing_found(group.problem)
    return _outward(problem, group, forest, in_network=True)


def _of_one(problem: Problem, trees: str, prefer: str, target: Target) -> Forest:
    """Return the forest of one group: relays forward, or branch where that is faster."""
    (group,) = communicators(problem)
    group = forwarding(group) if problem.transit else group
    found = equal_forest(group.problem, trees, prefer, target)
    if group.relays:
        others = _over_relays(group, trees, found, target)
        found = max((found, *others), key=lambda forest: forest.algbw)
    return _outward(problem, group, found, in_network=False)


def _over_relays(
    group: Communicator, trees: str, found: Forest, target: Target
) -> Iterator[Forest]:
    """Yield forests that may be faster with relays: roots of their choice, branching at relays."""
    if group.problem.collective is Collective.ALLREDUCE and not trees.isdigit():
        yield from _free_roots(group, trees, target)
    elif found.gap:
        branching = forest_in_network(group.problem, trees, target)
        yield from () if branching is None else (branching,)


def _free_roots(group: Communicator, trees: str, target: Target) -> Iterator[Forest]:
    """Yield allreduce forests with free roots, relays forwarding and relays branching."""
    target.progress("sharing out roots", 0, 2)
    limits = allreduce_bound(group.problem)
    target.progress("packing trees", 1, 2)
    forwarded = free_forest(group.problem, limits, trees)
    if forwarded is not None and (bound := relayed_bound(group).rooted) is not None:
        # Its own bound takes relays for switches that only forward.
        yield replace(forwarded, bound=bound)
    branching = allreduce_forest(group.problem, limits, trees)
    if branching is not None:
        yield branching


def _outward(problem: Problem, group: Communicator, forest: Forest, *, in_network: bool) -> Forest:
    """Return a forest of a group's own machine with the ranks of the whole one."""
    outward, trees = Outward(problem.topology, group), OutwardTrees(problem.topology, group)
    found = forest.bound
    return replace(
        forest,
        problem=problem,
        bound=outward.bound(found)
        if isinstance(found, Bound)
        else outward.rooted(found, in_network=in_network),
        phases=tuple(trees.phase(phase, group.problem) for phase in forest.phases),
        in_network=in_network,
    )
