"""Trees of a circulant graph behind a single switch, built without packing.

All GPUs are put on a ring, and those at a few distances from each other, both ways round, are
neighbours. A tree sends along the largest distance first, as a number is written digit by digit:
with 1, 3 and 9 it reaches the GPUs 9 and 18 further on, each of these its neighbours 3 further
on, and all those their next ones. Trees of two roots differ only by the way round the ring from
one to the other. So every GPU sends and receives N - 1 shards, as with direct trees, and nothing
is lost, whatever the number of GPUs. Most of the load is on the smallest distance, and
threadblocks are shared out by load. A tree in which all ways are shortest and all connections
carry as much is slower: with 92 GPUs in one NVLink domain, an allreduce of 736 MiB takes 3.2 ms
by digits and 4.5 ms by balanced shortest ways, whose arrivals come in no regular order.

Sources: circulant graphs under breadth-first broadcast, arXiv 2202.03356 and 2309.13541.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Direction, Kind, Phase, Problem, Topology, Tree, TreeEdge

Ports = list[tuple[int, int]]
"""By rank, its link to the switch and its link from it."""


def circulant_phase(
    problem: Problem, direction: Direction, trees: int, distances: Sequence[int]
) -> Phase | None:
    """Return trees by digits; None where GPUs are no ports of one switch alone.

    Parameters
    ----------
    problem : Problem
        Without process groups.
    direction : Direction
    trees : int
        Per root; they are one of that weight.
    distances : sequence of int
        On the ring, of neighbours.

    Raises
    ------
    InputError
        CS210: the distances do not lead to all GPUs.
    """
    ports, size = single_switch(problem.topology), problem.topology.size
    if ports is None or problem.shards or size < 2:
        return None
    hops = hops_by_digits(size, distances)
    links = problem.topology.links
    slowest = min(links[link].bandwidth for pair in ports for link in pair)
    found = []
    for root in problem.roots:
        ends = [((root + a) % size, (root + b) % size) for a, b in hops]
        found.append(Tree(root, trees, tuple(_edge(ports, direction, *end) for end in ends)))
    return Phase(direction, tuple(found), slowest / (trees * (size - 1)))


def hops_by_digits(size: int, distances: Sequence[int]) -> list[tuple[int, int]]:
    """Return the hops (from, to) of the tree of root 0, by level.

    Parameters
    ----------
    size : int
        GPUs on the ring.
    distances : sequence of int

    Raises
    ------
    InputError
        CS210: not all GPUs are reached.
    """
    if 1 not in distances:
        spelt = "+".join(map(str, distances))
        phrase = f"grid {spelt}: these distances do not lead to all {size} GPUs"
        raise InputError(Diagnostic("CS210", phrase, help="add 1"))
    # Places are counted from the root, both ways, so that no way goes round the ring.
    whole = _Stretch(0, -((size - 1) // 2), size // 2, 0)
    found: list[tuple[int, int, int]] = []
    stretches = [whole]
    for distance in sorted(set(distances), reverse=True):
        found += [hop for stretch in stretches for hop in _hops(stretch, distance)]
        stretches = [part for stretch in stretches for part in _parts(stretch, distance)]
    return [(start % size, end % size) for _, start, end in sorted(found)]


class _Stretch(NamedTuple):
    """Places `low` to `high` of the ring, which get everything through `hub`, at a level."""

    hub: int
    low: int
    high: int
    level: int


def _hops(stretch: _Stretch, distance: int) -> Iterator[tuple[int, int, int]]:
    """Yield (level, from, to) along a distance from the hub to both ends of its stretch."""
    hub, low, high, level = stretch
    for sign, room in ((1, high - hub), (-1, hub - low)):
        for step in range(1, room // distance + 1):
            end = hub + sign * step * distance
            yield level + step, end - sign * distance, end


def _parts(stretch: _Stretch, distance: int) -> Iterator[_Stretch]:
    """Yield what each place that a distance leads to has around it, itself the hub."""
    hub, low, high, level = stretch
    first, last = -((hub - low) // distance), (high - hub) // distance
    for step in range(first, last + 1):
        place = hub + step * distance
        begin = low if step == first else place - (distance - 1) // 2
        end = high if step == last else place + distance // 2
        yield _Stretch(place, begin, end, level + abs(step))


def single_switch(topology: Topology) -> Ports | None:
    """Return the ports of a switch that joins all GPUs, which have no other links but to NICs."""
    size = topology.size
    rank = {node: number for number, node in enumerate(topology.ranks)}
    ups: list[list[int]] = [[] for _ in range(size)]
    downs: list[list[int]] = [[] for _ in range(size)]
    others = set()
    for number, link in enumerate(topology.links):
        for own, other, side in (
            (link.source, link.target, ups),
            (link.target, link.source, downs),
        ):
            if own in rank and topology.nodes[other].kind is not Kind.NIC:
                side[rank[own]].append(number)
                others.add(other)
    if len(others) != 1 or any(len(side) != 1 for side in (*ups, *downs)):
        return None
    if topology.nodes[others.pop()].kind is not Kind.SWITCH:
        return None
    return [(up[0], down[0]) for up, down in zip(ups, downs, strict=True)]


def _edge(ports: Ports, direction: Direction, parent: int, child: int) -> TreeEdge:
    source, target = (parent, child) if direction is Direction.OUT else (child, parent)
    return TreeEdge(parent, child, (ports[source][0], ports[target][1]))
