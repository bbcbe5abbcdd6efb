"""How long data is on its way to the GPU that is farthest from where it is.

A connection of a runtime passes a few other GPUs at most (`Profile.passes_on`). Data for GPUs
farther away stops at one that receives it and sends it on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heappop, heappush

from colsynth.cost.pair_routes import is_network
from colsynth.model import Collective, Problem, Topology
from colsynth.runtimes.profile import Profile

_INWARDS = (Collective.REDUCE_SCATTER, Collective.REDUCE, Collective.GATHER)
_MOST_HUBS = 64
"""GPUs of which all ways are measured: 0.1 s on a mesh. Larger meshes are as regular as one."""

Arcs = Mapping[int, Sequence[tuple[int, float, bool]]]
"""The links that leave each node: where they lead, seconds, and whether they are of a network."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a message beside the latency of links.

    Parameters
    ----------
    hop : float
        Of every connection, at least.
    network : float
        What one over the network takes more.
    stop : float
        At a GPU that sends on what it received.
    passes : int
        GPUs that one connection passes, at most.
    """

    hop: float
    network: float
    stop: float
    passes: int


def most_passed(topology: Topology, profile: Profile) -> int:
    """Return how many GPUs a connection passes at most; those in no box pass nothing on."""
    if all(topology.nodes[node].box is None for node in topology.ranks):
        return 0
    return max(profile.passes_on.values(), default=0)


def farthest(problem: Problem, costs: Costs) -> float:
    """Return the seconds of a message that the problem needs, the slowest found.

    On a switch all GPUs are equally far from each other, so one proves as much as all. Elsewhere
    each is asked, and in large groups the first.
    """
    topology = problem.topology
    arcs: dict[bool, Arcs] = {}
    slowest = 0.0
    for hubs, others, back in _apart(problem):
        if back not in arcs:
            arcs[back] = _arcs_of(topology, back=back)
        for hub in hubs:
            found = _arrivals(hub, topology.rank_of, arcs[back], costs)
            times = {found[node] for node in others - hub if node in found}
            slowest = max(slowest, *times, 0.0)
            if len(times) < 3:  # one within the box, and one to another
                break
    return slowest


def _apart(problem: Problem) -> Iterator[tuple[Sequence[Set[int]], Set[int], bool]]:
    """Yield GPUs, each of which reaches each of others, or hears of it if the last is true."""
    ranks = problem.topology.ranks
    if problem.collective is Collective.CUSTOM:
        for demand in problem.demands:
            for rank in demand.wanted:
                if rank not in demand.holders:
                    yield [{ranks[holder] for holder in demand.holders}], {ranks[rank]}, False
                    return  # one proves as much as a bound needs
        return
    rooted = {rank for rank, part in zip(problem.roots, problem.weights, strict=True) if part}
    for group in problem.members:
        hubs = [{ranks[rank]} for rank in group if rank in rooted]
        most = len(hubs) if len(group) <= _MOST_HUBS else 1
        yield hubs[:most], {ranks[rank] for rank in group}, problem.collective in _INWARDS


def _arcs_of(topology: Topology, *, back: bool = False) -> Arcs:
    """Return the links that leave each node, or with `back` those that enter it, turned round."""
    found: dict[int, list[tuple[int, float, bool]]] = {}
    for index, link in enumerate(topology.links):
        source, target = (link.target, link.source) if back else (link.source, link.target)
        arc = target, float(link.latency), is_network(topology, index)
        found.setdefault(source, []).append(arc)
    return found


def _arrivals(
    starts: Set[int], gpus: Mapping[int, int], arcs: Arcs, costs: Costs
) -> dict[int, float]:
    """Return when data that some GPUs send at once can be at each GPU, in seconds (Dijkstra).

    A state is a node, the GPUs that the connection there has passed, and whether it has used the
    network.

    Parameters
    ----------
    starts : set of int
        Nodes.
    gpus : mapping of int
        All GPUs, by node.
    arcs : mapping
    costs : Costs
    """
    found: dict[int, float] = {}
    waiting = [(0.0, start, 0, False) for start in sorted(starts)]
    seen: set[tuple[int, int, bool]] = set()
    while waiting:
        time, node, passed, used = heappop(waiting)
        if (node, passed, used) in seen:
            continue
        seen.add((node, passed, used))
        onward = []
        if node not in gpus:
            onward = [(time, passed, used)]
        elif node not in starts and passed < costs.passes:
            onward = [(time, passed + 1, used)]
        if node in gpus and node not in found:
            found[node] = time
            stop = 0.0 if node in starts else costs.stop
            onward.append((time + stop + costs.hop, 0, False))
        for begun, count, network in onward:
            for target, latency, far in arcs.get(node, ()):
                more = costs.network if far and not network else 0.0
                state = (target, count, network or far)
                if state not in seen:
                    heappush(waiting, (begun + latency + more, *state))
    return found
