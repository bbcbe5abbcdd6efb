"""How long data is on its way to the GPU that is farthest from where it is.

A connection of a runtime passes a few other GPUs at most (`Profile.passes_on`). Data for GPUs
farther away stops at one that receives it and sends it on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heappop, heappush

from colsynth.model import Collective, Problem, Topology

_INWARDS = (
    *(Collective.REDUCE_SCATTER, Collective.REDUCE, Collective.ALLREDUCE),
    Collective.GATHER,
)
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
    passes : mapping
        `Profile.passes_on`.
    """

    hop: float
    network: float
    stop: float
    passes: Mapping[str, int]

    def most(self, start: int, end: int) -> int:
        """Return how many GPUs a connection passes at most, from one box to another or within it.

        GPUs in no box, here -1, pass nothing on.
        """
        if -1 in (start, end):
            return 0
        return self.passes.get("box" if start == end else "network", 0)


def farthest(problem: Problem, costs: Costs) -> tuple[float, float]:
    """Return the seconds of a message that the problem needs, the slowest found.

    The second number is that of the second slowest to, or from, the same GPU; 0 if there is none.

    On a switch all GPUs are equally far from each other, so one proves as much as all. Elsewhere
    each is asked, and in large groups the first.
    """
    topology = problem.topology
    arcs: dict[bool, Arcs] = {}
    slowest = second = 0.0
    for hubs, others, back in _apart(problem):
        if back not in arcs:
            arcs[back] = _arcs_of(topology, back=back)
        for hub in hubs:
            found = _arrivals(topology, hub, arcs[back], costs)
            times = sorted(found[node] for node in others - hub if node in found)
            slowest, second = max(slowest, *times[-1:], 0.0), max(second, *times[-2:-1], 0.0)
            if len(set(times)) < 3:  # one within the box, and one to another
                break
    return slowest, second


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
        source, target = (link.target, link.source) if back else link.ends
        arc = target, float(link.latency), index in topology.network
        found.setdefault(source, []).append(arc)
    return found


def _arrivals(topology: Topology, starts: Set[int], arcs: Arcs, costs: Costs) -> dict[int, float]:
    """Return when data that some GPUs send at once can be at each GPU, in seconds (Dijkstra).

    A state is a node, and of the connection there: the box that it begins in, whether it has used
    the network, and the GPUs that it has passed. No other is looked at that is later and no better.
    """
    gpus = topology.rank_of
    boxes = [-1 if node.box is None else node.box for node in topology.nodes]
    most = max((0, *costs.passes.values())) if any(boxes[node] >= 0 for node in gpus) else 0
    found: dict[int, float] = {}
    waiting = [(0.0, start, boxes[start], False, 0) for start in sorted(starts)]
    fewest: dict[tuple[int, int, bool], int] = {}
    while waiting and len(found) < len(gpus):
        time, node, box, used, passed = heappop(waiting)
        if passed >= fewest.get((node, box, used), most + 1):
            continue
        for same in {used, False}:
            fewest[node, box, same] = min(passed, fewest.get((node, box, same), passed))
        here, onward = boxes[node], []
        if node not in gpus:
            onward = [(time, box, used, passed)]
        elif node not in starts and passed < most:
            onward = [(time, box, used, passed + 1)]
        if node in gpus and node not in found and passed <= costs.most(box, here):
            found[node] = time
            stop = 0.0 if node in starts else costs.stop
            onward.append((time + stop + costs.hop, here, False, 0))
        for begun, origin, network, count in onward:
            for target, latency, far in arcs.get(node, ()):
                more = costs.network if far and not network else 0.0
                if count < fewest.get((target, origin, network or far), most + 1):
                    after = begun + latency + more, target, origin, network or far, count
                    heappush(waiting, after)
    return found
