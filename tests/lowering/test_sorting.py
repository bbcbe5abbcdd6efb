"""Topological order with a choice: networkx is the slow twin."""

import random

import networkx as nx
import numpy as np

from colsynth.lowering.sorting import sort_after
from tests.each import each


@each("seed", range(60))
def test_the_order_is_that_of_networkx(seed):
    rng = random.Random(seed)
    size = rng.randint(1, 30)
    circles = seed % 3 == 0
    pairs = [(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randint(0, 2 * size))]
    if not circles:
        pairs = [(max(pair), min(pair)) for pair in pairs if pair[0] != pair[1]]
    place = [rng.randrange(5) for _ in range(size)]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((other, waiter) for waiter, other in pairs)
    waiters, others = np.array(pairs, np.int64).reshape(-1, 2).T
    found = sort_after(waiters, others, np.array(place))
    if not nx.is_directed_acyclic_graph(graph):
        assert found is None
        return
    key = [(place[v], v) for v in range(size)].__getitem__
    assert found.tolist() == list(nx.lexicographical_topological_sort(graph, key))
