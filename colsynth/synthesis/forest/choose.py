"""Which packing to take: many are made where they are quick, and the low or the few kept.

The packer serves GPUs in some order and prefers some arcs, on which heights and splits depend.
So graphs are packed by every partition into clusters, as one, and as one in other orders, which
are drawn from a fixed seed; the larger the graph, the fewer of these. The lowest trees suit
small messages and deep machines; the fewest take the fewest threadblocks and steps, and may be
higher.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from colsynth.bounds.network import Ints
from colsynth.synthesis.forest.digraph import Digraph, Packed, lowered, pack_flat, quality
from colsynth.synthesis.forest.merging import merged
from colsynth.synthesis.forest.nested import packings

_MOST_WORK = 2**22
"""Packings by partitions times the cube of the nodes, which is about what a packing takes. So 64
nodes are packed in up to 16 ways, 128 in two, from 162 on in one. At 128 nodes (8 MI250 boxes)
each way takes 0.15 s; of hypercube:7, merging trees takes another 1.2 s."""
_MOST_ORDERS = 48
"""Orders that are tried on the smallest graphs."""
_WORK = 2**19
"""Orders times the cube of the nodes: all up to 22 nodes, two for 64, one for 80, then none."""
_MERGING = 2**19
"""The same for the packings of which trees are merged; one is, wherever several could be made."""

PREFERENCES = ("low", "few", "plain")


def pack_best(graph: Digraph, roots: Ints, trees: Ints, prefer: str = "low") -> list[Packed] | None:
    """Return spanning trees, ``trees[i]`` of root ``roots[i]``; None where cuts forbid them.

    Parameters
    ----------
    graph : Digraph
    roots, trees : int64 (r,)
    prefer : str
        ``"low"``: the least height, then the fewest trees. ``"few"``: the fewest different
        trees, then the least height. ``"plain"``: no other orders are tried, and nothing is
        merged. Graphs beyond `_MOST_WORK` are packed once, and made lower.
    """
    work = graph.size**3
    if work > _MOST_WORK:
        return next(_lowered_packings(graph, roots, trees), None)
    question = _Question.of(graph, roots, trees)
    found = [*_packings(question, _MOST_WORK // work)]
    if not found:
        return None
    if prefer == "plain":
        return min(found, key=lambda packed: quality(graph, packed))
    single = int(trees.max()) == 1
    first = min(found, key=lambda packed: _low(graph, packed))
    orders = min(_MOST_ORDERS, _WORK // work)
    fewer = prefer == "few" and not single
    if orders and (fewer or _height(graph, first) > _least_height(graph, roots)):
        found += _other_packings(question, orders)
    if fewer:
        return _fewest(graph, found)
    lowest = min(found, key=lambda packed: _low(graph, packed))
    return lowest if _height(graph, lowest) < _height(graph, first) else first


class _Question(NamedTuple):
    """What to pack, as a key: a search packs the same graph with several preferences."""

    size: int
    arrays: tuple[bytes, ...]

    @classmethod
    def of(cls, graph: Digraph, roots: Ints, trees: Ints) -> _Question:
        size, *arrays = *graph, roots, trees
        return cls(size, tuple(array.tobytes() for array in arrays))

    def asked(self) -> tuple[Digraph, Ints, Ints]:
        """Return graph, roots and trees."""
        *arcs, roots, trees = (np.frombuffer(array, np.int64).copy() for array in self.arrays)
        return Digraph(self.size, *arcs), roots, trees


@lru_cache(maxsize=4)
def _packings(question: _Question, most: int) -> tuple[list[Packed], ...]:
    return tuple(islice(_lowered_packings(*question.asked()), most))


@lru_cache(maxsize=4)
def _other_packings(question: _Question, orders: int) -> tuple[list[Packed], ...]:
    graph, roots, trees = question.asked()
    others = _in_other_orders(graph, roots, trees, orders)
    return tuple(lowered(graph, packed) for packed in others)


def _lowered_packings(graph: Digraph, roots: Ints, trees: Ints) -> Iterator[list[Packed]]:
    return (lowered(graph, packed) for packed in packings(graph, roots, trees))


def _low(graph: Digraph, packed: list[Packed]) -> tuple[int, int, int]:
    """Return what the lowest trees have least of: height, then number, then total height."""
    count, height, total = quality(graph, packed)
    return height, count, total


def _height(graph: Digraph, packed: list[Packed]) -> int:
    return quality(graph, packed)[1]


def _least_height(graph: Digraph, roots: Ints) -> int:
    """Return the height that no trees can be below: the longest of the shortest paths."""
    return max(_eccentricity(graph, int(root)) for root in roots)


def _fewest(graph: Digraph, found: list[list[Packed]]) -> list[Packed]:
    """Return the fewest trees that merging makes of some packings."""
    most = max(1, _MERGING // graph.size**3)
    start = sorted(found, key=lambda packed: quality(graph, packed))[:most]
    fewer = (choice for packed in start for choice in _fewer(graph, packed))
    return min((start[0], *fewer), key=lambda packed: quality(graph, packed))


def _fewer(graph: Digraph, packed: list[Packed]) -> Iterator[list[Packed]]:
    """Yield packings of fewer trees: no higher ones, and such as may be."""
    for height in (_height(graph, packed), graph.size):
        fewer = merged(graph, packed, height)
        yield fewer
        yield lowered(graph, fewer)


def _in_other_orders(
    graph: Digraph, roots: Ints, trees: Ints, orders: int
) -> Iterator[list[Packed]]:
    """Yield packings of the graph with its nodes, roots and arcs in other orders."""
    rng = random.Random(0)
    for _ in range(orders):
        number = np.array(rng.sample(range(graph.size), graph.size), np.int64)
        arcs = np.array(rng.sample(range(graph.tail.size), graph.tail.size), np.int64)
        turn = np.array(rng.sample(range(roots.size), roots.size), np.int64)
        other = Digraph(
            graph.size, number[graph.tail[arcs]], number[graph.head[arcs]], graph.units[arcs]
        )
        found = pack_flat(other, number[roots[turn]], trees[turn])
        name = np.argsort(number).tolist()
        if found is not None:
            yield [
                Packed(name[p.root], p.weight, tuple(arcs[list(p.arcs)].tolist())) for p in found
            ]


def _eccentricity(graph: Digraph, root: int) -> int:
    """Return the arcs to the node that is farthest from a root."""
    ends = list(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    seen, level, depth = {root}, {root}, 0
    while level:
        level = {head for tail, head in ends if tail in level} - seen
        seen |= level
        depth += bool(level)
    return depth
