"""Loads of eager broadcast by trying every set of links: the slow twin of kernels/shortest.py."""

from fractions import Fraction
from itertools import combinations

import networkx as nx


def loads(size, arcs, weights):
    """Return {step: load} of the worst receiver, and under 0 that of all steps together.

    `arcs` are (tail, head, capacity), with parallel ones; loads are weights over capacity.
    """
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((a, b) for a, b, _ in arcs)
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    worst = {}
    for u in range(size):
        entering = [(a, c) for a, b, c in arcs if b == u]
        allowed = {
            v: {i for i, (w, _) in enumerate(entering) if distance[v][w] + 1 == distance[v][u]}
            for v in range(size)
            if v != u and weights[v]
        }
        for count in range(1, len(entering) + 1):
            for chosen in combinations(range(len(entering)), count):
                capacity = sum(entering[i][1] for i in chosen)
                inside = [v for v, links in allowed.items() if links <= set(chosen)]
                for step in {0, *(distance[v][u] for v in inside)}:
                    held = sum(weights[v] for v in inside if step in (0, distance[v][u]))
                    load = Fraction(held, capacity)
                    worst[step] = max(worst.get(step, Fraction(0)), load)
    return worst
