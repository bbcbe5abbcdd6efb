"""Trees of links: arborescences packed into logical arcs, and the routes that these stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from colsynth.bounds.network import Network
from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Direction, Problem, Tree, TreeEdge
from colsynth.synthesis.forest.choose import pack_best
from colsynth.synthesis.forest.digraph import Digraph, Packed, by_level
from colsynth.synthesis.forest.routes import Arc, Bundle, Supply, bundled


def pack(
    network: Network,
    arcs: Sequence[Arc],
    trees: int,
    problem: Problem,
    direction: Direction,
    prefer: str = "low",
) -> Iterator[Tree]:
    """Yield trees packed into the arcs; those between the same GPUs count as one.

    Each root of the network gets `trees` times its weight of them; `prefer` is as in
    `PackTrees`.
    """
    place = {int(node): rank for rank, node in enumerate(network.gpus)}
    # Preference among the arcs of one GPU: wide ones first, then the next GPU around.
    size = len(place)
    bundles = sorted(
        bundled(arcs),
        key=lambda b: (place[b.tail], -b.units, (place[b.head] - place[b.tail]) % size),
    )
    graph = Digraph(
        size,
        np.array([place[bundle.tail] for bundle in bundles], np.int64),
        np.array([place[bundle.head] for bundle in bundles], np.int64),
        np.array([bundle.units for bundle in bundles], np.int64),
    )
    roots = np.array(sorted(network.roots, key=lambda node: place[int(node)]), np.int64)
    ranks = np.array([place[int(root)] for root in roots], np.int64)
    found = pack_best(graph, ranks, network.weight[roots] * trees, prefer)
    if found is None:
        raise DefectError(
            Diagnostic(
                "CS901",
                "tree packing stopped although the cut condition holds",
                notes=(f"topology {problem.topology.name}, {trees} trees per root",),
            )
        )
    supplies = [Supply(edges) for edges in _edges(bundles, place, direction)]
    for packed in found:
        yield from _routed(packed, [supplies[arc] for arc in by_level(graph, packed)])


def _edges(
    bundles: Sequence[Bundle], place: dict[int, int], direction: Direction
) -> Iterator[list[tuple[TreeEdge, int]]]:
    """Yield (edge, units) for every route of every bundle; trees share these edges.

    A route of an IN phase lists links in the order data takes them.
    """
    step = 1 if direction is Direction.OUT else -1
    for bundle in bundles:
        parent, child = place[bundle.tail], place[bundle.head]
        yield [(TreeEdge(parent, child, arc.route[::step]), arc.units) for arc in bundle.arcs]


def _routed(packed: Packed, supplies: Sequence[Supply[TreeEdge]]) -> Iterator[Tree]:
    """Yield equal trees with the routes of their edges, as many at a time as routes allow."""
    weight = packed.weight
    while weight:
        part = min(weight, *(supply.room for supply in supplies))
        yield Tree(packed.root, part, tuple(supply.take(part) for supply in supplies))
        weight -= part
