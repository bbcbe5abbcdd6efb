"""Algorithms that are left out of a search before their programs are made."""

from __future__ import annotations

from itertools import product

import pytest

from colsynth import api
from colsynth.errors import ColsynthError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.hopeless import _LEAST, is_hopeless
from colsynth.search.means import Means
from colsynth.search.measured import Measured
from colsynth.search.objective import Objective
from colsynth.search.quest import Quest
from colsynth.search.searcher import Searcher
from colsynth.search.wish import Wish
from colsynth.search.workshop import Workshop
from colsynth.simulate import simulate
from tests.synthesis.baselines.reading import problem_of

SIZES = (2**12, 2**20, 2**26)
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast")
FORMS = {"ring": ({}, {"channels": 1}, {"channels": 2}, {"instances": 2}), "pipelined": ({},)}


@pytest.mark.parametrize(
    ("algorithm", "runtime", "programs"),
    [
        *(("ring", "msccl", 70), ("ring", "rccl", 60), ("ring", "mscclpp", 40)),
        *(("pipelined", "msccl", 18), ("pipelined", "rccl", 18)),
    ],
)
def test_no_program_is_faster_than_is_said_beforehand(algorithm, runtime, programs):
    """And some are hardly slower."""
    seen, nearest = 0, 0.0
    machine = profile(runtime)
    for (boxes, gpus), collective in product(((1, 5), (2, 4), (3, 2)), COLLECTIVES):
        problem = problem_of(boxes, gpus, collective)
        for form, protocol in product(FORMS[algorithm], machine.fifo_calls):
            target = Target(machine, protocol)
            try:
                program = Wish().start(algorithm, **form).pipeline.run(problem, target)
            except ColsynthError:
                continue  # it does not serve all collectives, nor has all options
            points = simulate(program, problem.topology, machine, SIZES)
            least = _LEAST[algorithm](problem, target, SIZES)
            ratios = [s / p.seconds for p, s in zip(points, least, strict=True)]
            assert max(ratios) <= 1
            seen, nearest = seen + 1, max(nearest, *ratios)
    assert seen >= programs
    assert nearest > 0.7


def searcher_of(problem, runtime, size):
    case = Case(problem, runtime, (size,))
    workshop, wish = Workshop(case), Wish(size=size)
    quest = Quest.of(workshop, Objective(), wish, Means(), api.bound(problem))
    return quest.searcher


def test_a_ring_is_left_out_only_where_another_program_is_faster_than_its_hops():
    """46 hops, each of at least 1.2 us by LL or LL128 on msccl, behind the launch of a call."""
    problem = problem_of(3, 8, "allreduce")
    hops = 46 * 1.2e-6
    for seconds, hopeless in ((0.9 * hops, True), (2 * hops, False)):
        searcher: Searcher = searcher_of(problem, "msccl", 2**20)
        assert not is_hopeless("ring", searcher, 2**20)
        fast = Measured(Wish().start("forest"), (seconds,), exact=(True,))
        searcher.take([fast])
        assert is_hopeless("ring", searcher, 2**20) is hopeless
        assert not is_hopeless("tree", searcher, 2**20)
