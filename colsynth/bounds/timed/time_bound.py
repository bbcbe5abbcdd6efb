"""Times that no timed schedule of a problem can beat.

A link is busy for bytes / bandwidth with every chunk, has one chunk at a time, and delivers a
latency later. That holds for any messages, of one chunk or of several. So a set of GPUs that m
chunks must enter needs the least T for which its incoming links together have passed m whole
chunks (`least_times`); where a set begins after its first chunk can arrive, or data has a way
to go after it, that time is added link by link. Cuts tried: every GPU, every box, what hangs
together below each tier of switches, the GPUs of each switch, the least ratio over all cuts
(`bounds.trees`), and for all-to-all the sets that sweeps over the topology find. Beside cuts
there are the links of all parts of a partition together, the distances of all pairs together,
and the longest way that some chunk has to go.

Reduce-scatter and allgather may overlap in an allreduce, so their times cannot be added:
both count at every cut and every set of links together instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.network import refuse_unreachable
from colsynth.bounds.offsets import offsets
from colsynth.bounds.timed.cut_demand import CutDemand, PhaseDemand, cut_demands, group_of
from colsynth.bounds.timed.distances import HopGraph, hop_graph, largest_distance
from colsynth.bounds.timed.gpu_sets import (
    Named,
    describe,
    partitions,
    sets_of,
    sweeps,
    tightest,
)
from colsynth.bounds.timed.ticks import Ticks
from colsynth.bounds.timed.wires import Wires, csr, least_times, open_ranks, wires_of
from colsynth.kernels.cuts import smallest_cut_ratio
from colsynth.kernels.distances import total_distance
from colsynth.model import Collective, Hops, Problem, TimeBound
from colsynth.model.problem import PHASES, Direction

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Found = tuple[int, str]
"""Ticks, and what takes them."""

_FLOW_WORK = 2_000_000
"""GPUs times links up to which the least ratio over all cuts is searched."""
_PAIR_WORK = 20_000_000
"""GPUs times links up to which all pairs' distances are added up."""


def time_bound(
    problem: Problem,
    chunks_per_gpu: int,
    chunk_bytes: Fraction,
    hops: Hops,
    ticks: Ticks,
    reached: int | None = None,
) -> TimeBound:
    """Return the largest lower bound found, in whole ticks, and its reason.

    Parameters
    ----------
    problem : Problem
    chunks_per_gpu : int
    chunk_bytes : Fraction
    hops : Hops
        Of the topology, in the direction data takes.
    ticks : Ticks
        The unit of `hops`.
    reached : int, optional
        Ticks that some schedule takes: no bound beyond it can exist, so the search ends
        when one meets it.

    Raises
    ------
    InfeasibleError
        Some data has no way to where it is wanted (CS302).
    InputError
        Numbers do not fit 64 bits (CS301).
    """
    phases = cut_demands(problem, chunks_per_gpu)
    graph = hop_graph(problem, hops)
    distance = largest_distance(problem, graph)
    names = [problem.topology.gpu_names[rank] for rank in distance.ranks]
    wires = wires_of(problem, chunk_bytes, ticks, *_edges(phases, graph), hops.links)
    most, reason = distance.ticks, f"distance from {' to '.join(names)}"
    cheapest_first = (
        _each_rank(problem, phases, wires),
        _together(problem, phases, wires),
        _pairs(problem, chunks_per_gpu, wires),
        _each_set(problem, phases, wires),
    )
    for time, what in chain.from_iterable(cheapest_first):
        if time > most:
            most, reason = time, what
        if most == reached:
            break
    return TimeBound(most * ticks.unit, reason if most else "nothing has to move")


def _edges(phases: tuple[PhaseDemand, ...], graph: HopGraph) -> tuple[Ints, Ints]:
    """Return the ticks before each rank can have data, and from it to where data is wanted."""
    starts = np.any([phase.starts for phase in phases], axis=0)
    ends = np.any([phase.ends for phase in phases], axis=0)
    return graph.reach(starts), graph.reach(ends, backward=True)


def _sum(demands: list[CutDemand]) -> CutDemand:
    return CutDemand(*(np.sum(ways, axis=0) for ways in zip(*demands, strict=True)))


def _each_rank(problem: Problem, phases: tuple[PhaseDemand, ...], wires: Wires) -> Iterator[Found]:
    """Yield the slowest ingress and the slowest egress of a GPU."""
    topology = problem.topology
    need = _sum([phase.of_each_rank() for phase in phases])
    for word, ends, counts in (
        ("ingress", wires.head, need.entering),
        ("egress", wires.tail, need.leaving),
    ):
        by_node = np.zeros(wires.nodes, np.int64)
        by_node[list(topology.ranks)] = counts
        chosen = np.nonzero(by_node)[0]
        sizes = np.bincount(ends, minlength=wires.nodes)[chosen]
        for node in chosen[sizes == 0]:
            alone = np.arange(wires.nodes) == node
            refuse_unreachable(topology, ~alone if word == "ingress" else alone, forward=True)
        links = np.argsort(ends, kind="stable")
        links = links[by_node[ends[links]] > 0]
        times = least_times(by_node[chosen], offsets(sizes), links, wires)
        if len(times):
            worst = int(np.argmax(times))
            yield int(times[worst]), f"{word} of {topology.nodes[chosen[worst]].name}"


