"""Lower trees are trees still, of the same roots, within the same capacities."""

import numpy as np

from colsynth.kernels.heights import lower_trees
from colsynth.kernels.packing import pack_arborescences
from tests.each import each
from tests.kernels.test_packing import CASES


def placed(gpus, tail, head, edges):
    """Return (parent, arc) of every node of every tree, -1 for roots."""
    parent = np.full((len(edges), gpus), -1, np.int64)
    arc = parent.copy()
    for row, arcs in enumerate(edges[:, 1:]):
        parent[row, head[arcs]], arc[row, head[arcs]] = tail[arcs], arcs
    return parent, arc


def depth(parents_of, node):
    """Return the depth of a node; a cycle would run forever, so steps are counted."""
    steps = 0
    while parents_of[node] >= 0:
        node, steps = parents_of[node], steps + 1
        assert steps < len(parents_of)
    return steps


def squares(weight, parent):
    depths = [[depth(row, v) ** 2 for v in range(len(row))] for row in parent]
    return int((weight * np.array(depths).sum(axis=1)).sum())


@each("case", CASES)
def test_lower_trees_span_within_capacity(case):
    gpus, tail, head, capacity, *_ = case
    size, edges = pack_arborescences(*case)
    parent, arc = placed(gpus, tail, head, edges)
    left = capacity.copy()
    np.subtract.at(left, edges[:, 1:], size[:, None])
    before = squares(size, parent)
    lower_trees(tail, head, left, size, parent, arc, 10)
    assert squares(size, parent) <= before
    load = np.zeros_like(capacity)
    for row, (weight, root) in enumerate(zip(size, edges[:, 0], strict=True)):
        assert (parent[row] < 0).nonzero()[0].tolist() == [root]
        reached = arc[row] >= 0
        assert (head[arc[row][reached]] == reached.nonzero()[0]).all()
        assert (tail[arc[row][reached]] == parent[row][reached]).all()
        load[arc[row][reached]] += weight
    assert (load + left == capacity).all()
    assert (left >= 0).all()


def test_a_chain_with_room_becomes_a_star():
    ends = [(a, b) for a in range(4) for b in range(4) if a != b]
    tail, head = np.array(ends, np.int64).T.copy()
    index = {pair: i for i, pair in enumerate(ends)}
    parent = np.array([[-1, 0, 1, 2]], np.int64)
    arc = np.array([[-1, index[0, 1], index[1, 2], index[2, 3]]], np.int64)
    lower_trees(tail, head, np.ones(12, np.int64), np.ones(1, np.int64), parent, arc, 5)
    assert parent.tolist() == [[-1, 0, 0, 0]]


def test_two_trees_exchange_arcs_without_room():
    """The first hangs node 4 below a chain from 0, the second below 0 instead of its root 3."""
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (3, 0), (0, 4)]
    tail, head = np.array(ends, np.int64).T.copy()
    parent = np.array([[-1, 0, 1, 2, 3], [3, 0, 1, -1, 0]], np.int64)
    arc = np.array([[-1, 0, 1, 2, 3], [4, 0, 1, -1, 5]], np.int64)
    left = np.zeros(6, np.int64)
    lower_trees(tail, head, left, np.ones(2, np.int64), parent, arc, 5)
    assert parent.tolist() == [[-1, 0, 1, 2, 0], [3, 0, 1, -1, 3]]
    assert left.tolist() == [0] * 6
