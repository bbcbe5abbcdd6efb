"""A search that a copy of the process shares finds what it finds alone, whoever is faster."""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace
from math import inf

import pytest

from colsynth import api
from colsynth.errors import Diagnostic, VerificationError
from colsynth.search import run
from colsynth.search.case import Case
from colsynth.search.means import Means
from colsynth.search.measured import Limit, Measured
from colsynth.search.objective import Objective
from colsynth.search.searcher import Searcher
from colsynth.search.sharing import Sharing
from colsynth.search.wish import Wish
from colsynth.search.workshop import Workshop
from colsynth.simulate import Prepared

pytestmark = [
    pytest.mark.usefixtures("copies"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes copy themselves here"),
]
SIZE = 2**20
FOREST, RING, PAIRS = (Wish().start(name) for name in ("forest", "ring", "allpairs2"))


def case(machine="mesh:2x3", collective="allreduce", runtime="msccl", size=SIZE):
    problem = api.make_problem(api.load_topology(machine), collective)
    return Case(problem, runtime, (size,))


def asked(*plans):
    return [((plan, Limit()),) for plan in plans]


def tried(case, monkeypatch, *, beside, level=1, seed=None):
    """Return all that a search tries.

    With a seed, each measurement waits for a random time, and the copy simulates all or nothing.
    """
    measure, limit_of, here = Workshop.measure, Searcher.limit, os.getpid()

    def late(workshop, asked):
        plans = [plan for plan, _ in asked]
        time.sleep(random.Random(f"{seed} {os.getpid()} {plans}").random() ** 4 / 20)
        return measure(workshop, asked)

    def limit(searcher, plan, slowest):
        own = limit_of(searcher, plan, slowest)
        return own if os.getpid() == here else Limit((inf if seed % 2 else 0.0,), 0)

    def all_of(searcher, *_, **__):
        return list(searcher.found.values()), searcher.evaluations, searcher.work

    with monkeypatch.context() as patch:
        patch.setattr(run, "found_by", all_of)
        if seed is not None:
            patch.setattr(Workshop, "measure", late)
            patch.setattr(Searcher, "limit", limit)
        return run.find_plan(case, Objective(), Wish(level=level), Means(beside=beside))


@pytest.mark.parametrize(
    ("machine", "collective", "runtime", "size"),
    [
        ("clique:4", "allreduce", "msccl", 2**22),
        ("clique:4", "reduce-scatter", "mscclpp", 2**24),
        ("ring:5", "allgather", "rccl", 2**22),
    ],
)
def test_who_is_faster_changes_nothing(machine, collective, runtime, size, monkeypatch):
    """All results are the same in the same order, those without times too."""
    cases = case(machine, collective, runtime, size)
    alone = tried(cases, monkeypatch, beside=False)
    assert any(m.shape is not None and not any(m.seconds) for m in alone[0])
    for seed in range(2):
        assert tried(cases, monkeypatch, beside=True, seed=seed) == alone


def test_nor_does_it_where_slow_programs_hang(monkeypatch):
    """One that is too slow to be simulated here is not refused because it hangs in the copy."""
    points, ring = Prepared.points, case("ring:4", "allgather", size=2**24)

    def hang(prepared, sizes):
        found = points(prepared, sizes)
        if sizes and prepared.least(sizes[0]) > 1e-3:
            raise VerificationError(Diagnostic("CS603", "the program does not finish"))
        return found

    monkeypatch.setattr(Prepared, "points", hang)
    alone = tried(ring, monkeypatch, beside=False)
    assert any(m.shape is not None and not any(m.seconds) for m in alone[0])
    for seed in (1, 3):
        assert tried(ring, monkeypatch, beside=True, seed=seed) == alone


def test_nor_does_it_at_higher_levels(monkeypatch):
    ring = case("ring:4", "allgather")
    alone = tried(ring, monkeypatch, beside=False, level=2)
    assert tried(ring, monkeypatch, beside=True, level=2, seed=1) == alone


def test_a_plan_is_measured_once_and_its_program_comes_along(monkeypatch):
    """Of the copy's results, the best of both processes brings its program."""
    shop = Workshop(case())
    rows = asked(FOREST, PAIRS)

    def work():
        list(sharing.run(rows))

    sharing = Sharing(shop, Objective(), None, work)
    with sharing:
        alone = Workshop(case())
        known = {m.plan: m for plan in (FOREST, PAIRS) for m in alone.measure([(plan, Limit())])}
        while len(list(sharing._shared.results())) < 2:
            sharing._shared.wait()
        monkeypatch.setattr(Workshop, "measure", None)  # nothing is measured here
        told = {row[0].plan: row[0] for row in sharing.run(rows)}
        assert told == known
        best = Objective().best(told.values())
        sharing.adopt(best)
        program = shop._kept[shop._numbers_of(best.plan)[-1]][1]
        assert program == alone.make(best.plan)[1]
        assert shop.make(best.plan) == alone.make(best.plan)


def test_a_result_brings_the_seconds_of_its_own_passes_alone():
    def work():
        list(sharing.run(asked(RING, FOREST)))  # from its end

    sharing = Sharing(Workshop(case()), Objective(), None, work)
    with sharing:
        while len(told := list(sharing._shared.results())) < 2:
            assert sharing._shared.wait()
        names = {measured.plan: set(spent) for measured, spent in told}
        assert names[FOREST] - names[RING] == {"pack-trees", "round-weights"}
        assert names[RING] - names[FOREST] == {"build-ring"}


def test_a_plan_that_both_begin_is_left_to_the_first_process(monkeypatch):
    """It does not wait for the copy there, should it ask for the plan again."""
    measure = Workshop.measure

    def work():
        while not sharing._shared.is_begun(RING):
            sharing._shared.wait()
        assert sharing._result(RING, Limit()) is None
        sharing._shared.wish(["left"])
        sharing.serve()

    def late(workshop, asked):
        while sharing._shared.wished() is None:
            assert sharing._shared.wait()
        return measure(workshop, asked)

    monkeypatch.setattr(Workshop, "measure", late)
    sharing = Sharing(Workshop(case()), Objective(), None, work)
    with sharing:
        once = list(sharing.run(asked(RING)))
        assert not sharing._shared.is_begun(RING)
        assert list(sharing.run(asked(RING))) == once


def test_a_result_without_times_is_taken_only_where_none_are_needed():
    slow = Measured(RING, (None,), shape=object(), least=(2.0,))
    fast = replace(slow, seconds=(3.0,))
    refused = Measured(RING, (None,), "CS402: too many")
    hangs = replace(refused, least=(2.0,))
    every = (slow, fast, refused, hangs)
    assert [Limit((1.0,), 0).holds(m) for m in every] == [True, True, True, False]
    assert [Limit((2.0,), 0).holds(m) for m in every] == [False, True, True, True]
    assert [Limit((1.0,), 0).judged(m) for m in (slow, fast)] == [slow, slow]
    assert [Limit((2.0,), 0).judged(m) for m in (slow, fast)] == [slow, fast]


def test_what_waits_here_is_measured_by_the_copy_first(monkeypatch):
    measure, here = Workshop.measure, os.getpid()
    others = asked(*(replace(PAIRS, protocol=protocol) for protocol in ("Simple", "LL")))

    def work():
        while not sharing._shared.is_begun(FOREST):
            sharing._shared.wait()
        list(sharing.run(others))

    def late(workshop, asked):
        while os.getpid() == here and not list(sharing._shared.results()):
            assert sharing._shared.wait()
        return measure(workshop, asked)

    monkeypatch.setattr(Workshop, "measure", late)
    sharing = Sharing(Workshop(case()), Objective(), None, work)
    with sharing:
        list(sharing.run(asked(RING, FOREST)))
        assert next(sharing._shared.results())[0].plan == RING
