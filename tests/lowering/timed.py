"""Timed schedules of a small, obvious kind: one chunk after the other, as early as links allow."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import Collective, Direction, Hops, TimeBound, TimedPhase, TimedSchedule
from colsynth.synthesis.timed.hops import hops_of, reverse

IN, OUT = Direction.IN, Direction.OUT
REDUCING = (Collective.REDUCE_SCATTER, Collective.REDUCE, Collective.ALLREDUCE)


class Links:
    """Books transfers on links, each behind all that use them already."""

    def __init__(self, hops: Hops):
        self.hops = hops
        self.source, self.target = hops.source.tolist(), hops.target.tolist()
        self.free = defaultdict(int)

    def spans(self, hop):
        """Yield (link, begin, end) of a hop, in ticks after its start."""
        for at in range(self.hops.first[hop], self.hops.first[hop + 1]):
            yield int(self.hops.links[at]), int(self.hops.begin[at]), int(self.hops.end[at])

    def earliest(self, hop, ready):
        return max([ready, *(self.free[link] - begin for link, begin, _ in self.spans(hop))])

    def book(self, hop, ready):
        """Return (start, arrival) of a transfer that may not start before `ready`."""
        start = self.earliest(hop, ready)
        for link, _, end in self.spans(hop):
            self.free[link] = start + end
        return start, start + int(self.hops.duration[hop])


def spread(links, root, ready, chunk):
    """Yield (hop, start, chunk) that bring a chunk to all ranks, nearest in time first."""
    held, every = {root: ready}, set(links.source) | set(links.target)
    while set(held) != every:
        ways = [
            h
            for h, (source, target) in enumerate(zip(links.source, links.target, strict=True))
            if source in held and target not in held
        ]
        hop = min(ways, key=lambda h: (links.earliest(h, held[links.source[h]]), (h + chunk) % 7))
        start, held[links.target[hop]] = links.book(hop, held[links.source[hop]])
        yield hop, start, chunk


def travel(links, source, target, chunk):
    """Yield (hop, start, chunk) that bring a chunk to one rank over the fewest hops."""
    away = _distances(links, target)
    here, time = source, 0
    while here != target:
        ways = [
            h
            for h in range(len(links.hops))
            if links.source[h] == here and away[links.target[h]] == away[here] - 1
        ]
        hop = ways[chunk % len(ways)]
        start, time = links.book(hop, time)
        yield hop, start, chunk
        here = links.target[hop]


def _distances(links, target):
    away, layer = {target: 0}, {target}
    while layer:
        pairs = zip(links.source, links.target, strict=True)
        layer = {s for s, t in pairs if t in layer and s not in away}
        away.update(dict.fromkeys(layer, max(away.values()) + 1))
    return away


def as_phase(direction, hops, moves):
    """Return a phase of (hop, start, chunk); every transfer is a run of its own."""
    ordered = sorted(moves)
    first = np.searchsorted([hop for hop, _, _ in ordered], np.arange(len(hops) + 1))
    return TimedPhase(
        direction,
        hops,
        first.astype(np.int64),
        np.array([chunk for _, _, chunk in ordered], np.uint32),
        first.astype(np.int64),
        np.array([start for _, start, _ in ordered], np.int64),
        np.ones(len(ordered), np.int64),
    )


def _backwards(hops, order, moves):
    """Return moves on reversed hops, each once a hop of `order`, with time turned around."""
    timed = [(order[h], start, start + int(hops.duration[order[h]]), c) for h, start, c in moves]
    last = max(end for _, _, end, _ in timed)
    return [(hop, last - end, chunk) for hop, _, end, chunk in timed]


def schedule(problem, chunks_per_gpu=1, size=1 << 20):
    """Return a correct timed schedule of a collective that files can hold."""
    shards = len(problem.roots)
    chunk_bytes = Fraction(size, shards * chunks_per_gpu)
    ticks = choose_ticks(problem.topology, chunk_bytes)
    hops = hops_of(problem.topology, chunk_bytes, ticks)
    if problem.collective is Collective.ALLTOALL:
        shards **= 2
        phases = [(OUT, _exchange(hops, shards, chunks_per_gpu))]
    else:
        phases = _trees(problem, hops, chunks_per_gpu)
    last = max(s + int(hops.duration[h]) for _, moves in phases for h, s, _ in moves)
    return TimedSchedule(
        problem=problem,
        size=size,
        chunks_per_gpu=chunks_per_gpu,
        chunks=shards * chunks_per_gpu,
        chunk_bytes=chunk_bytes,
        tick=ticks.unit,
        ticks=last,
        phases=tuple(as_phase(direction, hops, moves) for direction, moves in phases),
        bound=TimeBound(ticks.unit, "one tick"),
    )


def _exchange(hops, pairs, each):
    links, ranks = Links(hops), round(pairs**0.5)
    found = []
    for shift in range(1, ranks):
        for source in range(ranks):
            target = (source + shift) % ranks
            for place in range(each):
                chunk = (source * ranks + target) * each + place
                found += travel(links, source, target, chunk)
    return found


def _trees(problem, hops, each):
    """Return the phases: reductions are copies on the reversed hops, run backwards."""
    chunks = [(place, root) for place in range(each) for root in range(len(problem.roots))]
    phases, links, ready = [], Links(hops), defaultdict(int)
    if problem.collective in REDUCING:
        backwards, order = reverse(hops)
        turned = Links(backwards)
        moves = [
            move
            for place, root in chunks
            for move in spread(turned, problem.roots[root], 0, root * each + place)
        ]
        moves = _backwards(hops, order.tolist(), moves)
        phases.append((IN, moves))
        for hop, start, chunk in moves:
            for link, _, end in links.spans(hop):
                links.free[link] = max(links.free[link], start + end)
            if links.target[hop] == problem.roots[chunk // each]:
                ready[chunk] = max(ready[chunk], start + int(hops.duration[hop]))
    if problem.collective not in (Collective.REDUCE_SCATTER, Collective.REDUCE):
        moves = []
        for place, root in chunks:
            chunk = root * each + place
            moves += spread(links, problem.roots[root], ready[chunk], chunk)
        phases.append((OUT, moves))
    return phases
