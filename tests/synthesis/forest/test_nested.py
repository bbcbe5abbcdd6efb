"""Trees between clusters and inside them add up to trees of the whole."""

import random
from collections import Counter

import numpy as np
import pytest

from colsynth.synthesis.forest import nested
from colsynth.synthesis.forest.clusters import partitions_of
from colsynth.synthesis.forest.digraph import Digraph, Packed, by_level, missing, pack_flat
from colsynth.synthesis.forest.nested import packings
from tests.each import each


def digraph(size, arcs):
    tail, head, units = (np.array(column, np.int64) for column in zip(*arcs, strict=True))
    return Digraph(size, tail, head, units)


def boxes(count, size, inner, outer, skip=()):
    """Meshed boxes; GPU i of each joined with GPU i of every other one."""
    arcs = []
    for a in range(count * size):
        for b in range(count * size):
            if a == b or (a, b) in skip:
                continue
            if a // size == b // size:
                arcs.append((a, b, inner))
            elif a % size == b % size:
                arcs.append((a, b, outer))
    return digraph(count * size, arcs)


def packed(graph, roots, trees):
    return next(packings(graph, roots, trees), None)


def check(graph, roots, trees, found):
    load = np.zeros_like(graph.units)
    weight = Counter()
    for packed in found:
        reached = {packed.root}
        for arc in packed.arcs:
            assert int(graph.tail[arc]) in reached
            reached.add(int(graph.head[arc]))
        assert len(packed.arcs) == graph.size - 1
        assert reached == set(range(graph.size))
        load[list(packed.arcs)] += packed.weight
        weight[packed.root] += packed.weight
    assert (load <= graph.units).all()
    assert weight == dict(zip(roots.tolist(), trees.tolist(), strict=True))


@pytest.fixture
def flats(monkeypatch):
    """Sizes of the graphs that were packed as one."""
    sizes = []

    def watched(graph, roots, trees):
        sizes.append(graph.size)
        return pack_flat(graph, roots, trees)

    monkeypatch.setattr(nested, "pack_flat", watched)
    return sizes


def test_clusters_are_what_the_widest_arcs_join():
    (found,) = partitions_of(boxes(3, 4, 9, 1))
    assert found.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_equal_arcs_make_no_clusters():
    assert partitions_of(boxes(3, 4, 2, 2)) == []
    assert partitions_of(boxes(1, 4, 2, 2)) == []


def test_partitions_come_by_the_work_of_packing_them():
    """Pairs in boxes of eight, 64 GPUs: eight boxes of eight are less than 32 pairs."""
    arcs = [
        (a, b, 50 if a // 2 == b // 2 else 10 if a // 8 == b // 8 else 1)
        for a in range(64)
        for b in range(64)
        if a != b
    ]
    found = [cluster.tolist() for cluster in partitions_of(digraph(64, arcs))]
    assert found == [[v // 8 for v in range(64)], [v // 2 for v in range(64)]]


def test_equal_boxes_are_packed_once(flats):
    graph = boxes(5, 4, 9, 1)
    every = np.arange(20), np.ones(20, np.int64)
    found = packed(graph, *every)
    check(graph, *every, found)
    assert flats == [5, 4]
    assert len(found) == 20
    depths = [by_depth(graph, packed) for packed in found]
    assert max(depths) == 2


def by_depth(graph, packed):
    depth = {packed.root: 0}
    for arc in by_level(graph, packed):
        depth[int(graph.head[arc])] = depth[int(graph.tail[arc])] + 1
    return max(depth.values())


def test_a_gpu_that_its_box_cannot_feed_becomes_a_cluster(flats):
    """GPU 0 has one arc from its box, so most of what it needs must come over the rails."""
    skip = {(1, 0), (2, 0)}
    graph = boxes(5, 4, 9, 2, skip)
    every = np.arange(20), np.ones(20, np.int64)
    assert missing(graph, *every)[0] > 0
    wide = graph._replace(units=np.where((graph.head == 0) & (graph.tail > 3), 4, graph.units))
    assert missing(wide, *every)[0] == 0
    check(wide, *every, packed(wide, *every))
    assert flats[:2] == [5, 6]
    assert 20 not in flats


def test_what_cuts_forbid_is_refused():
    graph = boxes(3, 2, 9, 1)
    assert packed(graph, np.arange(6), np.full(6, 50)) is None


@each("seed", range(40))
def test_whatever_cuts_allow_is_packed(seed):
    rng = random.Random(seed)
    count, size = rng.randint(2, 5), rng.randint(1, 5)
    arcs = [
        (a, b, rng.choice((0, 3, 5, 9)) if a // size == b // size else rng.choice((0, 0, 1, 2)))
        for a in range(count * size)
        for b in range(count * size)
        if a != b
    ]
    graph = digraph(count * size, arcs)
    roots = np.array(sorted(rng.sample(range(graph.size), rng.randint(1, graph.size))))
    trees = np.array([rng.randint(1, 2) for _ in roots])
    while missing(graph, roots, trees)[0]:
        graph = graph._replace(units=graph.units + rng.randint(0, 1))
    check(graph, roots, trees, packed(graph, roots, trees))


def test_edges_come_level_by_level_in_order_of_preference():
    graph = digraph(4, [(0, 1, 1), (1, 2, 1), (0, 3, 1)])
    assert by_level(graph, Packed(0, 1, (0, 1, 2))) == [0, 2, 1]
