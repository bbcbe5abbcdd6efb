"""The search: within its budget, the same on any number of cores, never slower for more."""

from __future__ import annotations

import pytest

from colsynth import api, topology
from colsynth.errors import InputError, LimitError
from colsynth.pipeline.modes import Mode
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.workers import Workers
from colsynth.tuning import Candidate, Case, Means, choose, search
from colsynth.tuning.candidates import algorithm_names, is_baseline, knobs, neighbours, starts
from colsynth.tuning.evaluate import Measured, build, evaluate, is_usable, usable_sizes
from colsynth.tuning.search import fastest

SIZES = (1024, 2**20, 2**26)


def case(name="ring:4", collective="allgather", runtime="msccl", sizes=SIZES):
    return Case(api.make_problem(topology.load(name), collective), runtime, sizes)


@pytest.mark.parametrize("budget", [1, 2, 7, 30])
def test_the_budget_is_what_is_spent_at_most(budget):
    found = search(case(), ("forest", "ring"), Means(budget))
    assert len(found) <= budget
    assert len({m.candidate for m in found}) == len(found)


def test_more_evaluations_never_find_less():
    best = None
    for budget in (2, 6, 12, 24):
        found = search(case(), ("forest", "ring"), Means(budget))
        times = [fastest(found, place)[0] for place in range(len(SIZES))]
        assert best is None or all(a <= b for a, b in zip(times, best, strict=True))
        best = times


def test_processes_change_nothing():
    alone = search(case(), ("forest", "allpairs2"), Means(8))
    with Workers(2) as workers:
        assert search(case(), ("forest", "allpairs2"), Means(8, workers)) == alone


def test_the_clock_of_single_sizes_does_not_depend_on_the_others():
    together = evaluate(case(), Candidate("forest"))
    apart = [evaluate(case(sizes=(size,)), Candidate("forest")).seconds[0] for size in SIZES]
    assert list(together.seconds) == apart


def test_every_algorithm_starts_and_what_does_not_serve_is_left():
    found = search(case(collective="allgather"), algorithm_names(), Means(60))
    tried = {m.candidate.algorithm for m in found}
    assert tried == set(ALGORITHMS)
    protocols = {}
    for measured in found:
        protocols.setdefault(measured.candidate.algorithm, set()).add(measured.candidate.protocol)
    assert protocols["pairwise"] == {"Simple"}
    assert protocols["forest"] == {"Simple", "LL", "LL128"}


def test_small_protocols_are_not_tried_at_large_messages():
    large = case(sizes=(2**30,))
    assert all(c.protocol != "LL" for row in starts(("forest",), 2**30) for c in row)
    assert evaluate(large, Candidate("forest", "LL")).refusal is not None
    mixed = evaluate(case(sizes=(1024, 2**30)), Candidate("forest", "LL"))
    assert mixed.seconds[0] is not None
    assert mixed.seconds[1] is None


def test_neighbours_differ_in_one_knob():
    start = next(starts(("ten",), 1024))[0]
    for other in neighbours(start, 1024):
        one, two = start.settings(), other.settings()
        assert sum(one.get(key) != two.get(key) for key in {*one, *two}) == 1
    assert {c.chunks_per_gpu for c in neighbours(start, 1024)} == {1, 2, 4}
    assert {c.protocol for c in neighbours(start, 1024)} == {"Simple", "LL", "LL128"}
    assert {c.protocol for c in neighbours(start, 2**30)} == {"Simple", "LL128"}


def test_baselines_are_all_but_our_own():
    ours = [name for name in ALGORITHMS if not is_baseline(name)]
    assert set(ours) == set(knobs().own) <= set(ALGORITHMS)
    assert algorithm_names()[: len(ours)] == tuple(ours)
    with pytest.raises(InputError) as caught:
        algorithm_names(["forest", "rings"])
    assert "ring" in caught.value.diagnostic.help


