"""Forests for shards of different sizes."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth.bounds.trees import bound
from colsynth.errors import VerificationError
from colsynth.model import Collective, Problem
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.topology import load
from colsynth.verify.forest import check_forest
from tests.each import each
from tests.reference.graphs import random_topology

PAIR = (Collective.ALLGATHER, Collective.REDUCE_SCATTER)


def drawn(seed, size):
    """Return shards of all sorts, some of them empty."""
    rng = random.Random(seed)
    shards = [rng.choice((0, 1, 2, 3, 5)) for _ in range(size)]
    shards[rng.randrange(size)] = 1
    return tuple(shards)


@pytest.mark.parametrize("collective", PAIR)
@each("seed", range(25))
def test_forests_reach_the_bound_and_share_out_trees_by_size(seed, collective, target):
    machine = random_topology(seed, most_gpus=7, switches=0, directed=seed % 2 == 0)
    problem = Problem(machine, collective, shards=drawn(seed, machine.size))
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert forest.algbw == bound(problem).algbw
    held = dict.fromkeys(range(machine.size), 0)
    for tree in forest.phases[0].trees:
        held[tree.root] += tree.weight
    unit = Fraction(sum(held.values()), sum(problem.shards))
    assert [held[rank] for rank in held] == [unit * part for part in problem.shards]


@pytest.mark.parametrize(("preset", "nodes"), [("dgx-a100", 2), ("mi250", 1), ("mi300x", 2)])
@pytest.mark.parametrize("trees", ["auto", "optimal"])
def test_presets_with_switches(preset, nodes, trees, target):
    machine = load(preset, nodes=nodes)
    shards = tuple(2 if rank % 3 else 1 for rank in range(machine.size))
    problem = Problem(machine, Collective.ALLGATHER, shards=shards)
    forest = PackTrees(trees).run(problem, target)
    check_forest(forest)
    assert forest.gap <= (0 if trees == "optimal" else Fraction(2, 100))


def test_a_forest_for_other_shards_is_refused(target):
    machine = load("ring:4")
    problem = Problem(machine, Collective.ALLGATHER, shards=(2, 1, 1, 1))
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    for other in (problem.shards[::-1], ()):
        with pytest.raises(VerificationError):
            check_forest(replace(forest, problem=replace(problem, shards=other)))
    with pytest.raises(VerificationError, match="parts of the message") as caught:
        check_forest(replace(forest, problem=replace(problem, shards=(3, 1, 1, 1))))
    assert caught.value.diagnostic.code == "CS522"
