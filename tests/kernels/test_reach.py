"""Who can be reached, against networkx."""

import random

import networkx as nx
import numpy as np

from colsynth.kernels.reach import first_unreached, reach
from tests.each import each


def random_hops(rng):
    n = rng.randint(1, 9)
    arcs = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 2 * n))]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(arcs)
    source = np.array([a for a, _ in arcs], np.int64)
    first = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=n), out=first[1:])
    target = np.array([b for _, b in arcs], np.int32)
    return n, graph, (first, np.argsort(source, kind="stable"), target)


def lists(rng, n, count, least=0):
    found = [sorted(rng.sample(range(n), rng.randint(least, n))) for _ in range(count)]
    first = np.cumsum([0] + [len(x) for x in found])
    return found, first, np.array([v for x in found for v in x], np.int32)


@each("seed", range(40))
def test_what_is_reached_is_what_networkx_reaches(seed):
    rng = random.Random(seed)
    n, graph, hops = random_hops(rng)
    starts = rng.sample(range(n), rng.randint(0, n))
    expected = set(starts).union(*(nx.descendants(graph, v) for v in starts))
    found = reach(*hops, np.array(starts, np.int32))
    assert set(np.flatnonzero(found).tolist()) == expected


@each("seed", range(40))
def test_the_first_chunk_that_does_not_arrive_is_named(seed):
    rng = random.Random(seed)
    n, graph, hops = random_hops(rng)
    chunks = rng.randint(1, 6)
    holders, *held = lists(rng, n, chunks, least=1)
    wanted, *asked = lists(rng, n, chunks)
    missing = [
        (c, v)
        for c in range(chunks)
        for v in wanted[c]
        if not any(nx.has_path(graph, u, v) for u in holders[c])
    ]
    assert first_unreached(*hops, *held, *asked) == (missing[0] if missing else (-1, -1))
