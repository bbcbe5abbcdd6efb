"""Forests of process groups, by way of the group's own machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colsynth.errors import InfeasibleError
from colsynth.model import Bound, Collective, Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.allreduce.pack_roots import PackRoots
from colsynth.synthesis.forest.pack_trees import PackTrees
from colsynth.synthesis.groups.bounds import advised, forwarding, relayed_bound
from colsynth.synthesis.groups.outward import Outward
from colsynth.synthesis.groups.several import forest_of_several
from colsynth.synthesis.in_network.pack_in_network import PackInNetwork
from colsynth.topology.communicator import Communicator, communicators

_NOTHING_FOUND = ("CS322", "CS324")
"""Codes of packers that have nothing better to offer."""


def forest_of_groups(problem: Problem, packer: PackTrees, target: Target) -> Forest:
    """Return trees that are rooted at members of process groups and span the others.

    Parameters
    ----------
    problem : Problem
        With groups. With transit trees may pass and branch at other GPUs.
    packer : PackTrees
        Of the trees of every group.

    Raises
    ------
    InfeasibleError
        CS302: some member cannot be reached.
    """
    with advised(problem):
        if len(problem.groups) == 1:
            return _of_one(problem, packer, target)
        return forest_of_several(problem, packer, target)


def forest_in_network(problem: Problem, trees: str, target: Target) -> Forest:
    """Return trees of one process group that also branch at switches that multicast or reduce.

    Raises
    ------
    InfeasibleError
        CS302, and CS324 as `PackInNetwork`.
    """
    (group,) = communicators(problem)
    with advised(problem):
        forest = PackInNetwork(trees).run(group.problem, target)
    return _outward(problem, group, forest, in_network=True)


def _of_one(problem: Problem, packer: PackTrees, target: Target) -> Forest:
    """Return the forest of one group: relays forward, or branch where that is faster."""
    (group,) = communicators(problem)
    group = forwarding(group) if problem.transit else group
    found = packer.run(group.problem, target)
    for other in _others(group, packer.trees, found, target):
        found = max(found, other, key=lambda forest: forest.algbw)
    return _outward(problem, group, found, in_network=False)


def _others(group: Communicator, trees: str, found: Forest, target: Target) -> Iterator[Forest]:
    """Yield forests that may be faster with relays: roots of their choice, branching at relays."""
    packers: list[PackRoots | PackInNetwork] = []
    if group.problem.collective is Collective.ALLREDUCE and not trees.isdigit():
        packers = [PackRoots(trees), PackInNetwork(trees)]
    elif found.gap:
        packers = [PackInNetwork(trees)]
    for packer in packers if group.relays else ():
        try:
            forest = packer.run(group.problem, target)
        except InfeasibleError as fault:
            if fault.diagnostic.code not in _NOTHING_FOUND:
                raise
            continue
        if forest.in_network:
            yield forest
        elif (bound := relayed_bound(group).rooted) is not None:
            # Its own bound takes relays for switches that only forward.
            yield replace(forest, bound=bound)


def _outward(problem: Problem, group: Communicator, forest: Forest, *, in_network: bool) -> Forest:
    """Return a forest of a group's own machine with the ranks of the whole one."""
    outward = Outward(problem.topology, group)
    found = forest.bound
    return replace(
        forest,
        problem=problem,
        bound=outward.bound(found)
        if isinstance(found, Bound)
        else outward.rooted(found, in_network=in_network),
        phases=tuple(outward.phase(phase, group.problem) for phase in forest.phases),
        in_network=in_network,
    )
