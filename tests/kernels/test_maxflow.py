"""The flow kernels against networkx."""

import random

import numpy as np

from colsynth.kernels.maxflow import largest_deficit
from tests.each import each
from tests.reference.flows import max_flow


def random_arcs(seed):
    rng = random.Random(seed)
    nodes = rng.randint(3, 12)
    arcs = []
    for _ in range(rng.randint(nodes, 4 * nodes)):
        a, b = rng.sample(range(nodes), 2)
        arcs.append((a, b, rng.randint(0, 20)))
    return nodes, arcs


def columns(arcs):
    return [np.array(column, np.int64) for column in zip(*arcs, strict=True)]


@each("seed", range(80))
def test_deficit_is_what_the_worst_sink_lacks(seed):
    nodes, arcs = random_arcs(seed)
    sinks = np.arange(1, nodes)
    demand = 25
    deficit, inside = largest_deficit(nodes, *columns(arcs), 0, sinks, demand)
    lacking = [demand - min(demand, max_flow(arcs, 0, int(v))) for v in sinks]
    assert deficit == max(lacking)
    if deficit:
        assert inside[0]
        assert not inside.all()
        leaving = sum(c for a, b, c in arcs if inside[a] and not inside[b])
        assert leaving == demand - deficit
    else:
        assert not inside.any()


@each("seed", range(40))
def test_a_sink_that_falls_short_leaves_nothing_behind_for_the_next(seed):
    nodes, arcs = random_arcs(seed)
    sinks = np.arange(1, nodes)
    for last in range(1, sinks.size):
        together, _ = largest_deficit(nodes, *columns(arcs), 0, sinks[: last + 1], 60)
        alone = [
            largest_deficit(nodes, *columns(arcs), 0, sinks[k : k + 1], 60)[0]
            for k in range(last + 1)
        ]
        assert together == max(alone)
