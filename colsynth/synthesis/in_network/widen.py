"""Switches taken for GPUs that hold nothing, and taken out of the trees again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from colsynth.bounds.allreduce.halves import Branching, capable
from colsynth.model import Direction, Kind, Phase, Topology, Tree, TreeEdge
from colsynth.synthesis.forest.trees import merge_equal


def choices(topology: Topology) -> Iterator[Branching]:
    """Yield choices of switches to branch at: all that can, those in boxes, those outside.

    Trees that are packed reach every switch of the choice. That is more than they have to,
    and costs bandwidth where a switch is off the way. (Packing trees that may leave nodes
    out is hard, and need not reach what cuts allow.)
    """
    everywhere = capable(topology)
    boxed = {i for i, node in enumerate(topology.nodes) if node.box is not None}
    inside = {way: tuple(i for i in v if i in boxed) for way, v in everywhere.items()}
    outside = {way: tuple(i for i in v if i not in boxed) for way, v in everywhere.items()}
    yield everywhere
    yield from (choice for choice in (inside, outside) if choice != everywhere)


def widened(topology: Topology, places: Iterable[int]) -> Topology:
    """Return the topology with GPUs in the place of switches, ranked behind all others."""
    taken = sorted(places)
    nodes = list(topology.nodes)
    for place in taken:
        nodes[place] = replace(nodes[place], kind=Kind.GPU, capabilities=())
    return replace(topology, nodes=tuple(nodes), ranks=(*topology.ranks, *taken))


def narrowed(phase: Phase, size: int) -> Phase:
    """Return a phase of a widened topology with trees between its first `size` ranks."""
    trees = (_without(tree, size, phase.direction) for tree in phase.trees)
    return replace(phase, trees=merge_equal(trees))


def _without(tree: Tree, size: int, direction: Direction) -> Tree:
    """Return a tree without ranks from `size` on: their edges become parts of routes."""
    above: dict[int, tuple[int, tuple[int, ...]]] = {}
    edges: list[TreeEdge] = []
    outwards = direction is Direction.OUT
    for edge in tree.edges:
        parent, before = above.get(edge.parent, (edge.parent, ()))
        route = before + edge.route if outwards else edge.route + before
        if edge.child < size:
            edges.append(TreeEdge(parent, edge.child, route))
        else:
            above[edge.child] = parent, route
    return Tree(tree.root, tree.weight, tuple(edges))
