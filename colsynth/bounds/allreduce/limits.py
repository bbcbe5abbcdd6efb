"""Bounds on any allreduce, whatever its shape: the allreduce cut bound.

Take one byte of the message, and messages that each carry that byte of some sum.

- *A cut.* The GPUs of S all need to hear from the others, and the others from S; so the
  byte crosses the border of S at least once in each direction.
- *A partition* into k sets with a GPU each. Let r be the first set that has heard from all.
  Every other set has sent a message before, or r would not know of it: k - 1 messages of
  different senders. No other set was complete by then, so each receives a message later:
  k - 1 more. A message is counted where it leaves a set, or where it enters one, so
  2 (k - 1) M bytes cross the borders outwards, and as many inwards. (Gossip by one-way
  calls takes 2 (k - 1) of them: F. Harary and A. Schwenk, J. Franklin Inst. 297, 1974.)

Nodes in no set are switches: they have nothing to say, and what they pass on is counted at
the sets. Switches that add up or copy break the count; it holds for those that forward.
The bounds assume that a message carries a sum of bytes of one position, no codes across
positions. On direct networks of links with equal reverses the best partition is reached:
spanning trees that share no capacity (Tutte 1961, Nash-Williams 1961), each walked inwards
on one direction of its links and outwards on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Direction, Kind, Limit, Problem, Topology
from colsynth.model.bound import Cut
from colsynth.topology.reach import joined

_MOST_LEVELS = 40
"""Prices tried as thresholds for the sets of a partition."""


def first_limit(problem: Problem, cuts: Iterable[Cut]) -> Limit:
    """Return the least bound of the given cuts, single GPUs, and boxes."""
    topology = problem.topology
    found = [cut_limit(problem, cuts), *_of_parts(topology, [(gpu,) for gpu in topology.ranks])]
    boxes = _boxes(topology)
    if boxes is not None and len(boxes) > 1:
        found += _of_parts(topology, boxes)
    return min(found, key=lambda limit: limit.algbw)


def cut_limit(problem: Problem, cuts: Iterable[Cut]) -> Limit:
    """Return the least bound of the given cuts and single GPUs, whatever switches do."""
    topology = problem.topology
    found = [_around(topology, cut.nodes, cut.direction) for cut in cuts]
    found += [_around(topology, (_narrowest(topology, way),), way) for way in Direction]
    return min(found, key=lambda limit: limit.algbw)


def priced_limit(problem: Problem, prices: NDArray[np.float64], known: Limit) -> Limit:
    """Return the least of a known bound and those of partitions along links with high prices.

    Parameters
    ----------
    prices : float64 (m,)
        Of every link, as the linear program over roots found them.
    """
    topology = problem.topology
    levels = np.unique(np.round(prices, 9))[:-1]
    if len(levels) > _MOST_LEVELS:
        levels = levels[np.linspace(0, len(levels) - 1, _MOST_LEVELS).astype(np.int64)]
    found = [known]
    for level in levels:
        parts = _joined_by(topology, prices <= level + 1e-9)
        if len(parts) > 1:
            found += _of_parts(topology, parts)
            found += [_around(topology, part, way) for part in parts for way in Direction]
    return min(found, key=lambda limit: limit.algbw)


def _narrowest(topology: Topology, direction: Direction) -> int:
    """Return the GPU with the least bandwidth that leaves it, or enters it."""
    room = dict.fromkeys(topology.ranks, Fraction(0))
    for link in topology.links:
        node = link.source if direction is Direction.OUT else link.target
        if node in room:
            room[node] += link.bandwidth
    return min(room, key=lambda node: (room[node], node))


def _around(topology: Topology, nodes: Iterable[int], direction: Direction) -> Limit:
    """Return the bound of one cut: the data crosses it once."""
    part = tuple(sorted(nodes))
    bandwidth = _crossing(topology, (part,), direction)
    return Limit(bandwidth, (part,), direction, bandwidth)


def _of_parts(topology: Topology, parts: list[tuple[int, ...]]) -> Iterator[Limit]:
    """Yield the bounds of a partition: what leaves the sets, what enters them."""
    for direction in Direction:
        bandwidth = _crossing(topology, parts, direction)
        algbw = bandwidth / (2 * (len(parts) - 1))
        yield Limit(algbw, tuple(parts), direction, bandwidth)


def _crossing(
    topology: Topology, parts: Iterable[tuple[int, ...]], direction: Direction
) -> Fraction:
    """Return the bandwidth of the links that leave the sets, or enter them."""
    part_of = {node: number for number, part in enumerate(parts) for node in part}
    total = Fraction(0)
    for link in topology.links:
        ends = link.source, link.target
        near, far = ends if direction is Direction.OUT else ends[::-1]
        if near in part_of and part_of[near] != part_of.get(far):
            total += link.bandwidth
    return total


def _boxes(topology: Topology) -> list[tuple[int, ...]] | None:
    """Return the boxes with everything in them; None where some GPU is in none."""
    if -1 in topology.gpu_boxes:
        return None
    within: dict[int, list[int]] = {box: [] for box in topology.boxes}
    for index, node in enumerate(topology.nodes):
        if node.box in within:
            within[node.box].append(index)
    return [tuple(nodes) for nodes in within.values()]


def _joined_by(topology: Topology, free: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the sets with GPUs that the chosen links join, whichever way they point."""
    ends = [x.ends for x, chosen in zip(topology.links, free, strict=True) if chosen]
    parts = map(sorted, joined(range(len(topology.nodes)), ends))
    gpu = Kind.GPU
    return [tuple(x) for x in parts if any(topology.nodes[v].kind is gpu for v in x)]
