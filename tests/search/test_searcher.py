"""The searcher: within its budget, the same in any process, every choice as passes declare it."""

from __future__ import annotations

import operator
import pickle
from dataclasses import replace
from math import inf

import pytest

from colsynth import api, topology
from colsynth.errors import InputError, LimitError
from colsynth.jobs.evaluation import fingerprint
from colsynth.pipeline.options import options_of
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT
from colsynth.runtimes.choice import Choice
from colsynth.search.case import Case, usable_protocols, usable_sizes
from colsynth.search.least_times import TOLERANCE, LeastTimes
from colsynth.search.levels import HEAVY, LAST, OWN, PROMISING, SWEEP
from colsynth.search.means import Means
from colsynth.search.measured import Limit, Measured
from colsynth.search.objective import CROWDED, Objective
from colsynth.search.plan import Plan
from colsynth.search.run import find_each
from colsynth.search.searcher import Searcher
from colsynth.search.wish import Wish, algorithm_names, is_baseline
from colsynth.search.workshop import Workshop

SIZES = (1024, 2**20, 2**26)
FOREST = Wish().start("forest")


def case(name="ring:4", collective="allgather", runtime="msccl", sizes=SIZES):
    problem = api.make_problem(topology.load(name), collective)
    return Case(problem, runtime, sizes, out_of_place=False, limited=True)


def measured(found, plan):
    (one,) = Workshop(found).measure([(plan, Limit())])
    return one


@pytest.mark.parametrize("budget", [1, 2, 7, 30])
def test_the_budget_is_what_is_spent_at_most(budget):
    found = find_each(case(), ("forest", "ring"), Means(budget)).measured
    assert len(found) <= budget * len(SIZES)
    assert len({m.plan for m in found}) == len(found)


def test_equal_programs_count_as_work_once():
    """Different choices often lead to one program, which is made once."""
    found = case(sizes=(2**20,))
    searcher = Searcher(Workshop(found), Objective(), Means(), ("Simple",))
    orders = [{"order-transfers.order": order} for order in ("chains", "list-schedule")]
    plans = [FOREST.changed(changes) for changes in orders]
    searcher.try_all([(plan,) for plan in plans])
    programs = [searcher.workshop.make(plan)[1] for plan in plans]
    assert programs[0] == programs[1]
    assert searcher.work == searcher.found[plans[0]].shape.steps
    more = FOREST.changed({"lower-forest.instances": 2})
    searcher.try_all([(more,)])
    assert searcher.work == searcher.found[plans[0]].shape.steps + searcher.found[more].shape.steps


def test_plans_choose_threadblocks_and_sums_again_once_trees_have_segments():
    """Both were chosen for trees without any, and come before smaller iterations."""
    found = case("dgx-a100", "allreduce", "mscclpp", (2**24,))
    searcher = Searcher(Workshop(found), Objective(), Means(), ("Simple",))
    changes = {"lower-forest.segments": "1-1", "assign-threadblocks.strategy": "balanced"}
    searcher.try_all([(FOREST.changed(changes),)])
    searcher.sweep(("forest",), only=[choice for choice in LAST if "halves" not in choice])
    values = [plan.values() for plan in searcher.found]
    strategies = [value["assign-threadblocks.strategy"] for value in values]
    assert strategies[:2] == ["balanced", "spread"]
    assert {value["assign-threadblocks.fold"] for value in values} == {1, 2, 4, 7}


def test_no_size_is_slower_beside_others_than_alone():
    """Every size has a search of its own, and segments are cut for it."""
    names, budget = ("forest", "ring"), Means(16)
    together = find_each(case(), names, budget).measured
    for row, size in enumerate(SIZES):
        alone = find_each(case(sizes=(size,)), names, budget).measured
        for name in names:
            times = [m.seconds[0] for m in alone if m.plan.algorithm == name]
            beside = [m.seconds[row] for m in together if m.plan.algorithm == name]
            assert min(filter(None, beside)) <= min(filter(None, times))
        assert {m.plan for m in alone} <= {m.plan for m in together}


