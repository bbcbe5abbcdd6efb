"""Small valid timed schedules: every chunk along a breadth-first tree, one after the other."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import (
    Collective,
    Demand,
    Direction,
    Kind,
    Problem,
    TimeBound,
    TimedPhase,
    TimedSchedule,
    Topology,
)
from colsynth.synthesis.timed.hops import hops_of, reverse
from tests.reference.graphs import random_topology
from tests.reference.timed import conditions, transfers


class Unreachable(Exception):
    """No tree reaches all that want a chunk."""


def assemble(direction, hops, moves) -> TimedPhase:
    """Return a phase of (hop, start, chunk) transfers."""
    moves = sorted(moves)
    stride = hops.stride.tolist() if len(hops) else []
    runs = []
    for hop, start, _ in moves:
        if runs and runs[-1][0] == hop and start == runs[-1][1] + runs[-1][2] * stride[hop]:
            runs[-1][2] += 1
        else:
            runs.append([hop, start, 1])
    rows = range(len(hops) + 1)
    return TimedPhase(
        direction,
        hops,
        first=np.searchsorted([hop for hop, _, _ in moves], rows),
        chunk=np.array([chunk for _, _, chunk in moves], np.uint16),
        run_first=np.searchsorted([hop for hop, _, _ in runs], rows),
        run_start=np.array([start for _, start, _ in runs], np.int64),
        run_length=np.array([length for _, _, length in runs], np.int64),
    )


def moves_of(phase) -> list[tuple[int, int, int]]:
    """Return (hop, start, chunk) of all transfers."""
    return [(t.hop, t.start, t.chunk) for t in transfers(phase)]


def with_ticks(schedule) -> TimedSchedule:
    """Return a schedule that says rightly when its last transfer ends."""
    ends = [t.end for phase in schedule.phases for t in transfers(phase)]
    return replace(schedule, ticks=max(ends, default=0))


class Links:
    """When links are taken."""

    def __init__(self):
        self.taken = defaultdict(list)

    def windows(self, hops, hop, start):
        for place in range(hops.first[hop], hops.first[hop + 1]):
            yield (
                int(hops.links[place]),
                start + int(hops.begin[place]),
                start + int(hops.end[place]),
            )

    def earliest(self, hops, hop, start):
        """Return the first free start at or after `start`, and take it."""
        while True:
            wait = 0
            for link, begin, end in self.windows(hops, hop, start):
                wait = max(
                    [wait] + [e - begin for b, e in self.taken[link] if b < end and begin < e]
                )
            if not wait:
                break
            start += wait
        for link, begin, end in self.windows(hops, hop, start):
            self.taken[link].append((begin, end))
        return start


def tree(hops, holders, wanted, among):
    """Return hops that lead to all wanted ranks, breadth first and without dead ends."""
    by = dict.fromkeys(holders)
    queue = sorted(holders)
    for rank in queue:
        for hop in np.flatnonzero(hops.source == rank).tolist():
            target = int(hops.target[hop])
            if target not in by and target in among:
                by[target] = hop
                queue.append(target)
    if not set(wanted) <= set(by):
        raise Unreachable
    used = set()
    for rank in sorted(wanted):
        hop = by[rank]
        while hop is not None and hop not in used:
            used.add(hop)
            hop = by[int(hops.source[hop])]
    return [by[rank] for rank in queue if by[rank] in used]


def allowed(problem, rank):
    """Return the ranks that may pass on a chunk that a rank holds or wants."""
    if problem.transit or not problem.groups:
        return set(range(problem.topology.size))
    return set(next(members for members in problem.groups if rank in members))


def copy(hops, chunk, ready, wanted, among, links):
    """Return transfers of one chunk."""
    has, moves = dict(ready), []
    for hop in tree(hops, ready, wanted, among):
        source, target = int(hops.source[hop]), int(hops.target[hop])
        start = links.earliest(hops, hop, has[source])
        has[target] = start + int(hops.duration[hop])
        moves.append((hop, start, chunk))
    return moves


def reduce(problem, hops, found, links):
    """Return transfers of all sums: copies on the reversed hops, with time turned around."""
    (turned, again), back = reverse(hops), Links()
    moves = []
    for chunk, holders, final in found:
        moves += copy(turned, chunk, {final: 0}, holders, allowed(problem, final), back)
    last = max((start + int(turned.duration[hop]) for hop, start, _ in moves), default=0)
    mended = [
        (int(again[hop]), last - start - int(turned.duration[hop]), c) for hop, start, c in moves
    ]
    for hop, start, _ in mended:
        for link, begin, end in links.windows(hops, hop, start):
            links.taken[link].append((begin, end))
    return mended


def schedule_of(problem: Problem, size=960, each=1) -> TimedSchedule:
    """Return a valid schedule; its bound says nothing."""
    found = conditions(problem, each)
    n = len(problem.members[0])
    whole = problem.collective in (Collective.BROADCAST, Collective.REDUCE)
    shares = each if whole else n * each
    if problem.collective is Collective.CUSTOM:
        shares = len(found)
    chunk_bytes = Fraction(size, shares)
    ticks = choose_ticks(problem.topology, chunk_bytes)
    hops = hops_of(problem.topology, chunk_bytes, ticks)
    links, phases, ready = Links(), [], {}
    kinds = {kind for found_kinds, _, _ in found for kind in found_kinds}
    if "sum" in kinds:
        asked = [(c, h, min(w)) for c, (ks, h, w) in enumerate(found) if "sum" in ks]
        phases.append(assemble(Direction.IN, hops, reduce(problem, hops, asked, links)))
        for t in transfers(phases[0]):
            if {t.target} == found[t.chunk][2]:
                ready[t.chunk] = max(t.end, ready.get(t.chunk, 0))
    if kinds & {"copy", "spread"}:
        moves = []
        for chunk, (ks, holders, wanted) in enumerate(found):
            if "spread" in ks:
                (owner,) = wanted
                start = {owner: ready.get(chunk, 0)}
                moves += copy(hops, chunk, start, holders, allowed(problem, owner), links)
            elif "copy" in ks and not wanted <= holders:
                start = dict.fromkeys(holders, 0)
                moves += copy(hops, chunk, start, wanted, allowed(problem, min(holders)), links)
        phases.append(assemble(Direction.OUT, hops, moves))
    return with_ticks(
        TimedSchedule(
            problem=problem,
            size=size,
            chunks_per_gpu=each,
            chunks=len(found),
            chunk_bytes=chunk_bytes,
            tick=ticks.unit,
            ticks=0,
            phases=tuple(phases),
            bound=TimeBound(Fraction(0), "nothing"),
        )
    )


def random_fabric(seed) -> Topology:
    """Return a random topology with latencies and switches of both kinds."""
    rng = random.Random(seed)
    topology = random_topology(seed, most_gpus=6, directed=True)
    late = (Fraction(0), Fraction(1, 10**7), Fraction(3, 10**7), Fraction(1, 10**6))
    links = tuple(replace(link, latency=rng.choice(late)) for link in topology.links)
    nodes = tuple(
        replace(node, capabilities=("store-and-forward",))
        if node.kind is not Kind.GPU and rng.random() < 0.5
        else node
        for node in topology.nodes
    )
    return replace(topology, links=links, nodes=nodes)


def random_problem(seed) -> Problem:
    """Return a random problem on a random fabric: groups, transit, custom demands."""
    rng = random.Random(seed)
    topology = random_fabric(seed)
    collective = rng.choice(list(Collective))
    ranks = list(range(topology.size))
    groups: tuple[tuple[int, ...], ...] = ()
    if rng.random() < 0.4:
        rng.shuffle(ranks)
        size = rng.randint(1, max(1, len(ranks) // 2))
        groups = tuple(
            tuple(ranks[i * size : (i + 1) * size])
            for i in range(rng.randint(1, len(ranks) // size))
        )
    if collective is Collective.CUSTOM:
        demands = tuple(random_demand(rng, topology.size) for _ in range(rng.randint(1, 3)))
        return Problem(topology, collective, demands=demands)
    members = len(groups[0]) if groups else topology.size
    root = rng.randrange(members) if collective.rooted else None
    return Problem(topology, collective, root, groups, transit=True)


@cache
def random_schedule(seed) -> TimedSchedule:
    """Return a valid schedule of a random problem, without transit where that is possible."""
    problem = random_problem(seed)
    each = seed % 3 + 1
    try:
        return schedule_of(replace(problem, transit=False), each=each)
    except Unreachable:
        return schedule_of(problem, each=each)


def random_demand(rng, ranks):
    def some(most):
        return tuple(sorted(rng.sample(range(ranks), rng.randint(1, most))))

    reduces = rng.random() < 0.5
    return Demand(some(ranks), some(1 if reduces else ranks), rng.randint(1, 2), reduces)
