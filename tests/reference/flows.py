"""Slow, obvious twins of the cut and flow kernels."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import networkx as nx

from colsynth.model import Direction, Problem


def least_cut_ratio(problem: Problem, direction: Direction) -> Fraction:
    """Return min over cuts of bandwidth leaving / roots inside, by trying every cut.

    Exponential in the number of nodes; for at most a dozen.
    """
    topology = problem.topology
    gpus = set(topology.ranks)
    roots = {topology.ranks[r] for r in problem.roots}
    best: Fraction | None = None
    nodes = range(len(topology.nodes))
    for size in range(1, len(topology.nodes)):
        for chosen in combinations(nodes, size):
            inside = set(chosen)
            weight = len(roots & inside)
            if weight == 0 or gpus <= inside:
                continue
            leaving = Fraction(0)
            for link in topology.links:
                ends = (link.source, link.target)
                a, b = ends if direction is Direction.OUT else ends[::-1]
                if a in inside and b not in inside:
                    leaving += link.bandwidth
            if best is None or leaving / weight < best:
                best = leaving / weight
    if best is None:
        raise ValueError("no cut")
    return best


def max_flow(arcs: list[tuple[int, int, int]], source: int, sink: int) -> int:
    """Return the maximum flow by networkx; parallel arcs add up."""
    graph = nx.DiGraph()
    graph.add_nodes_from((source, sink))
    for a, b, capacity in arcs:
        held = graph.edges[a, b]["capacity"] if graph.has_edge(a, b) else 0
        graph.add_edge(a, b, capacity=held + capacity)
    return int(nx.maximum_flow_value(graph, source, sink))