@pytest.mark.parametrize(
    ("machine", "runtime"), [("dgx-a100", "msccl"), ("mi250", "rccl"), ("mesh:2x3", "msccl")]
)
def test_times_that_are_left_out_are_none_of_the_best(machine, runtime, monkeypatch):
    """Each algorithm keeps its best time at every size, and every plan that wins is timed there."""
    sizes = (2**14, 2**20, 2**26, 2**31)
    found = case(machine, runtime=runtime, sizes=sizes)
    names = ("forest", "ring", "allpairs")
    short = find_each(found, names, Means(24)).measured
    monkeypatch.setattr(LeastTimes, "limits", lambda *_: (inf,) * len(sizes))
    whole = find_each(found, names, Means(24)).measured
    assert [m.plan for m in short] == [m.plan for m in whole]
    assert sum(x is None for m in short for x in m.seconds) > 9
    for one, other in zip(short, whole, strict=True):
        assert all(x is None or x == y for x, y in zip(one.seconds, other.seconds, strict=True))
    for place, size in enumerate(sizes[: 3 if runtime == "msccl" else 4]):
        least = {}
        for m in whole:
            if m.seconds[place] is not None and m.exact[place]:
                own = least.get(m.plan.algorithm, inf)
                least[m.plan.algorithm] = min(own, m.seconds[place])
        winning = min(least.values()) * float(1 + TOLERANCE)
        for one, other in zip(short, whole, strict=True):
            time = other.seconds[place]
            if time is not None and time <= max(winning, least[one.plan.algorithm]):
                assert one.seconds[place] == time, (size, one.plan)


def test_more_evaluations_never_find_less():
    best = None
    for budget in (2, 6, 12, 24):
        found = find_each(case(), ("forest", "ring"), Means(budget)).measured
        scores = [each.score(each.best(found)) for each in Objective.each(SIZES)]
        assert best is None or all(a <= b for a, b in zip(scores, best, strict=True))
        best = scores


def test_the_time_of_a_size_does_not_depend_on_the_others():
    together = measured(case(), FOREST)
    apart = [measured(case(sizes=(size,)), FOREST).seconds[0] for size in SIZES]
    assert list(together.seconds) == apart


def test_what_plans_have_in_common_is_made_once_and_changes_nothing():
    shop = Workshop(case("mi250"))
    plans = [FOREST, FOREST.changed({"coalesce-chunks.merge": 1}), FOREST]
    together = [shop.measure([(plan, Limit())])[0] for plan in plans]
    assert together == [measured(case("mi250"), plan) for plan in plans]
    assert together[0] == together[2]
    assert shop.clock.seconds()["pack-trees"] > 0
    simulated = shop.clock.seconds()["simulate"]
    few = FOREST.changed({"order-transfers.order": "copy-chains"})  # the same order here
    assert shop.measure([(few, Limit())]) == [replace(together[0], plan=few)]
    assert shop.clock.seconds()["simulate"] == simulated
    other = pickle.loads(pickle.dumps(shop))
    assert other.measure([(FOREST, Limit())]) == [together[0]]


def test_the_pinned_program_and_forests_are_kept_whatever_else_is_made(monkeypatch):
    monkeypatch.setattr("colsynth.search.workshop._KEPT", 1)
    shop, other = Workshop(case("mi250")), FOREST.changed({"lower-forest.instances": 2})
    shop.measure([(FOREST, Limit())])
    shop.pin(FOREST)
    first = shop.make(FOREST)
    forest, program = shop.make(other)
    assert all(map(operator.is_, shop.make(FOREST), first))
    assert forest is first[0]
    shop.make(FOREST.changed({"lower-forest.instances": 3}))
    again = shop.make(other)[1]
    assert again == program
    assert again is not program


