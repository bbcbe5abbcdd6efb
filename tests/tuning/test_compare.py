"""Algorithms beside each other: bounds hold, gains are what the times say."""

from __future__ import annotations

import pytest

from colsynth import api, topology
from colsynth.errors import InputError

SIZES = (1024, 2**20, 2**30)


@pytest.fixture(scope="module")
def found():
    problem = api.make_problem(topology.load("dgx-a100", nodes=2), "allreduce")
    return api.compare(problem, SIZES, algorithms=("ring", "tree", "forest", "ten"), budget=14)


def test_no_algorithm_beats_the_bound(found):
    for name in found.winners:
        assert all(x is None or 0 < x < found.bound for x in found.algbw(name))


def test_the_bound_of_an_allreduce_lets_roots_choose():
    """Equal roots reach 56.25 GB/s on this mesh, and the forest that is compared has free ones."""
    problem = api.make_problem(topology.load("mesh:3x3"), "allreduce")
    assert api.compare(problem, (2**20,), algorithms=("forest",), budget=2).bound == 75 * 10**9


def test_the_best_is_the_fastest_at_every_size(found):
    for place, name in enumerate(found.best):
        times = [found.seconds(other, place) for other in found.winners]
        assert found.seconds(name, place) == min(t for t in times if t is not None)


def test_the_gain_is_over_the_algorithms_of_the_library(found):
    """It is never below zero, since theirs are among those that are compared."""
    assert found.library == ("ring", "tree")
    for place in range(len(SIZES)):
        theirs = min(found.seconds(name, place) for name in ("ring", "tree"))
        least = min(found.seconds(name, place) for name in found.winners)
        assert found.over_library(place) == pytest.approx(theirs / least - 1)
        assert found.over_library(place) >= 0


def test_without_algorithms_of_the_library_there_is_no_gain():
    problem = api.make_problem(topology.load("ring:4"), "allgather")
    alone = api.compare(problem, (2**20,), algorithms=("forest",), budget=1)
    assert alone.library == ()
    assert alone.over_library(0) is None
    assert alone.best == ("forest",)


@pytest.mark.parametrize(("budget", "known"), [(1, False), (6, True)])
def test_there_is_no_gain_over_algorithms_that_the_budget_left_protocols_out_of(budget, known):
    problem = api.make_problem(topology.load("ring:3"), "allreduce")
    found = api.compare(problem, (4096,), algorithms=("ring",), budget=budget)
    assert found.starved == (not known,)
    assert (found.over_library(0) is not None) is known


@pytest.mark.parametrize("machine", ["dgx-h100", "gb200-nvl72"])
def test_the_bound_counts_on_a_switch_that_files_let_add_up(machine):
    problem = api.make_problem(topology.load(machine), "allreduce")
    asked = {"algorithms": ("multicast",), "budget": 1}
    found = api.compare(problem, (2**30,), runtime="mscclpp", **asked)
    assert 0.7 * found.bound < found.algbw("multicast")[0] < found.bound
    asked["algorithms"] = ("forest",)
    assert api.compare(problem, (2**30,), runtime="msccl", **asked).bound < 0.7 * found.bound


def test_protocols_that_a_collective_cannot_use_are_left_out():
    """Packets are not safe in a broadcast."""
    problem = api.make_problem(topology.load("clique:3"), "broadcast")
    found = api.compare(problem, (2**20,), runtime="mscclpp", algorithms=("ring", "forest"))
    assert {m.plan.protocol for row in found.winners.values() for m in row} == {"Simple"}


def test_algorithms_are_compared_where_the_default_protocol_hangs():
    """A broadcast over a network goes by LL or LL128 alone on rccl."""
    topo = topology.load("dgx-a100", nodes=2)
    problem = api.make_problem(topo, "broadcast", groups=((0, 8),))
    found = api.compare(problem, (2**20,), runtime="rccl")
    assert {"forest", "ring"} <= set(found.winners)
    assert found.untried == ("exact",)
    assert "multicast" in found.unfit


def test_the_library_beneath_torch_is_not_a_ring_in_rounds():
    """Rounds cost much at small messages, which the library by itself does without."""
    topo, sizes = topology.load("ring:4"), (2**10, 2**30)
    problem = api.make_problem(topo, "allreduce")
    found = api.compare(problem, sizes, runtime="torch", algorithms=("ring",), budget=2)
    beneath = api.compare(problem, sizes, runtime="msccl-executor", algorithms=("ring",), budget=1)
    assert found.library == ("ring", "tree")
    assert found.over_library(0) < -0.5
    theirs = found.seconds("ring", 1) * (1 + found.over_library(1))
    assert theirs <= beneath.seconds("ring", 1) * 1.001


def test_all_algorithms_together_are_no_slower_than_what_compile_finds_for_a_size():
    problem, size = api.make_problem(topology.load("mesh:2x3"), "allreduce"), 2**20
    found = api.compare(problem, (size,), runtime="rccl")
    ours = api.compile(problem, "rccl", size=size, several=False).predicted[-1].seconds
    assert found.seconds(found.best[0], 0) <= ours * (1 + 1e-9)


def test_a_size_that_is_not_usual_is_compared_as_if_it_were_alone():
    """No file for powers of two serves it."""
    problem, size = api.make_problem(topology.load("clique:5"), "allreduce"), 25 * 10**6
    asked = {"algorithms": ("rails", "ring"), "budget": 8}
    alone = api.compare(problem, (size,), **asked)
    beside = api.compare(problem, (2**20, size), **asked)
    for name in ("rails", "ring"):
        assert beside.seconds(name, 1) == alone.seconds(name, 0) is not None


@pytest.mark.parametrize(
    ("machine", "collective", "runtime"),
    [("mi300x", "allgather", "rccl"), ("clique:4", "reduce-scatter", "msccl")],
)
def test_sizes_beside_others_are_no_slower_than_what_compile_finds(machine, collective, runtime):
    """Rails send their shards in calls that suit one size."""
    problem, sizes = api.make_problem(topology.load(machine), collective), (2**24, 2**26)
    found = api.compare(problem, sizes, runtime=runtime)
    for place, size in enumerate(sizes):
        done = api.compile(problem, runtime, size=size, several=False)
        assert found.seconds(found.best[place], place) <= done.predicted[-1].seconds


def test_an_algorithm_that_gave_no_program_is_named_with_the_reason():
    problem = api.make_problem(topology.load("ring:4"), "allgather")
    found = api.compare(problem, [2**20], algorithms=["ring", "roots"])
    for name, said in (("rings", "did you mean 'ring'"), ("roots", "free roots are for allreduce")):
        with pytest.raises(InputError, match=f"(?s)CS213.*'{name}'.*{said}"):
            found.algbw(name)
