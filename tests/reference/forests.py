"""Slow, obvious twin of the forest certificate."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx

from colsynth.model import Direction, Forest, Kind, Phase


def reached(forest: Forest) -> Fraction:
    """Return the algorithm bandwidth a forest proves, bytes/s, from its trees and routes alone.

    Raises
    ------
    ValueError
        A tree does not span, or a route is none.
    """
    roots = forest.problem.roots
    times = [_time(forest, phase, len(roots)) for phase in forest.phases]
    return 1 / sum(times, Fraction(0))


def _time(forest: Forest, phase: Phase, roots: int) -> Fraction:
    """Return the seconds per byte of the message: the most that a link is busy."""
    topology = forest.problem.topology
    weight = dict.fromkeys(forest.problem.roots, 0)
    busy = dict.fromkeys(range(len(topology.links)), Fraction(0))
    for tree in phase.trees:
        graph = nx.DiGraph([(e.parent, e.child) for e in tree.edges])
        if not nx.is_arborescence(graph) or set(graph) != set(range(topology.size)):
            raise ValueError(f"a tree of rank {tree.root} does not span")
        if graph.in_degree(tree.root):
            raise ValueError(f"a tree of rank {tree.root} has another root")
        weight[tree.root] += tree.weight
        for edge in tree.edges:
            ends = (edge.parent, edge.child)
            first, last = ends if phase.direction is Direction.OUT else ends[::-1]
            links = [topology.links[i] for i in edge.route]
            path = [links[0].source, *(link.target for link in links)]
            joined = all(a == b.source for a, b in zip(path, links, strict=False))
            forwards = all(topology.nodes[v].kind is not Kind.GPU for v in path[1:-1])
            if (path[0], path[-1]) != (topology.ranks[first], topology.ranks[last]):
                raise ValueError(f"a route of rank {tree.root} has other ends")
            if not joined or not forwards:
                raise ValueError(f"a route of rank {tree.root} is broken")
            for index in edge.route:
                busy[index] += Fraction(tree.weight) / topology.links[index].bandwidth
    if len(set(weight.values())) != 1:
        raise ValueError("roots have unequal numbers of trees")
    return max(busy.values()) / (roots * next(iter(weight.values())))