def test_every_algorithm_starts_and_what_does_not_serve_is_left():
    names = algorithm_names(case().problem)
    found = find_each(case(), names, Means(60)).measured
    assert {m.plan.algorithm for m in found} == set(names)
    # Shortest paths are refused where there are switches, exact schedules tried where asked for,
    # only plans tell a switch to multicast, and msccl adds while it receives.
    assert set(ALGORITHMS) - set(names) <= {"bfb", HEAVY, "multicast", "pipelined"}
    protocols = {}
    for m in found:
        protocols.setdefault(m.plan.algorithm, set()).add(m.plan.protocol)
    assert len(protocols["pairwise"]) == 1
    assert protocols["forest"] == {"Simple", "LL", "LL128"}


def test_small_protocols_are_not_tried_at_large_messages():
    small = Plan("forest", "LL", FOREST.passes)
    assert usable_protocols(case(sizes=(2**30,))) == ("Simple", "LL128")
    assert measured(case(sizes=(2**30,)), small).refusal is not None
    mixed = measured(case(sizes=(1024, 2**30)), small)
    assert mixed.seconds[0] is not None
    assert mixed.seconds[1] is None


def test_choices_are_options_of_their_pass_and_what_is_swept_is_declared():
    declared = set()
    for name in DEFAULT.names():
        passes = DEFAULT.load(name)
        options = {option.field for option in options_of(passes)}
        for choice in getattr(passes, "choices", ()):
            assert choice.option in options
            assert bool(choice.values) != bool(choice.propose)
            declared.add(f"{name}.{choice.known_as}")
    assert {*SWEEP, *LAST} <= declared


def test_a_ladder_is_climbed_step_by_step():
    ladder = Choice("instances", (1, 2, 4, 8), ladder=True)
    assert ladder.beside(1) == (2,)
    assert ladder.beside(4) == (2, 8)
    assert ladder.beside(3) == (1, 2, 4, 8)
    assert Choice("channels", (0, 1, 2)).beside(1) == (0, 2)


def test_cuts_divide_messages():
    copies = Choice("instances", (1, 2, 4, 8, 16), ladder=True, cuts=True)
    assert copies.beside(2, parts=0) == copies.beside(2, parts=2**20) == (1, 4)
    assert copies.beside(2, parts=2 * 5**8) == (1, 5)
    assert copies.beside(5, parts=2 * 5**8) == (2, 10)


def test_a_plan_tells_what_differs_from_its_algorithm():
    plan = FOREST.changed({"lower-forest.instances": 4, "order-transfers.order": "round-robin"})
    assert plan.settings() == {"instances": 4, "order": "round-robin"}
    assert str(plan) == "forest Simple instances=4 order=round-robin"
    assert plan.option("instances") == 4
    assert FOREST.changed({"build-ring.channels": 2}) is None


def test_a_measurement_is_read_back_from_plain_values():
    one = measured(case(), FOREST)
    assert Measured.of_entry(FOREST, (True, True, True), one.entry()) == one


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": [1e-5, 2e-5]},
        {"least": [0.0]},
        {"least": [float("nan"), 0.0, 0.0]},
        {"seconds": [float("inf"), 2e-5, 3e-5]},
        {"seconds": [float("nan"), 2e-5, 3e-5]},
        {"seconds": [0.0, 2e-5, 3e-5]},
        {"seconds": ["1", 2e-5, 3e-5]},
        {"usable": [True]},
        {"exact": [1, 2, 3]},
        {"refusal": "CS402: too much"},
        {"shape": None},
        {"shape": {"chunks": 1}},
        {"seconds": None},
    ],
    ids=str,
)
def test_a_measurement_that_a_journal_cannot_have_held_is_made_again(change):
    entry = measured(case(), FOREST).entry()
    with pytest.raises(ValueError):  # noqa: PT011 - the message is for nobody
        Measured.of_entry(FOREST, (True, True, True), {**entry, **change})


