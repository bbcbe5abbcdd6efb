"""Trees as a forest keeps them: equal ones together, and turned into the other direction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from colsynth.model import Direction, Phase, Topology, Tree, TreeEdge


def merge_equal(trees: Iterable[Tree]) -> tuple[Tree, ...]:
    """Add up the weights of equal trees; sort by root, widest and lowest first.

    Trees that only differ in their routes through switches stay beside each other: their
    chunks travel together. Trees of one packing share their edges, so few edges have to be
    told apart by value.
    """
    by_value: dict[TreeEdge, int] = {}
    number: dict[int, int] = {}
    merged: dict[tuple[int, ...], Tree] = {}
    kept = tuple(trees)
    for tree in kept:
        for edge in tree.edges:
            if id(edge) not in number:
                number[id(edge)] = by_value.setdefault(edge, len(by_value))
        key = (tree.root, *(number[id(edge)] for edge in tree.edges))
        before = merged.get(key)
        merged[key] = replace(tree, weight=tree.weight + (before.weight if before else 0))
    found = list(merged.values())
    if len(found) == len({tree.root for tree in found}):
        return tuple(sorted(found, key=lambda tree: tree.root))
    shapes = [(tree.root, *((e.parent, e.child) for e in tree.edges)) for tree in found]
    width: dict[tuple[object, ...], int] = {}
    for shape, tree in zip(shapes, found, strict=True):
        width[shape] = width.get(shape, 0) + tree.weight
    first = {shape: place for place, shape in enumerate(width)}
    rows = zip(shapes, found, strict=True)
    ordered = sorted(
        rows, key=lambda x: (x[1].root, -width[x[0]], x[1].height, first[x[0]], -x[1].weight)
    )
    return tuple(tree for _, tree in ordered)


def turned(topology: Topology, phase: Phase, direction: Direction) -> Phase:
    """Return the phase for the other direction on a topology equal to its reverse."""
    links, between = topology.links, topology.link_between
    reverse = [between[link.target, link.source] for link in links]
    turned: dict[int, TreeEdge] = {}
    for edge in (edge for tree in phase.trees for edge in tree.edges):
        if id(edge) not in turned:
            route = tuple(reverse[i] for i in reversed(edge.route))
            turned[id(edge)] = TreeEdge(edge.parent, edge.child, route)
    trees = tuple(
        Tree(tree.root, tree.weight, tuple(turned[id(edge)] for edge in tree.edges))
        for tree in phase.trees
    )
    return Phase(direction, trees, phase.unit_bandwidth)
