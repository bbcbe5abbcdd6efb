"""Forests with free roots: at the proven rate, on links that both halves share."""

from fractions import Fraction

import pytest

from colsynth import api, runtimes, topology
from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.allreduce.pack import MOST_GIVEN_UP
from colsynth.synthesis.pack_roots import PackRoots
from colsynth.verify import check_forest
from tests.each import each
from tests.reference.graphs import forwarding_topology, random_topology

GIGA = 10**9
TARGET = Target(runtimes.profile("msccl"))


def forest_of(machine, trees="auto"):
    forest = PackRoots(trees).run(Problem(machine, Collective.ALLREDUCE), TARGET)
    check_forest(forest)
    return forest


@pytest.mark.parametrize("name", ["mesh:3x3", "mesh:4x4", "mesh:5x4"])
def test_meshes_reach_what_no_schedule_beats(name):
    machine = topology.load(name)
    forest = forest_of(machine, "optimal")
    assert forest.gap == 0
    assert forest.algbw == allreduce_bound(forest.problem).limit.algbw


@pytest.mark.parametrize("shape", ["16x16", "16x17"])
def test_large_meshes_come_near_their_bound(shape):
    forest = forest_of(topology.load(f"mesh:{shape}"))
    assert forest.algbw >= (1 - MOST_GIVEN_UP) * allreduce_bound(forest.problem).limit.algbw


def test_three_trees_of_a_mesh():
    """Twelve links of 50 GB/s hold three trees of eight edges at 25: all from one root."""
    forest = forest_of(topology.load("mesh:3x3"))
    assert (forest.chunks, forest.algbw) == (3, 75 * GIGA)
    assert [phase.unit_bandwidth for phase in forest.phases] == [25 * GIGA] * 2


def test_the_centre_is_preferred_among_equal_roots():
    forest = forest_of(topology.load("mesh:3x3"))
    assert [root for root, share in enumerate(forest.shares) if share] == [4]


def test_few_trees_keep_half_of_what_is_gained():
    """A torus without a link: 310/3 GB/s would take 31 trees, 100 take two."""
    left = api.damage(topology.load("torus:4x4"), links=["gpu0-gpu1"]).topology
    forest = forest_of(left)
    assert (forest.chunks, forest.algbw) == (2, 100 * GIGA)
    machine = topology.load("dgx2", nodes=2)
    found = allreduce_bound(Problem(machine, Collective.ALLREDUCE))
    assert forest_of(machine).algbw >= found.algbw / (1 + found.gain / 2)


def test_a_number_of_trees_is_kept():
    forest = forest_of(topology.load("mesh:4x4"), "5")
    assert forest.chunks == sum(forest.shares) == 5
    assert 0 < forest.gap < Fraction(1, 2)


def test_halves_of_a_lopsided_machine_have_trees_of_their_own():
    forest = forest_of(topology.load("dgx2", nodes=2))
    assert forest.gap <= MOST_GIVEN_UP
    assert forest.algbw > Fraction(2000, 31) * GIGA
    inward, outward = ({(t.root, t.edges) for t in phase.trees} for phase in forest.phases)
    assert inward != outward


@pytest.mark.parametrize("trees", ["auto", "optimal"])
@each("seed", range(45))
def test_random_graphs(seed, trees):
    if seed % 3 == 0:
        machine = forwarding_topology(seed)
    else:
        machine = random_topology(seed, most_gpus=9, directed=seed % 3 == 1)
    if allreduce_bound(Problem(machine, Collective.ALLREDUCE)).rooted is None:
        with pytest.raises(InfeasibleError) as caught:
            forest_of(machine, trees)
        assert caught.value.diagnostic.code == "CS322"
        return
    forest = forest_of(machine, trees)
    assert forest.gap <= (MOST_GIVEN_UP if trees == "auto" else 0)


@pytest.mark.parametrize("seed", range(6))
def test_larger_random_graphs(seed):
    machine = random_topology(seed, most_gpus=64, switches=8, directed=seed % 2 == 1)
    assert forest_of(machine).gap <= MOST_GIVEN_UP


def test_trees_are_low_around_the_centre():
    """From the corner that is farthest from its root, 8 hops; some trees need one more."""
    forest = forest_of(topology.load("mesh:8x8"))
    assert forest.max_height <= 10


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize("name", ["mesh:3x3", "mesh:4x3"])
def test_files_are_verified_and_chosen_by_themselves(name, runtime):
    problem = api.make_problem(api.load_topology(name), "allreduce")
    done = api.compile(problem, runtime, mode="in-place", level=0)
    assert done.verified
    assert done.pipeline.startswith("pack-roots")
    assert done.schedule.algbw > api.bound(problem).algbw


@pytest.mark.parametrize("seed", [1, 4, 7, 10, 13])
def test_random_lopsided_graphs_compile(seed):
    machine = random_topology(seed, most_gpus=6, directed=True)
    problem = api.make_problem(machine, "allreduce")
    if api.allreduce_bound(problem).rooted is not None:
        options = {"algorithm": "roots", "mode": "in-place", "instances": 2, "level": 0}
        done = api.compile(problem, "msccl", **options)
        assert done.verified
        assert done.artefacts[0].program.header.chunks == 2 * done.schedule.chunks


def test_equal_roots_stay_where_they_are_as_good():
    problem = api.make_problem(api.load_topology("dgx-a100"), "allreduce")
    done = api.compile(problem, "msccl", algorithm="forest", mode="in-place")
    assert done.pipeline.startswith("pack-trees")
    mesh = api.make_problem(api.load_topology("mesh:3x3"), "allreduce")
    assert api.compile(mesh, "msccl", mode="in-place", trees="1").schedule.trees_per_root == 1


def test_what_cannot_be_is_refused():
    machine = topology.load("mesh:3x3")
    with pytest.raises(InputError) as caught:
        PackRoots().run(Problem(machine, Collective.ALLGATHER), TARGET)
    assert caught.value.diagnostic.code == "CS321"
    with pytest.raises(InputError):
        PackRoots("many")
    with pytest.raises(InfeasibleError) as refused:
        forest_of(topology.load("ring:4"))
    assert refused.value.diagnostic.code == "CS322"
