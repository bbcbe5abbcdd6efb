"""Bounds and forests on random machines, against networkx and fractions.

A forest and a cut prove each other: trees that reach a rate, and a cut that allows no
more. Both are recomputed here by code that shares nothing with theirs.
"""

from __future__ import annotations

import random
from fractions import Fraction

import networkx as nx
import pytest

from colsynth import runtimes
from colsynth.bounds.trees import bound
from colsynth.errors import InfeasibleError
from colsynth.model import Collective, Kind, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.reference.flows import least_flow_ratio
from tests.reference.forests import reached
from tests.reference.graphs import (
    clustered_topology,
    damaged,
    forwarding_topology,
    random_topology,
)

TARGET = Target(runtimes.profile("msccl"))
SEEDS = 150


def problem_of(seed: int) -> Problem:
    """Return a problem: half of the machines are made of boxes.

    In each style one in three has up to 42 GPUs, the others half as many, which take a tenth.
    """
    rng = random.Random(seed)
    large, style = seed // 6 % 3 == 0, seed % 6
    most = 40 if large else 20
    if style == 0:
        topology = forwarding_topology(seed)
    elif style == 1:
        topology = random_topology(seed, most_gpus=most, switches=0, directed=seed % 4 == 1)
    elif style == 2:
        topology = random_topology(seed, most_gpus=most, switches=rng.choice((4, 12)))
    else:
        topology = clustered_topology(seed, per_box=7 if large else 4)
    if style and seed % 5 == 4:
        topology = damaged(topology, seed, Fraction(1, 4))
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
    """Refused by name: none of the GPUs said to be cut off has a path to the other one named."""
    with pytest.raises(InfeasibleError) as caught:
        PackTrees("optimal").run(problem, TARGET)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "CS302"
    graph = graph_of(problem)
    names = {problem.topology.nodes[node].name: node for node in problem.topology.ranks}
    words = diagnostic.phrase.split()
    source, target = (words[words.index(word) + 1] for word in ("from", "to"))
    (note,) = diagnostic.notes
    shown, capped, _ = note.removeprefix("no link leads out of the set ").partition(" and ")
    cut_off = shown.split(", ")
    assert source in cut_off or capped
    assert not any(nx.has_path(graph, names[name], names[target]) for name in cut_off)


def graph_of(problem):
    graph = nx.DiGraph((link.source, link.target) for link in problem.topology.links)
    graph.add_nodes_from(problem.topology.ranks)
    return graph


def test_the_machines_are_many_of_all_kinds_and_some_fall_apart():
    machines = [problem.topology for problem in PROBLEMS.values()]
    assert len(machines) > SEEDS * 9 // 10
    assert sum(machine.size >= 40 for machine in machines) >= 2
    switched = [any(x.kind is Kind.SWITCH for x in machine.nodes) for machine in machines]
    assert sum(switched) > 100
    assert len(switched) - sum(switched) > 20
    assert sum(not machine.is_symmetric for machine in machines) > 30
    apart = [p for p in PROBLEMS.values() if not nx.is_weakly_connected(graph_of(p))]
    assert len(apart) >= 12
