"""The pass: tries, budget, policies, overlap, groups, transit, and what it refuses."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from colsynth.errors import DefectError, InfeasibleError, InputError
from colsynth.model import Collective, Demand, Problem, Topology
from colsynth.runtimes.target import Context
from colsynth.synthesis.timed import match_chunks as module
from colsynth.synthesis.timed.match import POLICIES
from colsynth.synthesis.timed.match_chunks import AUTO, MatchChunks
from colsynth.synthesis.timed.phases import last_end
from colsynth.topology.load import load
from colsynth.verify import check_timed
from tests.reference.timed import faults, transfers
from tests.synthesis.timed.problems import both_ways, is_feasible, is_idle, network, wild_problem
from tests.verify.timed_schedules import moves_of

RING = load("ring:6")
COLLECTIVES = [item for item in Collective if item is not Collective.CUSTOM]


def problem_of(topology, collective="allgather", groups=(), transit=False):
    collective = Collective(collective)
    return Problem(topology, collective, 0 if collective.rooted else None, groups, transit)


def scheduled(problem, seed=0, **options):
    schedule = MatchChunks(**options).run(problem, Context(seed=seed))
    check_timed(schedule)
    assert schedule.seconds >= schedule.bound.seconds
    return schedule


def count_tries(monkeypatch):
    """Return a list that grows by the choice of every try."""
    choices = []
    made = module.attempt

    def noted(setting, tasks, choice, pace):
        choices.append(choice)
        return made(setting, tasks, choice, pace)

    monkeypatch.setattr(module, "attempt", noted)
    return choices


def code_of(kind, call, *args, **options):
    with pytest.raises(kind) as fault:
        call(*args, **options)
    return fault.value.diagnostic.code


# Tries, budget, policies and seeds.


def test_more_tries_are_never_worse_and_sometimes_better():
    better = 0
    for spec, boxes, collective, chunks in (
        ("mi250", 1, "allgather", 2),
        ("ndv2", 2, "allgather", 2),
        ("ndv2", 2, "alltoall", 2),
        ("torus:4x4", None, "reduce-scatter", 1),
    ):
        problem = problem_of(load(spec, nodes=boxes), collective)
        options = {"chunks_per_gpu": chunks, "budget": 0}
        ticks = [scheduled(problem, tries=tries, **options).ticks for tries in (1, 2, 3, 5, 8)]
        assert all(more <= fewer for fewer, more in pairwise(ticks))
        better += ticks[-1] < ticks[0]
    assert better > 0


def test_tries_end_where_the_bound_is_met(monkeypatch):
    choices = count_tries(monkeypatch)
    assert scheduled(problem_of(load("mesh:4x4", latency="0 s")), tries=50).gap == 0
    assert len(choices) < 10


def test_a_budget_is_counted_in_transfers(monkeypatch):
    problem = problem_of(load("mi250", nodes=1))
    each = 16 * 15
    for budget, tries in ((1, 1), (each, 1), (each + 1, 2), (3 * each - 1, 3), (0, 5)):
        choices = count_tries(monkeypatch)
        assert scheduled(problem, tries=5, budget=budget).gap > 0
        assert len(choices) == tries
        monkeypatch.undo()


def test_automatic_tries_take_policies_in_turn(monkeypatch):
    choices = count_tries(monkeypatch)
    problem = problem_of(load("mi250", nodes=1))
    scheduled(problem, tries=8, budget=0)
    ways = [(choice.policy, choice.strict) for choice in choices]
    assert set(ways[:4]) == {(p, strict) for p in ("oldest", "rarest") for strict in (True, False)}
    assert ways[4:] == ways[:4]
    assert len({(way, choice.turn) for way, choice in zip(ways, choices, strict=True)}) == 8


@pytest.mark.parametrize("spec", ["mesh:8x8", "ring:8", "torus:4x4"])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_root_sends_every_chunk_over_one_of_its_links(spec, collective):
    """Oldest-first sends each over all of them, which takes twice as long and more."""
    problem = problem_of(load(spec, latency="0 s"), collective)
    assert scheduled(problem, chunks_per_gpu=256, tries=1).gap < Fraction(2, 100)
    assert scheduled(problem, chunks_per_gpu=256, tries=1, policy="oldest").gap > Fraction(1, 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_that_was_asked_for_is_the_only_one(policy, monkeypatch):
    choices = count_tries(monkeypatch)
    scheduled(problem_of(load("mi250", nodes=1)), policy=policy, tries=3, budget=0)
    assert {choice.policy for choice in choices} == {policy}


def test_the_seed_decides_who_chooses_first():
    problem = problem_of(load("mi250", nodes=1))
    found = [scheduled(problem, seed=seed, tries=1) for seed in (0, 0, 1, 2)]
    moves = [moves_of(schedule.phases[0]) for schedule in found]
    assert moves[0] == moves[1]
    assert len({str(some) for some in moves}) > 1


@pytest.mark.parametrize("seed", [0, 2**31, 10**30])
@pytest.mark.parametrize("spec", ["mesh:3x3", "mi250"])
def test_any_whole_number_from_0_is_a_seed(spec, seed):
    scheduled(problem_of(load(spec)), seed=seed, tries=2)


def test_earliest_leaves_the_last_chunk_to_the_faster_link():
    """Over the slow link the second chunk would come after both over the fast one."""
    links = both_ways("a b", cost=1) | both_ways("a s", "s b", cost=8)
    problem = replace(problem_of(network(links), "broadcast"), root=0)
    oldest, earliest = (
        scheduled(problem, size=8000, chunks_per_gpu=2, tries=1, policy=policy)
        for policy in ("oldest", "earliest")
    )
    assert (oldest.seconds, earliest.seconds) == (Fraction(4, 10**6), Fraction(1, 10**6))


# Phases of an allreduce.


@pytest.mark.parametrize("boxes", [2, 4])
def test_copies_of_finished_sums_start_before_the_last_sum_is_finished(boxes):
    schedule = scheduled(problem_of(load("dgx-a100", nodes=boxes), "allreduce"), chunks_per_gpu=8)
    sums, copies = schedule.phases
    starts = copies.run_start[copies.run_first[:-1][np.diff(copies.run_first) > 0]]
    assert starts.min() < last_end(sums)
    assert schedule.ticks == last_end(copies)


def test_an_allreduce_is_little_longer_than_its_halves():
    topology = load("ndv2", nodes=1)
    whole, *halves = (
        scheduled(problem_of(topology, name), chunks_per_gpu=8).seconds
        for name in ("allreduce", "reduce-scatter", "allgather")
    )
    assert whole <= Fraction(105, 100) * sum(halves)


# Groups.


@pytest.mark.parametrize("transit", [False, True])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_several_groups_share_the_fabric(collective, transit):
    topology = load("dgx-a100", nodes=2)
    groups = ((0, 1, 2, 3, 8, 9), (4, 5, 6, 12, 13, 14))
    problem = problem_of(topology, collective, groups, transit)
    schedule = scheduled(problem, chunks_per_gpu=2)
    assert faults(schedule) == set()
    busy = {rank for phase in schedule.phases for t in transfers(phase) for rank in t[2:4]}
    assert busy >= set(groups[0]) | set(groups[1])
    if not transit:
        assert busy == set(groups[0]) | set(groups[1])


def test_links_that_groups_share_are_shared():
    """Two groups of opposite corners of a square of switches take turns at the middle."""
    links = both_ways("a s0", "b s1", "c s0", "d s1", "s0 s1")
    groups = ((0, 1), (2, 3))
    alone, together = (
        scheduled(problem_of(network(links), "allgather", some), size=2000)
        for some in (groups[:1], groups)
    )
    assert alone.seconds == Fraction(1, 10**6)
    assert together.seconds == 2 * alone.seconds


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_transit_helps_members_that_are_not_adjacent(collective):
    problem = problem_of(RING, collective, ((0, 3), (4, 1)))
    with pytest.raises(InfeasibleError) as refusal:
        scheduled(problem)
    diagnostic = refusal.value.diagnostic
    assert diagnostic.code == "CS302"
    assert diagnostic.phrase in {
        f"no data can pass from {a} to {b}" for a, b in (("gpu0", "gpu3"), ("gpu3", "gpu0"))
    }
    assert diagnostic.notes == ("only GPUs of the same group may pass chunks on",)
    assert "--transit" in diagnostic.help
    schedule = scheduled(replace(problem, transit=True), chunks_per_gpu=2)
    assert faults(schedule) == set()
    senders = {t.source for phase in schedule.phases for t in transfers(phase)}
    assert senders & {2, 5}


@pytest.mark.parametrize("size", [2**16, 2**20])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_leave_to_forward_makes_nothing_slower(collective, size):
    """By shortest trees, 64 KiB are as fast; 1 MiB take 5 % longer by trees fixed beforehand."""
    options = {"size": size, "chunks_per_gpu": 4}
    alone, helped = (
        scheduled(problem_of(load("dgx-h100"), collective, ((0, 1, 2, 3),), transit), **options)
        for transit in (False, True)
    )
    assert helped.seconds <= alone.seconds
    assert helped.problem.transit


@pytest.mark.parametrize("collective", ["alltoall", "gather", "scatter"])
@pytest.mark.parametrize(("machine", "chunks"), [("mi250", 1), ("dgx-1v", 4)])
def test_small_chunks_take_shortest_ways(machine, chunks, collective):
    """By those that load links evenly, an alltoall takes 1.4 times as long as its bound, and 2."""
    schedule = scheduled(problem_of(load(machine), collective), size=256, chunks_per_gpu=chunks)
    assert schedule.seconds <= schedule.bound.seconds * Fraction(101, 100)


# What is refused.


def test_networks_in_two_parts_are_refused_by_name():
    topology = network(both_ways("a b", "c d") | {"b c": 1})
    for collective in ("allgather", "allreduce", "alltoall", "reduce-scatter"):
        with pytest.raises(InfeasibleError) as refusal:
            scheduled(problem_of(topology, collective))
        words = refusal.value.diagnostic.phrase.split()
        assert refusal.value.diagnostic.code == "CS302"
        assert {words[-3], words[-1]} & {"c", "d"}
        assert words[-1] in "ab"
    scheduled(problem_of(topology, "broadcast"))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_groups_of_one_have_nothing_to_do(collective):
    for topology in (RING, load("dgx-a100", nodes=1)):
        for transit in (False, True):
            problem = problem_of(topology, collective, ((0,), (3,)), transit)
            assert code_of(InputError, scheduled, problem) == "CS307"


def test_demands_that_are_met_from_the_beginning_have_nothing_to_do():
    for demands in (
        (Demand((0, 1), (0,)),),
        (Demand((2,), (2,), reduces=True), Demand((1,), (1,), 3)),
    ):
        problem = Problem(RING, Collective.CUSTOM, demands=demands)
        assert code_of(InputError, scheduled, problem) == "CS307"


def test_a_collective_takes_two():
    alone = Topology("alone", RING.nodes[:1], (), (0,))
    assert code_of(InputError, scheduled, problem_of(alone)) == "CS117"


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("size", 0, "CS210"),
        ("chunks_per_gpu", 0, "CS210"),
        ("tries", 0, "CS210"),
        ("budget", -1, "CS210"),
        ("policy", "newest", "CS213"),
        ("policy", "", "CS213"),
    ],
)
def test_options_that_make_no_sense(option, value, code):
    assert code_of(InputError, MatchChunks, **{option: value}) == code


def test_a_policy_is_suggested():
    with pytest.raises(InputError) as refusal:
        MatchChunks(policy="rearest")
    assert "'rarest'" in refusal.value.diagnostic.help
    assert AUTO in refusal.value.diagnostic.help


def test_a_matcher_that_leaves_something_out_is_caught(monkeypatch):
    from colsynth.synthesis.timed import attempt

    monkeypatch.setattr(attempt, "held_together", lambda found, _hops: found)
    # The card (a, b) lets nothing from a to b, so that both must be entered.
    links = {"b a": 8, "c a": 1, "c b": 1, "a c": 1, "b c": 1} | both_ways("c d", cost=1)
    monkeypatch.setattr(attempt, "regions", lambda _topology, _hops: ((0, 1),))
    assert code_of(DefectError, scheduled, problem_of(network(links)), tries=1) == "CS905"


# Found by looking: networks that once broke a kernel or a rule of thumb.


def test_many_ways_of_using_one_link():
    """Fifty routes use the last link each at another time after its start."""
    links = {f"gpu{i:02} s": ("1/100", 10 * i) for i in range(50)} | {"s t": 1}
    problem = replace(problem_of(network(links), "gather"), root=50)
    assert faults(scheduled(problem, size=51_000)) == set()


def test_a_root_that_nothing_enters():
    links = {"a b": 1} | both_ways("b c", cost=3)
    turned = {" ".join(reversed(ends.split())): cost for ends, cost in links.items()}
    for way, collective in ((links, "broadcast"), (turned, "reduce")):
        # Three chunks over the slow link, and the last of them over the fast one.
        schedule = scheduled(problem_of(network(way), collective), chunks_per_gpu=3)
        assert schedule.seconds == 3 * Fraction(1, 3) + Fraction(1, 9)


def test_progress_is_told_and_never_runs_past_its_end():
    told = []
    problem = problem_of(load("dgx-a100", nodes=2), "allreduce")
    context = Context(progress=lambda what, done, total: told.append((what, done, total)))
    MatchChunks(chunks_per_gpu=2, tries=2).run(problem, context)
    totals = {total for _, _, total in told}
    assert totals == {2 * 32 * 15}
    assert all(0 <= done <= total for _, done, total in told)
    assert max(done for _, done, _ in told) == 2 * 32 * 15


def test_a_schedule_does_not_depend_on_what_was_scheduled_before():
    problems = [p for p in map(wild_problem, range(60)) if is_feasible(p) and not is_idle(p)]
    first = [scheduled(problem, size=9000) for problem in problems]
    again = [scheduled(problem, size=9000) for problem in reversed(problems)]
    assert len(problems) > 10
    for one, other in zip(first, reversed(again), strict=True):
        assert list(map(moves_of, one.phases)) == list(map(moves_of, other.phases))


@pytest.mark.parametrize(
    ("collective", "shards"), [("allgather", (1, 2, 1, 1, 1, 1)), ("broadcast", (0, 1, 0, 3, 0, 0))]
)
def test_shards_that_differ_are_refused(collective, shards):
    """They would be taken for equal ones; `api.synthesize` makes custom collectives of them."""
    problem = Problem(RING, Collective(collective), shards=shards)
    with pytest.raises(InputError) as caught:
        MatchChunks().run(problem, Context())
    assert caught.value.diagnostic.code == "CS311"
