"""Steps -> times: every chunk starts as soon as it is there and its links are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import offsets
from colsynth.model import Direction, Hops, TimedPhase
from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.steps import Sent
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.phases import phase_of

Ints = NDArray[np.int64]


def packed(
    asked: Instance, sent: Sequence[Sent], item: Wants, start: tuple[Ints, Ints]
) -> TimedPhase:
    """Return the phase that sends the same chunks over the same hops, step after step.

    Within a step, of the transfers that can start first the one goes whose links have most
    left to pass: on equal links this takes no longer than the fullest of them. A step does not
    wait for another one where neither chunks nor links do.

    Parameters
    ----------
    asked : Instance
    sent : sequence of Sent
    item : Wants
        The phase.
    start : (int64 (links,), int64 (C,))
        When each link falls free, and when each chunk is there.
    """
    born = start[1]
    there = {(c, v): int(born[c]) for c, some in enumerate(asked.holders) for v in some}
    begun, hop, chunk = timed(asked.hops, sent, start[0], there)
    return phase_of(item.direction, asked.hops, begun, hop, item.number[chunk])


def timed(
    hops: Hops,
    sent: Sequence[Sent],
    free: Ints,
    there: dict[tuple[int, int], int],
    same: Mapping[tuple[int, int], tuple[int, int]] = MappingProxyType({}),
) -> tuple[Ints, Ints, Ints]:
    """Return start in ticks, hop and chunk of all transfers, in order of start.

    Parameters
    ----------
    hops : Hops
    sent : sequence of Sent
    free : int64 (links,)
        When each link falls free.
    there : dict of (int, int) to int
        When (chunk, rank) is ready at first; brought up to date.
    same : mapping of (int, int) to (int, int)
        (Chunk, rank) that are ready when another one is.
    """
    busy = free.copy()
    uses = [
        [(int(hops.links[i]), int(hops.begin[i]), int(hops.end[i])) for i in range(a, b)]
        for a, b in zip(hops.first.tolist(), hops.first[1:].tolist(), strict=False)
    ]
    source, target = hops.source.tolist(), hops.target.tolist()
    duration = hops.duration.tolist()
    rows: list[tuple[int, int, int]] = []
    for step in sorted({x.step for x in sent}):
        waiting = [x for x in sent if x.step == step]
        left = np.zeros(len(busy), np.int64)
        for x in waiting:
            for link, begin, end in uses[x.hop]:
                left[link] += end - begin
        while waiting:
            keys = [
                (
                    max(
                        there[x.chunk, source[x.hop]],
                        *(int(busy[link]) - begin for link, begin, _ in uses[x.hop]),
                    ),
                    -max(int(left[link]) for link, _, _ in uses[x.hop]),
                    -sum(int(left[link]) for link, _, _ in uses[x.hop]),
                    x.chunk,
                    x.hop,
                )
                for x in waiting
            ]
            place = min(range(len(keys)), key=keys.__getitem__)
            x, now = waiting.pop(place), keys[place][0]
            for link, begin, end in uses[x.hop]:
                busy[link] = now + end
                left[link] -= end - begin
            what = x.chunk, target[x.hop]
            what = same.get(what, what)
            there[what] = max(there.get(what, 0), now + duration[x.hop])
            rows.append((now, x.hop, x.chunk))
    rows.sort()
    begun, hop, chunk = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return begun, hop, chunk


class Row(NamedTuple):
    """A transfer outwards: ticks after the first one, hop and chunk number."""

    start: int
    hop: int
    chunk: int


def outward_rows(phase: TimedPhase, was: Ints) -> list[Row]:
    """Return all transfers in the order in which chunks spread outwards.

    Parameters
    ----------
    phase : TimedPhase
        In the direction of data.
    was : int64 (H,)
        Which of the phase's hops each outward hop is.
    """
    hop, start = phase.hop_of(), phase.starts()
    inwards = phase.direction is Direction.IN
    start = -start - phase.hops.duration[hop] if inwards else start
    order = np.argsort(start, kind="stable")
    now = np.empty_like(was)
    now[was] = np.arange(len(was))
    columns = start[order] - start.min(initial=0), now[hop[order]], phase.chunk[order]
    return [Row(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def steps_of(asked: Instance, rows: list[Row], item: Wants) -> tuple[Sent, ...]:
    """Return the steps of transfers in order: as early as they can be.

    Hops that the instance leaves out, and chunks that arrive twice, are dropped; what is left may
    be no schedule, but is a hint.
    """
    row = {old: h for h, old in enumerate(asked.was.tolist())}
    place = {number: c for c, number in enumerate(item.number.tolist())}
    level = {(c, v): 0 for c, some in enumerate(asked.holders) for v in some}
    found = []
    for _, hop, number in rows:
        h, c = row.get(hop), place[number]
        if h is None:
            continue
        u, v = int(asked.hops.source[h]), int(asked.hops.target[h])
        if (c, u) in level and (c, v) not in level:
            found.append(Sent(level[c, u], c, h))
            level[c, v] = level[c, u] + 1
    return tuple(sorted(found))


def on_all_hops(phase: TimedPhase, asked: Instance, hops: Hops) -> TimedPhase:
    """Return a phase on the hops of an instance as one on all hops that it was made of."""
    counts, runs = np.zeros((2, len(hops)), np.int64)
    counts[asked.was], runs[asked.was] = np.diff(phase.first), np.diff(phase.run_first)
    return replace(phase, hops=hops, first=offsets(counts), run_first=offsets(runs))
