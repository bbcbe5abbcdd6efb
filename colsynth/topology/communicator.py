"""A process group as a machine of its own: its GPUs are the ranks, the rest serves them.

Without transit the other GPUs go, with their links; of a group in one box, so does all that is
outside. With transit the other GPUs are switches that copy and add up what passes, and forward it
when all of it is there. Nodes keep their order, and so do links: what is found on the smaller
machine can be told of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from colsynth.model import Kind, Problem, Topology
from colsynth.text import listed
from colsynth.topology.reach import mutual

RELAY = ("multicast", "reduce", "store-and-forward")
"""What a GPU that only passes data on is capable of."""

_NAMED = 6
"""Runs of ranks that the name of a topology lists before it counts the rest."""


@dataclass(frozen=True)
class Communicator:
    """A process group by itself.

    Parameters
    ----------
    problem : Problem
        The same collective without groups, on a topology of its own. Rank i is the group's
        i-th member.
    old_ranks : tuple of int
        By rank, the rank on the whole topology.
    nodes, links : tuple of int
        By node and by link, the index on the whole topology.
    relays : tuple of int
        Node indices of the GPUs that only pass data on, on its own topology.
    """

    problem: Problem
    old_ranks: tuple[int, ...]
    nodes: tuple[int, ...]
    links: tuple[int, ...]
    relays: tuple[int, ...] = ()


def communicators(problem: Problem) -> tuple[Communicator, ...]:
    """Return every process group of a problem by itself; no groups are one of all ranks."""
    return tuple(_communicator(problem, members) for members in problem.members)


def _communicator(problem: Problem, members: Sequence[int]) -> Communicator:
    whole = problem.topology
    chosen = {whole.ranks[rank] for rank in members}
    others = set(whole.ranks) - chosen
    gone = set() if problem.transit else others
    if problem.groups and not problem.transit:
        gone = gone | _outside(whole, chosen, gone)
    nodes = tuple(i for i in range(len(whole.nodes)) if i not in gone)
    part = partial(_part, name=_name(problem, members), nodes=nodes, others=others, members=members)
    topology, written = part(whole), whole.whole
    if written is not None and len(written.nodes) == len(whole.nodes):  # no switch was split
        topology = replace(topology, whole=part(written))
    links = tuple(i for i, x in enumerate(whole.links) if not gone & {x.source, x.target})
    shards = tuple(problem.shards[rank] for rank in members) if problem.shards else ()
    if set(shards) == {1}:
        shards = ()
    inner = replace(problem, topology=topology, groups=(), transit=False, shards=shards)
    relays = tuple(new for new, old in enumerate(nodes) if old in others)
    return Communicator(inner, tuple(members), nodes, links, relays)


def _part(
    whole: Topology, name: str, nodes: Sequence[int], others: set[int], members: Sequence[int]
) -> Topology:
    """Return some nodes and the links between them, with other GPUs as switches; no notes."""
    place = {old: new for new, old in enumerate(nodes)}
    return Topology(
        name=name,
        nodes=tuple(
            replace(whole.nodes[i], kind=Kind.SWITCH, capabilities=RELAY)
            if i in others
            else whole.nodes[i]
            for i in nodes
        ),
        links=tuple(
            replace(x, source=place[x.source], target=place[x.target])
            for x in whole.links
            if x.source in place and x.target in place
        ),
        ranks=tuple(place[whole.ranks[rank]] for rank in members),
    )


def _outside(topology: Topology, chosen: set[int], gone: set[int]) -> set[int]:
    """Return the nodes that data of a group in one box never passes, if the box joins its GPUs.

    No route between two GPUs leaves a box that joins them (`colsynth.cost.routes`), so a bound must
    not count on that.
    """
    boxes = {topology.nodes[node].box for node in chosen}
    if len(boxes) > 1 or None in boxes:
        return set()
    kept = {
        index
        for index, node in enumerate(topology.nodes)
        if node.box in boxes and index not in gone
    }
    arcs = (x.ends for x in topology.links if {x.source, x.target} <= kept)
    joined = any(chosen <= part for part in mutual(sorted(kept), arcs))
    return set(range(len(topology.nodes))) - kept if joined else set()


def _name(problem: Problem, members: Sequence[int]) -> str:
    """Return a name such as ``"mi250 group 0-7"``."""
    if not problem.groups:
        return problem.topology.name
    relays = " with transit" if problem.transit else ""
    return f"{problem.topology.name} group {spell_ranks(members)}{relays}"


def spell_ranks(ranks: Sequence[int]) -> str:
    """Return ranks in their order as ``"0-7,16"``; of many runs, the first and their number."""
    runs = [str(a) if a == b else f"{a}-{b}" for a, b in _runs(ranks)]
    return listed(runs, _NAMED, ",")


def _runs(ranks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of ranks that follow each other."""
    first = last = ranks[0]
    for rank in ranks[1:]:
        if rank != last + 1:
            yield first, last
            first = rank
        last = rank
    yield first, last
