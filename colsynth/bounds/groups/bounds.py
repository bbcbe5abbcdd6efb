"""The best that process groups can do, proven by cuts of the whole topology."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from colsynth.bounds.allreduce.halves import CAPABILITY, capable, halves_of
from colsynth.bounds.allreduce.limits import cut_limit
from colsynth.bounds.allreduce.rooted import Proposal, allreduce_bound, is_solved
from colsynth.bounds.groups.joint import together
from colsynth.bounds.groups.outward import Outward
from colsynth.bounds.trees import bound
from colsynth.errors import Diagnostic, InfeasibleError, InputError
from colsynth.model import (
    AllreduceBound,
    Bound,
    Collective,
    Cut,
    FlowBound,
    Limit,
    Problem,
    RootedBound,
)
from colsynth.topology.communicator import Communicator, communicators

_Found = TypeVar("_Found")

_OF_ALL = {
    Collective.BROADCAST: Collective.ALLGATHER,
    Collective.REDUCE: Collective.REDUCE_SCATTER,
}
"""Collectives that are like these with several roots."""


_TRANSIT = "let other GPUs pass data on with --transit"


@contextmanager
def advised(problem: Problem, advice: str = _TRANSIT) -> Iterator[None]:
    """Tell what would help where a GPU of a group cannot be reached."""
    try:
        yield
    except InfeasibleError as fault:
        if fault.diagnostic.code != "CS302" or problem.transit or not problem.groups:
            raise
        told = replace(
            fault.diagnostic,
            notes=("only GPUs of the same group may pass data on",),
            help=advice,
        )
        raise InfeasibleError(told) from None


def bound_of_groups(problem: Problem) -> Bound:
    """Return a bound on the collectives of trees in process groups.

    The message is that of one group. One group reaches the bound wherever all GPUs would;
    several at the same time need not.

    Raises
    ------
    InfeasibleError, InputError
        As `bounds.trees.bound`.
    """
    found = [outward.bound(alone) for outward, alone in _each(problem, bound)]
    return found[0] if len(found) == 1 else together(problem, [*found], _merged(problem))


def flow_bound_of_group(problem: Problem) -> FlowBound:
    """Return a bound on an alltoall, scatter or gather in one process group.

    Raises
    ------
    InputError
        CS306: there are several groups.
    InfeasibleError
        CS302.
    """
    from colsynth.bounds.flows import flow_bound

    if len(problem.groups) > 1:
        phrase = f"bandwidth bounds of {problem.collective} are for one group at a time"
        advice = "give one --group; 'colsynth synthesize' bounds the time of several"
        raise InputError(Diagnostic("CS306", phrase, help=advice))
    ((outward, found),) = _each(problem, flow_bound)
    return outward.flow_bound(found)


def allreduce_bound_of_group(problem: Problem) -> AllreduceBound:
    """Return what an allreduce in one process group reaches, with equal roots and free ones.

    Raises
    ------
    InputError
        CS303: there are several groups.
    InfeasibleError
        CS302.
    """
    if len(problem.groups) > 1:
        phrase = "free roots are worked out for one group at a time"
        raise InputError(Diagnostic("CS303", phrase, help="give one --group"))
    (group,) = communicators(problem)
    outward = Outward(problem.topology, group)
    with advised(problem):
        found = relayed_bound(group) if problem.transit else allreduce_bound(group.problem)
    rooted, within = found.rooted, found.in_network
    return AllreduceBound(
        outward.bound(found.composition),
        None if rooted is None else outward.rooted(rooted, in_network=False),
        outward.limit(found.limit),
        None if within is None else outward.rooted(within, in_network=True),
    )


def forwarding_suffices(problem: Problem) -> bool:
    """Return whether a group's trees are sure to reach their bound, relays only forwarding.

    They do where all that passes data on sends as much as it receives: then it can be left
    out of the graph at no loss (edge splitting), and trees fill every tightest cut (Edmonds).
    """
    (group,) = communicators(problem)
    topology = group.problem.topology
    balance = [Fraction(0)] * len(topology.nodes)
    for link in topology.links:
        balance[link.source] -= link.bandwidth
        balance[link.target] += link.bandwidth
    return not any(balance[node] for node in range(len(balance)) if node not in topology.rank_of)


def relayed_bound(group: Communicator) -> AllreduceBound:
    """Return the bounds of an allreduce whose relays copy and add up.

    To the whole machine relays are GPUs, so what trees reach that branch at relays alone is
    what free roots reach; partitions that leave relays out bound nothing.
    """
    problem = forwarding(group).problem
    composition = bound(problem)
    limit: Limit = cut_limit(problem, composition.cuts)
    found = AllreduceBound(composition, None, limit)
    if not is_solved(problem):
        return found
    found = replace(found, rooted=_branching(problem))
    if capable(group.problem.topology) != capable(problem.topology):
        found = replace(found, in_network=_branching(group.problem))
    return found


def forwarding(group: Communicator) -> Communicator:
    """Return a group whose relays copy and add up, and whose switches only forward."""
    topology = group.problem.topology
    powers = set(CAPABILITY.values())
    nodes = tuple(
        node
        if index in group.relays
        else replace(node, capabilities=tuple(x for x in node.capabilities if x not in powers))
        for index, node in enumerate(topology.nodes)
    )
    return replace(group, problem=replace(group.problem, topology=replace(topology, nodes=nodes)))


def _branching(problem: Problem) -> RootedBound | None:
    """Return what free roots reach where trees may branch at all nodes that can."""
    halves = halves_of(problem, capable(problem.topology))
    return Proposal(problem, halves, in_network=True).bound()


def _each(problem: Problem, solve: Callable[[Problem], _Found]) -> Iterator[tuple[Outward, _Found]]:
    """Yield every group's way outwards and what `solve` says of it alone."""
    for group in communicators(problem):
        with advised(problem):
            yield Outward(problem.topology, group), solve(group.problem)


def _merged(problem: Problem) -> tuple[Cut, ...]:
    """Return the tightest cuts of one group with the members of all; they are worth trying.

    None where there is no such group: members of different groups need not be joined.
    """
    everybody = tuple(rank for group in problem.groups for rank in group)
    collective = _OF_ALL.get(problem.collective, problem.collective)
    shards = tuple(int(rank in problem.roots) for rank in range(problem.topology.size))
    one = replace(problem, groups=(everybody,), collective=collective, root=None, shards=shards)
    try:
        ((outward, found),) = _each(one, bound)
    except (InfeasibleError, InputError):
        return ()
    return outward.bound(found).cuts
