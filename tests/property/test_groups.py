"""Process groups, several roots and shards on random machines, against networkx and fractions."""

from __future__ import annotations

import random
from functools import cache
from math import gcd

import networkx as nx
import pytest

from colsynth.bounds.optimum import optimum
from colsynth.errors import InfeasibleError
from colsynth.model import Collective, Direction, Problem
from colsynth.model.problem import PHASES
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.each import each
from tests.reference.graphs import clustered_topology, forwarding_topology, random_topology
from tests.reference.groups import graph_of, least_joint_ratio, least_ratio, reached

SEEDS = 180


def machine_of(seed: int):
    """Return a machine of up to 24 GPUs; every fourth has links that differ both ways."""
    rng = random.Random(seed)
    match seed % 4:
        case 0:
            return random_topology(seed, most_gpus=10, switches=4, directed=True)
        case 1:
            return forwarding_topology(seed)
        case 2:
            return random_topology(seed, most_gpus=24, switches=rng.choice((0, 4, 8)))
    return clustered_topology(seed, boxes=4, per_box=5)


@cache
def problem_of(seed: int) -> Problem | None:
    """Return one group with whatever roots and shards may go with it."""
    rng = random.Random(seed)
    topology = machine_of(seed)
    if topology.size < 3:
        return None
    members = rng.sample(range(topology.size), rng.randint(2, topology.size - 1))
    collective = Collective(rng.choice(sorted(PHASES)))
    root, shards = None, ()
    if collective.rooted and rng.random() < 0.5:
        root = rng.randrange(len(members))
    elif collective is not Collective.ALLREDUCE and (collective.rooted or rng.random() < 0.5):
        parts = [
            rng.choice((0, 0, 1, 2, 3)) if rank in members else 0 for rank in range(topology.size)
        ]
        parts[members[0]] = rng.choice((1, 2))
        shards = tuple(part // gcd(*parts) for part in parts)
    return Problem(topology, collective, root, (tuple(members),), rng.random() < 0.6, (), shards)


PROBLEMS = [seed for seed in range(SEEDS) if problem_of(seed) is not None]


@pytest.mark.slow
@pytest.mark.parametrize("seed", PROBLEMS)
def test_bound_and_forest_of_a_group_prove_each_other(seed, target):
    problem = problem_of(seed)
    directions = PHASES[problem.collective]
    expected = [least_ratio(problem, direction) for direction in directions]
    if 0 in expected:
        refused(problem)
        return
    found = optimum(problem)
    assert [rate / sum(problem.weights) for rate in found.rates] == expected
    for trees in ("optimal", "2"):
        forest = PackTrees(trees).run(problem, target)
        check_forest(forest)
        if forest.together:
            continue  # roots of their own choice: `check_forest` adds up the links of both halves
        proven = reached(forest)
        assert proven >= forest.algbw
        assert proven <= found.algbw
        if trees == "optimal" and balanced(problem):
            assert proven == forest.algbw == found.algbw


def balanced(problem: Problem) -> bool:
    """Whether everything that passes data on can pass on all that it receives."""
    members = {problem.topology.ranks[rank] for rank in problem.members[0]}
    graph = graph_of(problem, Direction.OUT)
    return all(
        sum(x for _, _, x in graph.in_edges(node, "rate"))
        == sum(x for _, _, x in graph.out_edges(node, "rate"))
        for node in set(graph) - members
    )


def refused(problem: Problem):
    """Refused by the names of two GPUs, between which there is no way."""
    for ask in (optimum, lambda x: PackTrees("2").run(x, None)):
        with pytest.raises(InfeasibleError) as caught:
            ask(problem)
        told = caught.value.diagnostic
        assert told.code == "CS302"
        assert problem.transit or "--transit" in told.help
        topology = problem.topology
        names = {topology.nodes[node].name: node for node in topology.ranks}
        words = told.phrase.split()
        source, goal = (names[words[words.index(word) + 1]] for word in ("from", "to"))
        assert not nx.has_path(graph_of(problem, Direction.OUT), source, goal)


def test_the_groups_are_of_all_sorts():
    problems = [problem_of(seed) for seed in PROBLEMS]
    assert len(problems) > SEEDS * 8 // 10
    for sort in (
        [p for p in problems if p.transit and balanced(p)],
        [p for p in problems if p.transit and not balanced(p)],
        [p for p in problems if p.shards],
        [p for p in problems if p.has_several_roots],
        [
            p
            for p in problems
            if 0 in map(lambda way, p=p: least_ratio(p, way), PHASES[p.collective])
        ],
    ):
        assert len(sort) >= 10


@each("seed", range(60))
def test_several_groups_share_the_links(seed, target):
    rng = random.Random(seed)
    topology = random_topology(seed, most_gpus=7, switches=2, directed=seed % 3 == 0)
    order = rng.sample(range(topology.size), topology.size)
    size = rng.randint(2, max(2, topology.size // 2))
    groups = tuple(tuple(order[i : i + size]) for i in range(0, topology.size - size + 1, size))
    collective = Collective(rng.choice(sorted(PHASES)))
    root = rng.randrange(size) if collective.rooted else None
    problem = Problem(topology, collective, root, groups, transit=seed % 2 == 0)
    ratios = [least_joint_ratio(problem, way) for way in PHASES[collective]]
    if 0 in ratios:
        with pytest.raises(InfeasibleError, match="no data can pass"):
            optimum(problem)
        return
    found = optimum(problem)
    assert all(rate >= ratio for rate, ratio in zip(found.rates, ratios, strict=True))
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert forest.algbw == reached(forest) <= 1 / sum(1 / rate for rate in ratios)