def test_a_file_is_used_where_its_chunks_divide_the_elements():
    assert is_usable(2**20, 16, 8)
    assert is_usable(2**20 - 5, 16, 8)
    assert not is_usable(2**20, 7, 8)
    assert is_usable(2**20, 6, 6)
    assert not is_usable(1, 8, 8)


def test_sizes_a_runtime_has_no_files_for_are_left_out():
    assert usable_sizes("msccl", [4096, 2**32, 1024, 1024]) == (1024, 4096)
    assert usable_sizes("rccl", [2**32]) == (2**32,)
    with pytest.raises(InputError) as caught:
        usable_sizes("msccl", [2**31])
    assert caught.value.diagnostic.code == "CS212"


def test_choose_takes_the_fastest_of_all():
    one = case(sizes=(2**26,))
    best = choose(one, Means(24))
    found = search(one, algorithm_names(), Means(24))
    chosen = next(m for m in found if m.candidate == best)
    assert chosen.served[0] == fastest(found, 0, lambda m: m.served)[0]


def test_nothing_fits_says_why():
    single = Case(api.make_problem(topology.load("mesh:3x3"), "alltoall"), "msccl", (1024,))
    with pytest.raises(LimitError) as caught:
        api.compare(single.problem, (1024,), algorithms=("ring", "forest"), budget=4)
    assert caught.value.diagnostic.code == "CS611"
    assert [note.partition(":")[0] for note in caught.value.diagnostic.notes] == ["forest", "ring"]


def test_broadcasts_between_boxes_are_tried_with_protocols_that_do_not_hang():
    """Simple is refused there for every algorithm, which is no word against any of them."""
    boxes = topology.load("dgx-a100", nodes=2)
    (pair,) = api.communicators(api.make_problem(boxes, "broadcast", groups=[[0, 8]]), "rccl")
    found = search(Case(pair.problem, "rccl", (2**20, 2**26)), ("forest", "ring"), Means(20))
    assert {measured.candidate.protocol for measured in found} == {"LL", "LL128"}
    assert any(measured.refusal is None for measured in found)


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_is_a_number_from_one(budget):
    with pytest.raises(InputError) as caught:
        search(case(), ("forest",), Means(budget))
    assert caught.value.diagnostic.code == "CS210"


def test_auto_compiles_what_was_measured_at_its_size(monkeypatch):
    """The simulator has decided; it is not asked again at the size that `compile` asks about."""
    problem = api.make_problem(topology.load("mi250"), "reduce-scatter")
    plain = Candidate("forest")
    monkeypatch.setattr("colsynth.tuning.choose", lambda *_: plain)
    done = api.compile(problem, "msccl", algorithm="auto", size=2**16)
    made = build(Case(problem, "msccl", (2**16,)), plain, mode=Mode.AUTO, several=True)
    assert [a.data for a in done.artefacts] == [a.data for a in made.artefacts]
    asked = api.compile(problem, "msccl")
    assert [a.data for a in asked.artefacts] != [a.data for a in made.artefacts]


GOOD = {"seconds": [1e-5, 2e-5, 3e-5], "refusal": None, "usable": [True, False, True]}


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": [1e-5, 2e-5]},
        {"seconds": [None, 2e-5, 3e-5]},
        {"seconds": [float("inf"), 2e-5, 3e-5]},
        {"seconds": [float("nan"), 2e-5, 3e-5]},
        {"seconds": [0.0, 2e-5, 3e-5]},
        {"seconds": [-1.0, 2e-5, 3e-5]},
        {"seconds": ["1", 2e-5, 3e-5]},
        {"usable": [True]},
        {"usable": [1, 2, 3]},
        {"refusal": "CS402: too much"},
        {"refusal": 5},
        {"seconds": None},
    ],
    ids=str,
)
def test_a_measurement_that_a_journal_cannot_have_held_is_made_again(change):
    candidate = next(starts(("ring",), 1024))[0]
    assert Measured.of_entry(case(), candidate, GOOD).seconds == (1e-5, 2e-5, 3e-5)
    with pytest.raises(ValueError):  # noqa: PT011 - the message is for nobody
        Measured.of_entry(case(), candidate, {**GOOD, **change})
