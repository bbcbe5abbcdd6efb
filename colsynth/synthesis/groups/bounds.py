"""The best that process groups can do, proven by cuts of the whole topology."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, islice
from math import lcm
from typing import TypeVar

from colsynth.errors import Diagnostic, InfeasibleError, InputError
from colsynth.model import (
    AllreduceBound,
    Bound,
    Collective,
    Cut,
    Direction,
    FlowBound,
    Limit,
    Problem,
    RootedBound,
    Topology,
)
from colsynth.model.problem import PHASES
from colsynth.synthesis.allreduce.limits import cut_limit
from colsynth.synthesis.allreduce.rooted import MOST_GPUS, Proposal, allreduce_bound
from colsynth.synthesis.allreduce.sides import CAPABILITY, capable, halves_of
from colsynth.synthesis.bound import bound
from colsynth.synthesis.groups.outward import Outward
from colsynth.topology.communicator import Communicator, communicators

_Found = TypeVar("_Found")

_MOST_PAIRS = 500
"""Pairs of cuts whose union is tried."""

_OF_ALL = {
    Collective.BROADCAST: Collective.ALLGATHER,
    Collective.REDUCE: Collective.REDUCE_SCATTER,
}
"""Collectives that are like these with several roots."""


@contextmanager
def advised(problem: Problem) -> Iterator[None]:
    """Tell what would help where a GPU of a group cannot be reached."""
    try:
        yield
    except InfeasibleError as fault:
        if fault.diagnostic.code != "CS302" or problem.transit:
            raise
        told = replace(
            fault.diagnostic,
            notes=("only GPUs of the same group may pass data on",),
            help="let other GPUs pass data on with --transit",
        )
        raise InfeasibleError(told) from None


def bound_of_groups(problem: Problem) -> Bound:
    """Return a bound on the collectives of trees in process groups.

    The message is that of one group. One group reaches the bound wherever all GPUs would;
    several at the same time need not.

    Raises
    ------
    InfeasibleError, InputError
        As `synthesis.bound.bound`.
    """
    found = [outward.bound(alone) for outward, alone in _each(problem, bound)]
    return found[0] if len(found) == 1 else _together(problem, found)


def flow_bound_of_group(problem: Problem) -> FlowBound:
    """Return a bound on an alltoall, scatter or gather in one process group.

    Raises
    ------
    InputError
        CS306: there are several groups.
    InfeasibleError
        CS302.
    """
    from colsynth.synthesis.flow_bound import flow_bound

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


def relayed_bound(group: Communicator) -> AllreduceBound:
    """Return the bounds of an allreduce whose relays copy and add up.

    To the whole machine relays are GPUs, so what trees reach that branch at relays alone is
    what free roots reach; partitions that leave relays out bound nothing.
    """
    problem = forwarding(group).problem
    composition = bound(problem)
    limit: Limit = cut_limit(problem, composition.cuts)
    found = AllreduceBound(composition, None, limit)
    if problem.topology.size > MOST_GPUS:
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


def _together(problem: Problem, alone: Sequence[Bound]) -> Bound:
    """Return the least bound of cuts that several groups must cross at the same time."""
    cuts: list[Cut] = []
    rates: list[Fraction] = []
    merged = _merged(problem)
    for number, direction in enumerate(PHASES[problem.collective]):
        known = [found.cuts[number].nodes for found in alone]
        known.append(merged[number].nodes)
        tried = [_joint(problem, direction, nodes) for nodes in _sets(problem.topology, known)]
        rate, cut = min((pair for pair in tried if pair is not None), key=lambda pair: pair[0])
        cuts.append(cut)
        rates.append(rate)
    return Bound(
        algbw=1 / sum((1 / rate for rate in rates), Fraction(0)),
        trees_per_root=lcm(*(found.trees_per_root for found in alone)),
        cuts=tuple(cuts),
        rates=tuple(rates),
    )


def _merged(problem: Problem) -> tuple[Cut, ...]:
    """Return the tightest cuts of one group with the members of all; they are worth trying."""
    everybody = tuple(rank for group in problem.groups for rank in group)
    collective = _OF_ALL.get(problem.collective, problem.collective)
    shards = tuple(int(rank in problem.roots) for rank in range(problem.topology.size))
    one = replace(problem, groups=(everybody,), collective=collective, root=None, shards=shards)
    ((outward, found),) = _each(one, bound)
    return outward.bound(found).cuts


def _sets(topology: Topology, known: Iterable[Sequence[int]]) -> Iterator[frozenset[int]]:
    """Yield the known sets, each node, each box, and what all of these leave out."""
    nodes = range(len(topology.nodes))
    boxes = [[i for i in nodes if topology.nodes[i].box == box] for box in topology.boxes]
    pairs = (x | y for x, y in islice(combinations(map(frozenset, known), 2), _MOST_PAIRS))
    whole = frozenset[int]().union(*known)
    for some in (*known, whole, *pairs, *([node] for node in nodes), *boxes):
        yield frozenset(some)
        yield frozenset(nodes) - frozenset(some)


def _joint(
    problem: Problem, direction: Direction, nodes: frozenset[int]
) -> tuple[Fraction, Cut] | None:
    """Return what a cut allows each group, bytes/s; None where no group must cross it."""
    topology = problem.topology
    part = dict(zip(problem.roots, problem.weights, strict=True))
    inside = {rank for rank, node in enumerate(topology.ranks) if node in nodes}
    crossing = {
        number: weight
        for number, group in enumerate(problem.groups)
        if not inside.issuperset(group)
        and (weight := sum(part.get(rank, 0) for rank in inside.intersection(group)))
    }
    if not crossing:
        return None
    ends = ((x.source, x.target) for x in topology.links)
    ways = ends if direction is Direction.OUT else ((b, a) for a, b in ends)
    leaving = [i for i, (a, b) in enumerate(ways) if a in nodes and b not in nodes]
    links = tuple(i for i in leaving if _serves(problem, i, crossing))
    bandwidth = sum((topology.links[i].bandwidth for i in links), Fraction(0))
    whole = Fraction(sum(part.values()), len(problem.groups))
    cut = Cut(direction, tuple(sorted(nodes)), tuple(sorted(inside)), links, bandwidth)
    return whole * bandwidth / sum(crossing.values()), cut


def _serves(problem: Problem, index: int, groups: Collection[int]) -> bool:
    """Return whether some of the groups may take a link: its GPUs are of that group."""
    topology, link = problem.topology, problem.topology.links[index]
    ranks = [topology.rank_of[x] for x in (link.source, link.target) if x in topology.rank_of]
    if problem.transit or not ranks:
        return True
    return any(all(rank in problem.groups[n] for rank in ranks) for n in groups)
