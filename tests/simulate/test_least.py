"""The least time of a program: never above what is simulated, and enough to leave a program out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth import api
from colsynth.cost import default_model, ideal_model
from colsynth.runtimes import profile
from colsynth.search.case import Case
from colsynth.search.means import Means
from colsynth.search.objective import Objective
from colsynth.search.run import find_each, find_plan
from colsynth.search.wish import Wish
from colsynth.simulate import prepare, simulate
from colsynth.simulate.least import least_seconds
from colsynth.simulate.machine import build
from tests.simulate.programs import random_program, random_topology

RUNTIMES = [profile(name) for name in ("msccl", "msccl-executor", "rccl")]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2), st.sampled_from([1, 5000, 10**6, 10**9]))
def test_no_program_is_faster(seed, place, size):
    rng, runtime = random.Random(seed), RUNTIMES[place]
    ranks = rng.randint(2, 6)
    topology = random_topology(rng, ranks)
    program = random_program(rng, ranks, rng.choice(("Simple", "LL", "LL128")))
    for model in (ideal_model(), default_model(runtime)):
        (point,) = simulate(program, topology, runtime, [size], model)
        least = least_seconds(build(program, topology, model), runtime, size)
        assert 0 <= least <= point.seconds * (1 + 1e-9)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("algorithm", ["ring", "allpairs", "tree", "rails", "forest"])
def test_nor_any_of_many_tiles(algorithm, runtime):
    """Only some tiles are simulated then, and the others are estimated."""
    topology = api.load_topology("ndv2")
    problem = api.make_problem(topology, "allreduce")
    done = api.compile(problem, runtime, algorithm=algorithm, several=False, level=0)
    program, kind = done.artefacts[0].program, profile(runtime)
    built = build(program, topology, default_model(kind))
    for size in (10**6, 2**30):
        (point,) = simulate(program, topology, kind, [size])
        assert least_seconds(built, kind, size) <= point.seconds


def test_it_is_close_where_links_carry_all():
    topology = api.load_topology("ring:4")
    done = api.compile(api.make_problem(topology, "allgather"), "msccl", algorithm="ring")
    program, runtime = done.artefacts[0].program, profile("msccl")
    (point,) = simulate(program, topology, runtime, [2**30])
    least = least_seconds(build(program, topology, default_model(runtime)), runtime, 2**30)
    assert least > 0.75 * point.seconds
    ready = prepare(program, topology, runtime)
    assert (ready.least(2**30), ready.points([2**30])) == (least, (point,))


def test_a_search_leaves_out_what_is_far_slower_but_a_comparison_shows_it():
    problem = api.make_problem(api.load_topology("mesh:2x3"), "allreduce")
    case = Case(problem, "rccl", (3 * 2**28,))
    found = find_plan(case, Objective(), Wish(), Means())
    (slow,) = (m for m in find_each(case, ("allpairs",), Means(1)).measured if m.shape)
    assert slow.seconds[0] > 4 * found.best.seconds[0]
    assert slow.plan not in [m.plan for m in found.ranking]
