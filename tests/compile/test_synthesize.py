"""Synthesis without a runtime, with passes of the test's own in place of the matcher."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from colsynth.api import load_topology, make_problem
from colsynth.compile.synthesize import in_equal_chunks, synthesize_problem
from colsynth.errors import DefectError, InputError
from colsynth.model import (
    Collective,
    Direction,
    Hops,
    Problem,
    TimeBound,
    TimedPhase,
    TimedSchedule,
)
from colsynth.pipeline.memory import peak_megabytes
from colsynth.pipeline.registry import Registry
from colsynth.runtimes.target import Context

PAIR = make_problem(load_topology("ring:2", bandwidth="1 GB/s", latency="0 s"), "allgather")


@dataclass(frozen=True)
class Swap:
    """Let two GPUs send each other their chunk, a tick being a microsecond."""

    name: ClassVar[str] = "match-chunks"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = TimedSchedule

    size: int = 2000
    chunks_per_gpu: int = 1
    policy: str = "oldest"
    late: int = 0

    def run(self, value: Problem, target: Context) -> TimedSchedule:
        target.progress("swapping", 2, 2)
        ticks = self.size // 2000
        hops = Hops(
            source=np.array([1, 0], np.int32),
            target=np.array([0, 1], np.int32),
            first=np.arange(3),
            links=np.array([1, 0], np.int32),
            begin=np.zeros(2, np.int64),
            end=np.full(2, ticks),
            lag=np.zeros(2, np.int64),
        )
        phase = TimedPhase(
            direction=Direction.OUT,
            hops=hops,
            first=np.arange(3),
            chunk=np.array([1, 0], np.uint16),
            run_first=np.arange(3),
            run_start=np.zeros(2, np.int64),
            run_length=np.ones(2, np.int64),
        )
        micro = Fraction(1, 10**6)
        bound = TimeBound(ticks * micro, "ingress of gpu0")
        half = Fraction(self.size, 2)
        ends = ticks + self.late
        return TimedSchedule(value, self.size, 1, 2, half, micro, ends, (phase,), bound)


@dataclass(frozen=True)
class Boast(Swap):
    """Claim to be ready before the chunks are there."""

    def run(self, value: Problem, target: Context) -> TimedSchedule:
        return replace(super().run(value, target), ticks=1, bound=TimeBound(Fraction(1), "x"))


def registry(name):
    return Registry({"match-chunks": f"tests.compile.test_synthesize:{name}"})


def test_a_schedule_is_checked_and_comes_with_its_figures():
    told = []
    context = Context(seed=7, progress=lambda *what: told.append(what))
    options = {"size": 6000, "policy": None}
    done = synthesize_problem(PAIR, context, options, registry=registry("Swap"))
    assert (done.policy, done.seed, done.pipeline) == ("oldest", 7, "match-chunks{size=6000}")
    assert ("swapping", 2, 2) in told
    assert done.check_seconds > 0
    found = done.summary()
    assert (found["time_us"], found["bound_us"], found["gap"]) == (3, 3, 0)
    assert (found["algbw_gb_per_s"], found["bound_gb_per_s"]) == (2, 2)
    assert (found["chunks"], found["transfers"], found["schedule"]) == (2, 2, None)
    assert done.synthesis_seconds == pytest.approx(found["synthesis_seconds"], abs=1e-6)


def test_a_schedule_that_is_not_what_it_claims_is_a_defect():
    with pytest.raises(DefectError, match="match-chunks"):
        synthesize_problem(PAIR, Context(), {"size": 6000}, registry=registry("Boast"))


def test_a_pass_that_makes_something_else_is_refused():
    other = Registry({"match-chunks": "colsynth.synthesis.pack_trees:PackTrees"})
    with pytest.raises(InputError) as caught:
        synthesize_problem(PAIR, Context(), {}, registry=other)
    assert caught.value.diagnostic.code == "CS205"


def test_memory_is_measured_where_the_system_says():
    peak = peak_megabytes()
    block = np.ones(2**24)  # 134 MB
    more = peak_megabytes()
    assert peak is None or more >= max(peak, block.nbytes / 10**6)


@pytest.mark.parametrize("collective", [Collective.ALLGATHER, Collective.REDUCE_SCATTER])
def test_shards_of_different_sizes_are_cut_into_equal_chunks(collective):
    """Two GPUs with nothing and one with twice the chunks of another; each to three others."""
    problem = Problem(load_topology("clique:4"), collective, shards=(2, 0, 1, 0))
    done = synthesize_problem(problem, Context(), {"size": 6 * 2**20})
    assert done.schedule.chunks == 3
    assert done.schedule.chunk_bytes == 2 * 2**20
    assert done.schedule.transfers == 3 * 3
    assert done.schedule.problem == in_equal_chunks(problem)


def test_without_shards_a_problem_is_left_as_it_is():
    assert in_equal_chunks(PAIR) is PAIR
