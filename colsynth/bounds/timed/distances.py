"""The least time from GPUs that have something to GPUs that want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.network import refuse_pair
from colsynth.bounds.timed.cut_demand import group_of
from colsynth.bounds.timed.wires import csr, open_ranks
from colsynth.kernels.distances import FAR, farthest, spread
from colsynth.model import Collective, Demand, Hops, Problem

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_WORK = 10_000_000
"""Arcs looked at before only some GPUs are searched from."""


class Distance(NamedTuple):
    """Ticks that data needs along some ranks, in order."""

    ticks: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class HopGraph:
    """The quickest hops between ranks, in both directions, as CSR arrays."""

    ranks: int
    forward: tuple[Ints, Ints, Ints]
    backward: tuple[Ints, Ints, Ints]

    def searches(self) -> int:
        """Return how many ranks can be searched from in reasonable time."""
        return max(4, _WORK // (len(self.forward[1]) + 1))

    def reach(self, starts: Flags, *, backward: bool = False) -> Ints:
        """Return the ticks from (backward: to) the nearest of some ranks, (N,)."""
        label = np.where(starts, 0, FAR)
        spread(*(self.backward if backward else self.forward), label)
        return label


def hop_graph(problem: Problem, hops: Hops) -> HopGraph:
    """Return the graph of the hops between ranks that may take part."""
    is_open = open_ranks(problem)
    source, target = hops.source.astype(np.int64), hops.target.astype(np.int64)
    pair = target * problem.topology.size + source
    # Hops are sorted by pair: the quickest of each run of equal pairs is kept.
    starts = np.nonzero(np.diff(pair, prepend=-1))[0]
    length = np.minimum.reduceat(hops.duration, starts) if len(starts) else pair
    source, target = source[starts], target[starts]
    kept = is_open[source] & is_open[target]
    source, target, length = source[kept], target[kept], length[kept]
    size = problem.topology.size
    return HopGraph(size, csr(size, source, target, length), csr(size, target, source, length))


def largest_distance(problem: Problem, graph: HopGraph) -> Distance:
    """Return the longest way that some data has to take, of those looked at.

    An allreduce brings chunk by chunk to its owner and from there to everyone.

    Raises
    ------
    InfeasibleError
        Some data has no way to where it is wanted (CS302).
    """
    if problem.collective is Collective.CUSTOM:
        return _of_demands(problem, graph)
    group = group_of(problem)
    if problem.root is not None:
        sources = np.array([members[problem.root] for members in problem.members], np.int64)
        inwards = problem.collective in (Collective.REDUCE, Collective.GATHER)
        return _farthest(problem, graph, sources, group, backward=inwards)
    everyone = np.nonzero(group >= 0)[0]
    chosen = everyone[:: -(-len(everyone) // graph.searches())]
    out = _farthest(problem, graph, chosen, group, backward=False)
    if len(chosen) < len(everyone):  # the farthest from there may be farther still
        end = np.array(out.ranks[-1:], np.int64)
        out = max(out, _farthest(problem, graph, end, group, backward=False))
    come = _farthest(problem, graph, chosen, group, backward=True)
    if problem.collective is not Collective.ALLREDUCE:
        return max(out, come, key=lambda way: way.ticks)
    return _there_and_back(graph, chosen, group)


def _farthest(
    problem: Problem, graph: HopGraph, sources: Ints, group: Ints, *, backward: bool
) -> Distance:
    arcs = graph.backward if backward else graph.forward
    distance, node = farthest(*arcs, sources, group)
    worst = int(np.argmax(distance))
    pair = (int(sources[worst]), int(node[worst]))
    ends = pair[::-1] if backward else pair
    if distance[worst] >= FAR:
        refuse_pair(problem.topology, *ends)
    return Distance(int(distance[worst]), ends)


def _there_and_back(graph: HopGraph, owners: Ints, group: Ints) -> Distance:
    """Return the longest way from anyone to the owner of a chunk and on to anyone."""
    come, first = farthest(*graph.backward, owners, group)
    go, last = farthest(*graph.forward, owners, group)
    worst = int(np.argmax(come + go))
    ranks = (int(first[worst]), int(owners[worst]), int(last[worst]))
    return Distance(int(come[worst] + go[worst]), ranks)


def _of_demands(problem: Problem, graph: HopGraph) -> Distance:
    found = Distance(0, ())
    known: dict[tuple[tuple[int, ...], bool], Ints] = {}
    for demand in problem.demands:
        near, far = _ends(demand)
        key = (near, demand.reduces)
        if key not in known:
            if len(known) >= graph.searches():
                continue
            starts = np.zeros(graph.ranks, np.bool_)
            starts[list(near)] = True
            known[key] = graph.reach(starts, backward=demand.reduces)
        way = known[key][list(far)]
        worst = int(np.argmax(way))
        pair = (near[0], far[worst])
        ends = pair[::-1] if demand.reduces else pair
        if way[worst] >= FAR:
            refuse_pair(problem.topology, *ends)
        found = max(found, Distance(int(way[worst]), ends), key=lambda x: x.ticks)
    return found


def _ends(demand: Demand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ranks that data may come from, or a sum go to, and those all of which count."""
    if demand.reduces:
        return demand.wanted, demand.holders
    return demand.holders, demand.wanted
