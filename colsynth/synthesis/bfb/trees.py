"""Trees of shortest paths: every GPU receives every chunk by a last hop that balances its links.

Receivers choose independently, since all neighbours that are nearer to a root hold its shard. So
any choice of last hops is a tree, and each GPU balances what enters it (`kernels/shortest.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from colsynth.bounds.direct import MOST_GPUS, Fabric, fabric_between, fabric_of
from colsynth.bounds.network import Ints, to_int64
from colsynth.errors import Diagnostic, InputError
from colsynth.kernels.shortest import MOST_LINKS, whole_chunks
from colsynth.model import Direction, Phase, Problem, Topology, Tree, TreeEdge
from colsynth.synthesis.bfb.rails import rail_ways
from colsynth.synthesis.forest.trees import merge_equal

MOST_HOPS = 2**27
"""Last hops of all chunks at all GPUs, 4 bytes each: 512 MB, and as many entries of trees."""


def may_grow(problem: Problem, chunks: int) -> bool:
    """Whether `shortest_phase` serves a problem without groups."""
    topology = problem.topology
    if not topology.is_direct or topology.size > MOST_GPUS:
        return False
    sides = zip(*topology.link_between, strict=True)
    most = max(max(Counter(side).values()) for side in sides)
    hops = sum(problem.weights) * chunks * topology.size
    return most <= MOST_LINKS and hops <= MOST_HOPS


def shortest_phase(problem: Problem, direction: Direction, chunks: int, *, by_step: bool) -> Phase:
    """Return a phase of shortest-path trees, `chunks` for each part of a root.

    Parameters
    ----------
    by_step : bool
        Whether each step has the least load; otherwise the sum over all steps has.

    Raises
    ------
    InputError
        CS309: some switch or NIC is shared and `rail_ways` finds none, or there are too many
        chunks.
    """
    rails = rail_ways(problem.topology)
    fabric = fabric_between(problem, direction, rails) if rails else fabric_of(problem, direction)
    start = np.concatenate(([0], np.cumsum(fabric.weight * chunks))).astype(np.int64)
    if int(start[-1]) * fabric.size > MOST_HOPS:
        phrase = f"{start[-1]} chunks at {fabric.size} GPUs are too many for shortest-path trees"
        note = f"chunks times GPUs are at most {MOST_HOPS}"
        raise InputError(Diagnostic("CS309", phrase, notes=(note,), help="take fewer chunks"))
    to_int64([int(start[-1]) * int(fabric.capacity.sum())], "loads of chunks")
    arcs = whole_chunks(fabric.first, fabric.tail, fabric.capacity, fabric.distance, start, by_step)
    trees = merge_equal(_trees(fabric, start, arcs))
    return Phase(direction, trees, _unit(problem.topology, fabric, arcs))


def _unit(topology: Topology, fabric: Fabric, arcs: Ints) -> Fraction:
    """Return the bytes per second that the narrowest link leaves each chunk."""
    chunks: list[int] = np.bincount(arcs[arcs >= 0], minlength=len(fabric.tail)).tolist()
    loads = Counter[int]()
    for route, load in zip(fabric.routes, chunks, strict=True):
        loads.update(dict.fromkeys(route, load))
    return min(topology.links[link].bandwidth / load for link, load in loads.items() if load)


def _trees(fabric: Fabric, start: Ints, arcs: Ints) -> Iterator[Tree]:
    """Yield the tree of every chunk; trees share their edges."""
    heads = np.repeat(np.arange(fabric.size), np.diff(fabric.first)).tolist()
    ends = zip(fabric.tail.tolist(), heads, fabric.routes, strict=True)
    edges = [TreeEdge(tail, head, route) for tail, head, route in ends]
    for root in np.nonzero(fabric.weight)[0].tolist():
        order = np.argsort(fabric.distance[:, root], kind="stable")[1:]
        for unit in range(start[root], start[root + 1]):
            yield Tree(root, 1, tuple(edges[arc] for arc in arcs[unit, order].tolist()))