def _each_set(problem: Problem, phases: tuple[PhaseDemand, ...], wires: Wires) -> Iterator[Found]:
    """Yield what every candidate set of GPUs needs, inwards and outwards."""
    topology = problem.topology
    ranks = np.array(topology.ranks, np.int64)
    is_open = open_ranks(problem)
    switched = len(ranks) < len(topology.nodes)
    for name, inside in _candidates(problem, wires):
        need = _sum([phase.of_ranks(inside) for phase in phases])
        within, without = ranks[inside & is_open], ranks[~inside & is_open]
        nodes = np.zeros(wires.nodes, np.bool_)
        nodes[within] = True
        if need.entering[0]:
            far = tightest(wires, within, without) if switched else nodes
            yield _cut(problem, f"links into {name}", need.entering, ~far, wires)
        if need.leaving[0]:
            near = ~tightest(wires, without, within) if switched else nodes
            yield _cut(problem, f"links out of {name}", need.leaving, near, wires)


def _cut(problem: Problem, name: str, need: Ints, inside: Flags, wires: Wires) -> Found:
    """Return the time that data needs to leave a set of nodes."""
    links = np.nonzero(inside[wires.tail] & ~inside[wires.head])[0]
    if len(links) == 0:
        refuse_unreachable(problem.topology, inside, forward=True)
    return int(least_times(need, np.array([0, len(links)]), links, wires)[0]), name


def _candidates(problem: Problem, wires: Wires) -> Iterator[Named]:
    yield from sets_of(problem.topology, wires)
    if problem.collective is Collective.ALLTOALL:
        yield from sweeps(problem.topology, wires, group_of(problem))
    elif problem.collective in PHASES and len(problem.members) == 1:
        yield from _least_ratio(problem, wires)


def _least_ratio(problem: Problem, wires: Wires) -> Iterator[Named]:
    """Yield the set with the least rate of links out of it per root, for every phase."""
    members = problem.members[0]
    if len(members) * len(wires.tail) > _FLOW_WORK or len(members) < 2:
        return
    gpus = np.array([problem.topology.ranks[rank] for rank in members], np.int64)
    weight = np.zeros(wires.nodes, np.int64)
    weight[gpus if problem.root is None else gpus[problem.root]] = 1
    # Rounding is harmless: whatever set comes out is worked out exactly afterwards.
    scale = 2**58 / (len(gpus) * np.sum(1 / wires.busy))
    capacity = np.maximum(scale / wires.busy, 1).astype(np.int64)
    directions = PHASES[problem.collective]
    for direction in directions[:1] if problem.topology.is_symmetric else directions:
        ends = (wires.tail, wires.head)
        tail, head = ends if direction is Direction.OUT else ends[::-1]
        _, _, found = smallest_cut_ratio(wires.nodes, tail, head, capacity, gpus, weight)
        inside = found[list(problem.topology.ranks)]
        yield describe(problem.topology, inside), inside


def _together(problem: Problem, phases: tuple[PhaseDemand, ...], wires: Wires) -> Iterator[Found]:
    """Yield what all parts of a partition need together.

    Nothing is copied between the parts, so what enters some part has left another.
    """
    topology = problem.topology
    ranks = np.array(topology.ranks, np.int64)
    each = np.full(wires.nodes, -1, np.int64)
    each[ranks] = np.arange(len(ranks))
    families = [("GPU", each), *partitions(topology, wires)]
    for word, part in families:
        need = _demand_of_parts(phases, part[ranks])
        crosses = part[wires.tail] != part[wires.head]
        for way, ends in (("into", wires.head), ("out of", wires.tail)):
            links = np.nonzero(crosses & (part[ends] >= 0))[0]
            if need and len(links):
                total = np.array([need], np.int64)
                ticks = least_times(total, np.array([0, len(links)]), links, wires)
                yield int(ticks[0]), f"links {way} every {word or 'part'} together"


def _demand_of_parts(phases: tuple[PhaseDemand, ...], part: Ints) -> int:
    """Return how often chunks must pass from part to part, at least."""
    values = np.unique(part)
    total = 0
    for phase in phases:
        if len(values) == len(part):
            ways = [phase.of_each_rank()]
        else:
            ways = [phase.of_ranks(part == value) for value in values]
        entering = sum(int(way.entering.sum()) for way in ways)
        leaving = sum(int(way.leaving.sum()) for way in ways)
        total += max(entering, leaving)
    return total


def _pairs(problem: Problem, chunks_per_gpu: int, wires: Wires) -> Iterator[Found]:
    """Yield, for all-to-all, what the shortest ways of all pairs take of all links."""
    group = group_of(problem)
    members = int((group >= 0).sum())
    if problem.collective is not Collective.ALLTOALL or members * len(wires.tail) > _PAIR_WORK:
        return
    ranks = np.array(problem.topology.ranks, np.int64)
    by_node = np.full(wires.nodes, -1, np.int64)
    by_node[ranks] = group
    graph = csr(wires.nodes, wires.tail, wires.head, np.ones(len(wires.tail), np.int64))
    total = total_distance(*graph, ranks[group >= 0], by_node)
    if total > 0:
        links = np.arange(len(wires.tail))
        need = np.array([total * chunks_per_gpu], np.int64)
        ticks = least_times(need, np.array([0, len(links)]), links, wires)
        yield int(ticks[0]), "the distances of all pairs over all links"
