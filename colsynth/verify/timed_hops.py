"""Whether every hop is a path from GPU to GPU that its links can serve in the time given.

Link i of a hop is occupied from b[i] to e[i]. A chunk of m[i] = bytes / bandwidth seconds
can pass within these windows if it starts over link i at some s[i] with

    s[i] >= b[i],  s[i] + m[i] <= e[i],  s[i + 1] >= s[i] + step[i]

and is there when the last link has passed its latency, s + latency + m. There step[i] is
latency[i] + m[i] into a node that stores and forwards, and otherwise latency[i] + max(0, m[i] -
m[i + 1]): the head must have arrived, and no byte leaves before it came. The earliest s is
best, so windows are long enough exactly if for all j <= i

    e[i] - b[j] >= step[j] + ... + step[i - 1] + m[i]

and the arrival, a window's end without a window, is late enough if the same holds for it
with latency[i] + m[i] of the last link.

Both sides are rounded to whole ticks only where that loses nothing.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Hops, Kind, TimedPhase, TimedSchedule
from colsynth.verify.timed_form import MOST
from colsynth.verify.timed_names import failure, gpu, route

Ints = NDArray[np.int64]

_STORES = "store-and-forward"
"""Capability of a switch or NIC that sends a chunk on only when all of it is there."""

_LinkKind = tuple[Fraction, Fraction, bool]
"""Latency and transfer time in ticks, and whether the node it leads into stores."""


def check_hops(schedule: TimedSchedule, phase: TimedPhase) -> None:
    """Check paths and times of the hops of a phase.

    Raises
    ------
    VerificationError
        CS511, naming the hop and its link.
    """
    _check_paths(schedule, phase.hops)
    _check_times(schedule, phase.hops)


def _check_paths(schedule: TimedSchedule, hops: Hops) -> None:
    topology = schedule.problem.topology
    source = np.array([link.source for link in topology.links], np.int64)[hops.links]
    target = np.array([link.target for link in topology.links], np.int64)[hops.links]
    passes = np.array([node.kind is not Kind.GPU for node in topology.nodes], np.bool_)
    ranks = np.array(topology.ranks, np.int64)
    begins, ends = hops.first[:-1], hops.first[1:] - 1
    expected = np.empty(hops.links.size, np.int64)
    expected[1:] = target[:-1]
    expected[begins] = ranks[hops.source]
    through = np.ones(hops.links.size, np.bool_)
    through[1:] = passes[source[1:]]
    through[begins] = True
    wrong = (source != expected) | ~through
    wrong[ends] |= target[ends] != ranks[hops.target]
    wrong[begins] |= hops.source == hops.target
    if np.any(wrong):
        place = int(np.flatnonzero(wrong)[0])
        text = f"link {topology.link_name(int(hops.links[place]))} is out of place"
        raise _hop_failure(schedule, hops, place, text)


def _check_times(schedule: TimedSchedule, hops: Hops) -> None:
    kinds, kind_of = _link_kinds(schedule)
    sizes = np.diff(hops.first)
    for size in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == size)
        place = hops.first[chosen][:, None] + np.arange(size)
        rows = kind_of[hops.links[place]]
        code = np.zeros(chosen.size, np.int64)
        for column in rows.T:
            code = np.unique(code * len(kinds) + column, return_inverse=True)[1]
        _, examples = np.unique(code, return_index=True)
        least = np.array([_least([kinds[k] for k in rows[e]]) for e in examples.tolist()])
        ends = np.column_stack((hops.end[place], hops.duration[chosen]))
        for i in range(size + 1):
            for j in range(min(i + 1, size)):
                given = ends[:, i] - hops.begin[place[:, j]]
                wrong = np.flatnonzero(given < least[code, j, i])
                if wrong.size:
                    hop, need = int(wrong[0]), int(least[code[wrong[0]], j, i])
                    last = int(place[hop, min(i, size - 1)])
                    window = int(hops.begin[place[hop, j]]), int(ends[hop, i])
                    entered = None if i == j else int(place[hop, j])
                    text = _too_short(schedule, hops, (entered, last, i == size), window, need)
                    raise _hop_failure(schedule, hops, last, text)


def _link_kinds(schedule: TimedSchedule) -> tuple[list[_LinkKind], Ints]:
    """Return the different kinds of link, and the kind of every link."""
    topology = schedule.problem.topology
    stores = [_STORES in node.capabilities for node in topology.nodes]
    number: dict[tuple[int, int, int, int, bool], int] = {}
    kinds: list[_LinkKind] = []
    kind_of = np.empty(len(topology.links), np.int64)
    for index, link in enumerate(topology.links):
        slow, late = link.bandwidth, link.latency
        key = (slow.numerator, slow.denominator, late.numerator, late.denominator)
        found = number.setdefault((*key, stores[link.target]), len(kinds))
        if found == len(kinds):
            moving = schedule.chunk_bytes / slow / schedule.tick
            kinds.append((late / schedule.tick, moving, stores[link.target]))
        kind_of[index] = found
    return kinds, kind_of


def _least(links: list[_LinkKind]) -> list[list[int]]:
    """Return the fewest ticks from the begin of link j to the end of link i, at [j][i].

    The last column is of the arrival behind the last link.
    """
    steps = [
        latency + (moving if stores else max(Fraction(0), moving - following[1]))
        for (latency, moving, stores), following in pairwise(links)
    ]
    size = len(links)
    table = [[0] * (size + 1) for _ in range(size)]
    for j in range(size):
        for i in range(j, size):
            table[j][i] = min(ceil(sum(steps[j:i], Fraction(0)) + links[i][1]), MOST)
        whole = sum(steps[j:], Fraction(0)) + links[-1][0] + links[-1][1]
        table[j][size] = min(ceil(whole), MOST)
    return table


def _too_short(
    schedule: TimedSchedule,
    hops: Hops,
    places: tuple[int | None, int, bool],
    window: tuple[int, int],
    need: int,
) -> str:
    """Return which window of time does not hold a chunk.

    `places` are where it enters, None for the last link alone, the last link, and whether
    the window ends with the arrival behind it.
    """
    entered, last, arrives = places
    begin, end = window
    name = schedule.problem.topology.link_name(int(hops.links[last]))
    if entered is None:
        return f"link {name} is occupied for {end - begin} ticks, a chunk takes {need}"
    first = schedule.problem.topology.link_name(int(hops.links[entered]))
    done = "arrived behind" if arrives else "left"
    text = f"a chunk that enters {first} at tick {begin} has not {done} {name} at tick {end}"
    return f"{text}: it takes {need} ticks"


def _hop_failure(schedule: TimedSchedule, hops: Hops, place: int, text: str) -> Exception:
    hop = int(np.searchsorted(hops.first, place, side="right")) - 1
    source, target = int(hops.source[hop]), int(hops.target[hop])
    phrase = f"the hop from {gpu(schedule, source)} to {gpu(schedule, target)} is impossible"
    return failure("CS511", f"{phrase}: {text}", f"it takes {route(schedule, hops, hop)}")
