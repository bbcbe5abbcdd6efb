"""What switches with unequal ingress and egress forward is the best that trees can reach."""

from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import topology
from colsynth.bounds.trees import bound
from colsynth.model import Collective, Direction, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Context
from colsynth.synthesis.forest import forwarding
from colsynth.synthesis.forest.forwarding import forwarding_of, is_lopsided
from colsynth.synthesis.forest.rate import TOLERANCE, candidates
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.each import each
from tests.reference.forwarding import best_forwarded
from tests.reference.graphs import clustered_topology, lopsided, random_topology


def forest_of(problem, trees):
    forest = PackTrees(trees).run(problem, Context())
    check_forest(forest)
    return forest


def small(seed):
    return random_topology(seed, most_gpus=4, switches=2, directed=True)


LOPSIDED = [seed for seed in range(60) if is_lopsided(small(seed))]


@each("seed", LOPSIDED)
def test_no_forest_is_faster(seed):
    """Against a linear program over every cut, in fractions."""
    way = ("allgather", "reduce-scatter", "broadcast")[seed % 3]
    problem = Problem(small(seed), Collective(way), 0 if way == "broadcast" else None)
    (direction,) = PHASES[problem.collective]
    assert forest_of(problem, "optimal").algbw == best_forwarded(problem, direction)


# The second of them cannot reach what cuts allow, as the next test proves.
@pytest.mark.parametrize(("seed", "reached"), [(4, 320), (23, Fraction(920, 3)), (25, 320)])
def test_clusters_without_some_links_lose_nothing_more(seed, reached):
    machine = lopsided(topology.load("dgx-a100", nodes=2), seed)
    problem = Problem(machine, Collective.ALLGATHER)
    forest = forest_of(problem, "optimal")
    assert forest.algbw == reached * 10**9
    assert forest.gap == 0 or seed == 23


def test_cuts_may_allow_more_than_switches_forward():
    problem = Problem(lopsided(topology.load("dgx-a100", nodes=2), 23), Collective.ALLGATHER)
    phase = forwarding_of(problem, Direction.OUT)
    assert phase.rate * phase.parts < bound(problem).algbw


@pytest.mark.parametrize("seed", [33, 37, 80])
def test_auto_is_measured_against_what_switches_forward(seed):
    machine = lopsided(clustered_topology(seed, boxes=3, per_box=4), seed, Fraction(3, 20))
    problem = Problem(machine, Collective.ALLGATHER)
    best = forest_of(problem, "optimal")
    assert best.gap > 0
    forest = forest_of(problem, "auto")
    assert forest.algbw >= best.algbw * (1 - TOLERANCE)
    assert forest.trees_per_root == candidates(problem)[0] <= best.trees_per_root


def test_allreduce_has_a_number_of_trees_for_both_phases():
    machine = lopsided(topology.load("dgx-a100", nodes=2), 2)
    ways = Collective.REDUCE_SCATTER, Collective.ALLGATHER
    halves = [forest_of(Problem(machine, way), "optimal") for way in ways]
    both = forest_of(Problem(machine, Collective.ALLREDUCE), "optimal")
    assert both.algbw == 1 / sum(1 / half.algbw for half in halves)


def test_what_is_too_large_for_the_program_is_cut_finer(monkeypatch):
    monkeypatch.setattr(forwarding, "_MOST_WORK", 0)
    problem = Problem(lopsided(topology.load("dgx-a100", nodes=2), 4), Collective.ALLGATHER)
    forest = forest_of(problem, "optimal")
    assert 0 < forest.algbw < forest.bound.algbw


def test_balanced_machines_are_not_lopsided():
    machine = topology.load("dgx-a100", nodes=2)
    assert not is_lopsided(machine)
    first, *others = machine.links
    assert is_lopsided(replace(machine, links=(replace(first, bandwidth=Fraction(1)), *others)))
