"""Replicas of few, wide trees: enough to fill links, no more than threadblocks allow."""

from dataclasses import replace

import pytest

from colsynth import runtimes, topology
from colsynth.cost import default_model
from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.replicas import replicas
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_roots import PackRoots

TARGET = Target(runtimes.profile("msccl"), size=9 << 20)
PACE = default_model(TARGET.profile).rate["Simple"] * 10**9


@pytest.fixture(scope="module")
def forest():
    problem = Problem(topology.load("mesh:3x3"), Collective.ALLREDUCE)
    return PackRoots("3").run(problem, TARGET)


def wide(forest, times):
    """The same trees, given so many times what a threadblock moves."""
    rate = type(forest.algbw)(int(PACE * times))
    return replace(forest, phases=tuple(replace(p, unit_bandwidth=rate) for p in forest.phases))


@pytest.mark.parametrize(("times", "expected"), [(0.5, 1), (0.99, 1), (1.5, 2), (2.5, 4), (3.9, 4)])
def test_a_power_of_two_that_fills_the_links(forest, times, expected):
    assert replicas(wide(forest, times), TARGET) == expected


def test_no_more_than_threadblocks_allow(forest):
    small = replace(TARGET, profile=replace(TARGET.profile, resident_threadblocks=40))
    assert replicas(wide(forest, 100), small) == 2
    tiny = replace(TARGET, profile=replace(TARGET.profile, resident_threadblocks=4))
    assert replicas(wide(forest, 100), tiny) == 1


def test_lowering_copies_by_itself(forest):
    program = LowerForest(fill=True).run(wide(forest, 1.5), TARGET)
    assert program == LowerForest(2).run(wide(forest, 1.5), TARGET)
    assert program.chunks == 6
