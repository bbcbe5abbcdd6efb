"""Bounds and forests on random machines, against networkx and fractions.

A forest and a cut prove each other: trees that reach a rate, and a cut that allows no
more. Both are recomputed here by code that shares nothing with theirs.
"""

from __future__ import annotations

import random

import networkx as nx
import pytest

from colsynth import runtimes
from colsynth.errors import InfeasibleError
from colsynth.model import Collective, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.bound import bound
from colsynth.synthesis.forest.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.reference.flows import least_flow_ratio
from tests.reference.forests import reached
from tests.reference.graphs import clustered_topology, forwarding_topology, random_topology

TARGET = Target(runtimes.profile("msccl"))
SEEDS = 300


def problem_of(seed: int) -> Problem:
    """Return a problem of up to 42 GPUs; two of three machines are made of boxes."""
    rng = random.Random(seed)
    if seed % 3:
        topology = clustered_topology(seed)
    elif seed % 2:
        topology = random_topology(seed, most_gpus=40, switches=rng.choice((0, 4, 12)))
    else:
        topology = forwarding_topology(seed)
    collective = Collective(rng.choice(sorted(PHASES)))
    root = rng.randrange(topology.size) if collective.rooted else None
    return Problem(topology, collective, root)


PROBLEMS = {
    seed: problem for seed in range(SEEDS) if (problem := problem_of(seed)).topology.size > 1
}


def ratios(problem):
    return [least_flow_ratio(problem, direction) for direction in PHASES[problem.collective]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", PROBLEMS)
def test_forest_and_cut_prove_each_other(seed):
    problem = PROBLEMS[seed]
    expected = ratios(problem)
    if 0 in expected:
        refused(problem)
        return
    optimum = bound(problem)
    assert [rate / len(problem.roots) for rate in optimum.rates] == expected
    for trees in ("optimal", "2"):
        forest = PackTrees(trees).run(problem, TARGET)
        check_forest(forest)
        proven = reached(forest)
        assert proven <= optimum.algbw
        # Links that hold no whole number of trees leave a little unused.
        assert proven >= forest.algbw
        if trees == "optimal":
            assert proven == forest.algbw == optimum.algbw


def refused(problem):
    """Refused by name: no path leads from the one GPU that is named to the other."""
    with pytest.raises(InfeasibleError) as caught:
        PackTrees("optimal").run(problem, TARGET)
    assert caught.value.diagnostic.code == "CS302"
    topology = problem.topology
    graph = nx.DiGraph((link.source, link.target) for link in topology.links)
    graph.add_nodes_from(topology.ranks)
    names = {topology.nodes[node].name: node for node in topology.ranks}
    words = caught.value.diagnostic.phrase.split()
    source, target = (names[words[words.index(word) + 1]] for word in ("from", "to"))
    assert not nx.has_path(graph, source, target)


def test_the_machines_are_many_and_some_fall_apart():
    sizes = [problem.topology.size for problem in PROBLEMS.values()]
    assert len(sizes) > SEEDS * 9 // 10
    assert max(sizes) >= 40
    apart = [
        problem
        for problem in PROBLEMS.values()
        if not nx.is_connected(
            nx.Graph(
                [(x.source, x.target) for x in problem.topology.links]
                + [(v, v) for v in problem.topology.ranks]
            )
        )
    ]
    assert len(apart) >= 10