def test_results_of_other_code_or_packages_are_not_taken_from_a_journal(monkeypatch):
    keys = [case().key(FOREST)]
    for changed in ({"sources": "other"}, {"ortools": "other"}):
        other = {**fingerprint(), **changed}
        monkeypatch.setattr("colsynth.search.case.fingerprint", lambda other=other: other)
        keys.append(case().key(FOREST))
    assert len(set(keys)) == 3


def test_baselines_are_all_but_our_own():
    ours = {name for name in ALGORITHMS if not is_baseline(name)}
    assert ours == {*OWN, "rails", "pipelined"} <= set(ALGORITHMS)
    fabric = case("ring:4").problem
    synthesized = [name for name in ALGORITHMS if name in OWN and name != HEAVY]
    assert algorithm_names(fabric)[: len(synthesized)] == tuple(synthesized)
    with pytest.raises(InputError) as caught:
        algorithm_names(fabric, ["forest", "rings"])
    assert "ring" in caught.value.diagnostic.help


def test_a_file_that_is_not_used_loses_to_one_that_is():
    taken, other = (Measured(FOREST, (t,), exact=(s,)) for t, s in ((2.0, True), (1.0, False)))
    assert Objective().best((other, taken)) == taken


def test_a_program_that_gpus_may_not_hold_loses_to_one_that_is_nearly_as_fast():
    crowded = Measured(FOREST, (1.0,), exact=(True,), crowded=True)
    near, far = (Measured(FOREST, (CROWDED * x,), exact=(True,)) for x in (0.99, 1.01))
    assert Objective().best((crowded, near)) == near
    assert Objective().best((crowded, far)) == crowded


def test_small_messages_decide_between_plans_that_tie_at_the_large_size():
    objective = Objective((0.05, 0.95))
    times = (9, 1), (8, 1.001), (5, 1.019), (4, 1.1)
    fast, alike, tie, far = (Measured(FOREST, t, exact=(True, True)) for t in times)
    assert objective.chosen((fast, alike, tie, far)) == tie
    assert objective.chosen((fast, alike, far)) == fast
    assert (
        Objective((0.0, 1.0)).chosen((fast, tie)) == Objective((1.0, 0.0)).chosen((fast,)) == fast
    )


def test_sizes_a_runtime_has_no_files_for_are_left_out():
    assert usable_sizes("msccl", [4096, 2**32, 1024, 1024]) == (1024, 4096)
    assert usable_sizes("rccl", [2**32]) == (2**32,)
    with pytest.raises(InputError) as caught:
        usable_sizes("msccl", [2**31])
    assert caught.value.diagnostic.code == "CS212"


def test_nothing_fits_says_why():
    problem = api.make_problem(topology.load("mesh:3x3"), "alltoall")
    with pytest.raises(LimitError) as caught:
        api.compare(problem, (1024,), algorithms=("ring", "forest"), budget=4)
    assert caught.value.diagnostic.code == "CS611"
    assert [note.partition(":")[0] for note in caught.value.diagnostic.notes] == ["forest", "ring"]


def test_broadcasts_between_boxes_are_tried_with_protocols_that_do_not_hang():
    """Simple is refused there for every algorithm, which is no word against any of them."""
    boxes = topology.load("dgx-a100", nodes=2)
    (pair,) = api.communicators(api.make_problem(boxes, "broadcast", groups=[[0, 8]]), "rccl")
    two = Case(pair.problem, "rccl", (2**20, 2**26), limited=True)
    found = find_each(two, ("forest", "ring"), Means(20)).measured
    assert {m.plan.protocol for m in found} == {"LL", "LL128"}
    assert any(m.refusal is None for m in found)


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_is_a_number_from_one(budget):
    with pytest.raises(InputError) as caught:
        find_each(case(), ("forest",), Means(budget))
    assert caught.value.diagnostic.code == "CS210"


