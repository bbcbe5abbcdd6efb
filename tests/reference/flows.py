"""Slow, obvious twins of the cut and flow kernels."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm

import networkx as nx

from colsynth.model import Direction, Problem


def least_cut_ratio(problem: Problem, direction: Direction) -> Fraction:
    """Return min over cuts of bandwidth leaving / weight of roots inside, by trying every cut.

    Exponential in the number of nodes; for at most a dozen.
    """
    topology = problem.topology
    gpus = set(topology.ranks)
    worth = {topology.ranks[r]: w for r, w in zip(problem.roots, problem.weights, strict=True)}
    best: Fraction | None = None
    nodes = range(len(topology.nodes))
    for size in range(1, len(topology.nodes)):
        for chosen in combinations(nodes, size):
            inside = set(chosen)
            weight = sum(worth.get(node, 0) for node in inside)
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


def least_flow_ratio(problem: Problem, direction: Direction) -> Fraction:
    """Return min over cuts of bandwidth leaving / roots inside, by networkx's minimum cuts.

    Every root must feed every GPU at the returned rate, one GPU at a time: a minimum cut
    below that lowers the rate to the cut's own ratio, and in the end all GPUs are served.
    """
    topology = problem.topology
    gpus = [*topology.ranks]
    roots = [topology.ranks[r] for r in problem.roots]
    denominator = lcm(*(link.bandwidth.denominator for link in topology.links))
    rate = sum((link.bandwidth for link in topology.links), Fraction(1))
    done = False
    while not done:
        done = True
        scale = lcm(denominator, rate.denominator)
        graph = nx.DiGraph()
        graph.add_nodes_from(gpus)
        for link in topology.links:
            ends = (link.source, link.target)
            a, b = ends if direction is Direction.OUT else ends[::-1]
            graph.add_edge(a, b, capacity=int(link.bandwidth * scale))
        graph.add_edges_from((("source", r) for r in roots), capacity=int(rate * scale))
        for gpu in gpus:
            held, (inside, _) = nx.minimum_cut(graph, "source", gpu)
            if Fraction(held, scale) < rate * len(roots):
                leaving = sum(
                    (Fraction(c, scale) for a, b, c in graph.edges(data="capacity")
                     if a != "source" and a in inside and b not in inside),
                    Fraction(0),
                )  # fmt: skip
                rate = leaving / sum(1 for r in roots if r in inside)
                done = False
                break
    return rate
