"""Rings through all GPUs: paths inside boxes, joined where boxes have ways to each other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from colsynth.cost.routes import Route
from colsynth.model import Topology
from colsynth.synthesis.baselines.channel_rate import UNLIMITED, ChannelRate, shares
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.paths import visit_all

MOST = 32
"""Rings tried where their number is left open."""

_TRIES = 200
"""Ways to join the boxes that are tried for one ring."""

Joint = tuple[int, int]
"""The rank at which a ring leaves a box, and that at which it enters the next."""


class Ring(NamedTuple):
    """A circle of ranks.

    Parameters
    ----------
    ranks : tuple of int
    routes : tuple of Route
        From each rank to the next, at last from the last to the first.
    """

    ranks: tuple[int, ...]
    routes: tuple[Route, ...]


def find_rings(
    topology: Topology,
    count: int,
    rate: ChannelRate = UNLIMITED,
    most: int = MOST,
    chunks: int = 1,
    parts: int | None = 0,
) -> tuple[tuple[Ring, int], ...]:
    """Return rings and their shares, each along the ways that those before it use least.

    Parameters
    ----------
    topology : Topology
    count : int
        Number of rings; 0 takes as few as come within 5 % of the best of up to `most`, with
        shares that add up to a number of chunks that divides messages.
    rate : ChannelRate
        How fast one ring can be whatever its links.
    most : int
    chunks : int
        Largest sum of shares.
    parts : int
        What their sum is to divide; 0: a power of two (`Target.parts`). None: nothing.

    Returns
    -------
    tuple of (Ring, int)
        Empty where none is found.
    """
    ways = LoadedRoutes(topology)
    rings: list[Ring] = []
    speeds: list[Fraction] = []
    for _ in range(count or most):
        ranks = _circle(ways, topology.ranks_by_box)
        if ranks is None:
            return ()
        rings.append(Ring(ranks, ways.take(zip(ranks, (*ranks[1:], ranks[0]), strict=True))))
        speeds.append(rate.of(len(rings), len(rings) / ways.fullest))
    found = (1,) * count or shares(speeds, chunks, parts)
    return tuple(zip(rings, found, strict=False))


def _circle(ways: LoadedRoutes, groups: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """Return the ranks of one more ring, from box to box in order."""
    if len(groups) == 1:
        first = groups[0][0]
        return visit_all(ways, groups[0], first, first)
    for joints in islice(_joints(ways, groups), _TRIES):
        path: list[int] = []
        for number, ranks in enumerate(groups):
            part = visit_all(ways, ranks, joints[number - 1][1], joints[number][0])
            if part is None:
                break
            path += part
        else:
            return tuple(path)
    return None


def _joints(ways: LoadedRoutes, groups: tuple[tuple[int, ...], ...]) -> Iterator[list[Joint]]:
    """Yield, cheapest first at every box, where a ring may pass from each box to the next."""
    choices = []
    for number, ranks in enumerate(groups):
        after = groups[(number + 1) % len(groups)]
        pairs = [(a, b) for a in ranks for b in after if ways.joins(a, b)]
        choices.append(sorted(pairs, key=lambda pair: ways.cost(*pair)))
    yield from _fitting(groups, choices, [])


def _fitting(
    groups: tuple[tuple[int, ...], ...], choices: list[list[Joint]], chosen: list[Joint]
) -> Iterator[list[Joint]]:
    """Yield the joints that leave no box of several GPUs where they enter it."""
    number = len(chosen)
    for joint in choices[number]:
        if number and _turns(groups[number], chosen[-1], joint):
            continue
        if number + 1 < len(groups):
            yield from _fitting(groups, choices, [*chosen, joint])
        elif not _turns(groups[0], joint, chosen[0]):
            yield [*chosen, joint]


def _turns(ranks: tuple[int, ...], entry: Joint, leave: Joint) -> bool:
    return len(ranks) > 1 and entry[1] == leave[0]
