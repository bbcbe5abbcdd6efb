"""Shortest distances against networkx."""

import random

import networkx as nx
import numpy as np

from colsynth.kernels.distances import FAR, farthest, spread, total_distance
from tests.each import each


def random_graph(seed):
    rng = random.Random(seed)
    n = rng.randint(1, 12)
    pairs = sorted({(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 3 * n))})
    arcs = [(a, b, rng.choice((0, 1, 2, 5, 9))) for a, b in pairs]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(arcs)
    first = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount([a for a, _, _ in arcs], minlength=n), out=first[1:])
    head = np.array([b for _, b, _ in arcs], np.int64)
    length = np.array([x for _, _, x in arcs], np.int64)
    return rng, n, graph, (first, head, length)


@each("seed", range(30))
def test_labels_fall_to_the_nearest_start(seed):
    rng, n, graph, arcs = random_graph(seed)
    label = np.array([rng.choice((int(FAR), 0, 3)) for _ in range(n)], np.int64)
    expected = [int(FAR)] * n
    for start in range(n):
        for v, way in nx.single_source_dijkstra_path_length(graph, start).items():
            if label[start] < FAR:
                expected[v] = min(expected[v], int(label[start]) + way)
    spread(*arcs, label)
    assert label.tolist() == expected


@each("seed", range(30))
def test_the_farthest_of_a_group_and_the_sum_over_groups(seed):
    rng, n, graph, arcs = random_graph(seed)
    group = np.array([rng.randrange(-1, 2) for _ in range(n)], np.int64)
    members = np.nonzero(group >= 0)[0]
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    pairs = [(u, v) for u in members for v in members if group[u] == group[v]]
    distance, node = farthest(*arcs, members, group)
    for u, way, end in zip(members, distance, node, strict=True):
        mine = {v: ways[u].get(v, int(FAR)) for a, v in pairs if a == u}
        assert way == max(mine.values()) == mine[end]
    total = total_distance(*arcs, members, group)
    if all(v in ways[u] for u, v in pairs):
        assert total == sum(ways[u][v] for u, v in pairs)
    else:
        assert total == -1
