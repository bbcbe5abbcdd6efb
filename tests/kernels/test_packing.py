"""Packed arborescences span, stay within capacity, and exist whenever cuts allow."""

import random

import numpy as np

from colsynth.kernels.maxflow import largest_deficit
from colsynth.kernels.packing import pack_arborescences
from tests.each import each


def random_case(seed):
    """Return (gpus, arcs, trees per root) that satisfy the cut condition, or None."""
    rng = random.Random(seed)
    gpus = rng.randint(2, 9)
    arcs = [(a, b, rng.randint(0, 6)) for a in range(gpus) for b in range(gpus) if a != b]
    trees = np.array([rng.randint(0, 2) for _ in range(gpus)], np.int64)
    trees[rng.randrange(gpus)] += 1
    tail, head, capacity = (np.array(c, np.int64) for c in zip(*arcs, strict=True))
    roots = np.nonzero(trees)[0]
    deficit, _ = largest_deficit(
        gpus + 1,
        np.concatenate((tail, np.full(roots.size, gpus, np.int64))),
        np.concatenate((head, roots)),
        np.concatenate((capacity, trees[roots])),
        gpus,
        np.arange(gpus),
        int(trees.sum()),
    )
    return None if deficit else (gpus, tail, head, capacity, roots, trees[roots])


CASES = [case for case in map(random_case, range(120)) if case is not None]


@each("case", CASES)
def test_packing_spans_within_capacity(case):
    gpus, tail, head, capacity, roots, trees = case
    size, edges = pack_arborescences(*case)
    assert size.all()
    load = np.zeros_like(capacity)
    packed = dict.fromkeys(roots.tolist(), 0)
    for weight, row in zip(size, edges, strict=True):
        reached = {int(row[0])}
        for arc in row[1:]:
            assert int(tail[arc]) in reached
            assert int(head[arc]) not in reached
            reached.add(int(head[arc]))
            load[arc] += weight
        assert reached == set(range(gpus))
        packed[int(row[0])] += int(weight)
    assert (load <= capacity).all()
    assert [packed[int(r)] for r in roots] == trees.tolist()


def test_there_are_cases():
    assert len(CASES) > 30


def test_a_packing_that_cuts_forbid_is_marked():
    arcs = np.array([[0, 1, 1], [1, 0, 1]], np.int64).T
    roots = np.array([0, 1], np.int64)
    size, _ = pack_arborescences(2, *arcs, roots, np.array([2, 1], np.int64))
    assert 0 in size