def test_slow_plans_are_left_out_only_where_the_best_serves_all_sizes():
    """A plan that takes longer but serves every call is better than one that does not."""
    found = case(sizes=(1024, 2**20))
    searcher = Searcher(Workshop(found), Objective((0.05, 0.95)), Means(), ("Simple",))
    assert searcher.limit(FOREST, searcher.slowest(searcher.best())) == Limit((inf, inf), 1)
    fast = Measured(FOREST, (1.0, 1.0), exact=(True, True))
    searcher.take([fast])
    assert searcher.limit(FOREST, searcher.slowest(searcher.best())) == Limit((inf, PROMISING), 1)
    searcher = Searcher(Workshop(found), Objective((0.05, 0.95)), Means(), ("Simple",))
    searcher.take([replace(fast, exact=(True, False))])
    assert searcher.limit(FOREST, searcher.slowest(searcher.best())) == Limit((inf, inf), 1)


def test_plans_that_need_no_simulation_are_not_varied_where_they_get_one():
    searcher = Searcher(Workshop(case()), Objective((0.05, 0.95)), Means(), ("Simple",))
    slow, fair = (Wish().start(name) for name in ("ring", "allpairs2"))
    exact = (True, True)
    searcher.take(
        [
            Measured(FOREST, (1.0, 1.0), exact=exact),
            Measured(slow, (1.0, PROMISING + 0.1), exact=exact),
            Measured(fair, (1.0, PROMISING - 0.1), exact=exact),
        ]
    )
    assert [plan.algorithm for plan in searcher._promising()] == ["forest", "allpairs2"]


def told_of(search):
    """Return (what, done, most) as a search tells them."""
    told = []
    search(lambda *row: told.append(row))
    return told


def test_progress_is_never_full_before_the_budget_is_spent():
    """Where work alone limits a search, nobody knows how many evaluations there will be."""
    problem = api.make_problem(topology.load("ring:4"), "allgather")
    told = told_of(lambda tell: api.compile(problem, "msccl", progress=tell))
    assert all(done < most or most == 0 for _, done, most in told)
    assert any(done for _, done, most in told if most == 0)
    thorough = told_of(lambda tell: api.compile(problem, "msccl", level=2, progress=tell))
    known = [(done, most) for what, done, most in thorough if most and "compiling" in what]
    assert len({most for _, most in known}) == 1
    assert all(done <= most for done, most in known)


@pytest.mark.parametrize("collective", ["broadcast", "allgather"])
def test_progress_goes_on_where_a_search_inside_another_finds_plans_again(collective):
    problem = api.make_problem(topology.load("ring:4"), collective)
    told = told_of(lambda tell: api.compile(problem, "msccl", mode="in-place", progress=tell))
    counts = [done for what, done, _ in told if what.startswith("compiling")]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


@pytest.mark.parametrize("budget", [None, 8])
def test_progress_of_several_sizes_goes_on_from_one_to_the_next(budget):
    told = told_of(lambda tell: find_each(case(), ("ring",), Means(budget, progress=tell)))
    assert len({most for _, _, most in told}) == 1
    counts = [done for _, done, _ in told]
    assert counts == sorted(counts)


def test_progress_is_full_only_at_the_end_where_the_default_search_follows():
    found = case(sizes=SIZES[:1])
    names = algorithm_names(found.problem, profile=found.profile)
    told = told_of(lambda tell: find_each(found, names, Means(progress=tell)))
    assert len({most for _, _, most in told}) == 1
    assert all(done < most for _, done, most in told)


def test_programs_that_the_runtime_cannot_run_are_told_as_refused():
    """They did not fail: that word beside "interrupted" would blame the user's Ctrl-C."""
    told = told_of(lambda tell: find_each(case(), ("ring", "relays"), Means(8, progress=tell)))
    assert told[-1][0].startswith("compiling allgather, ")
    assert told[-1][0].endswith(" refused")
