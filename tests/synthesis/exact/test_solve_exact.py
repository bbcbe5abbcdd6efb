"""Exact schedules: valid, no shorter than any bound, as short as brute force, equal twice."""

import random
from fractions import Fraction
from importlib.util import find_spec

import pytest

from colsynth.errors import DefectError, InputError, LimitError
from colsynth.model import Collective, Demand, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Context
from colsynth.synthesis.exact import retime, solve_exact
from colsynth.synthesis.exact.frontier import Frontier
from colsynth.synthesis.exact.instance import Limits
from colsynth.synthesis.exact.solve_exact import SolveExact, solve_problem
from colsynth.synthesis.exact.steps import Question
from colsynth.synthesis.exact.steps import fewest_steps as least_steps
from colsynth.synthesis.exact.worker import end, solve
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.topology.load import load
from colsynth.verify import check_timed
from tests.reference.steps import copies_of, fewest_steps
from tests.reference.timed import faults

pytestmark = pytest.mark.skipif(find_spec("ortools") is None, reason="needs colsynth[exact]")

MICRO = Fraction(1, 10**6)


def machine(seed):
    """Return 3 to 6 GPUs whose links differ, strongly connected, some behind a switch."""
    rng = random.Random(seed)
    size = rng.randint(3, 6)
    nodes = [Node(f"gpu{i}", Kind.GPU) for i in range(size)]
    order = rng.sample(range(size), size)
    ends = set(zip(order, (*order[1:], order[0]), strict=True))
    ends |= {tuple(rng.sample(range(size), 2)) for _ in range(rng.randint(0, size))}
    if rng.random() < 0.5:
        nodes.append(Node("switch", Kind.SWITCH))
        some = rng.sample(range(size), rng.randint(2, size))
        ends |= {pair for i in some for pair in ((i, size), (size, i))}
    links = tuple(
        Link(a, b, Fraction(rng.choice((1, 2, 3)) * 10**9), rng.choice((0, 1, 4)) * MICRO)
        for a, b in sorted(ends)
    )
    return Topology(f"seed{seed}", tuple(nodes), links, tuple(range(size)))


def problem_of(topology, collective):
    collective = Collective(collective)
    return Problem(topology, collective, 0 if collective.rooted else None)


def solved(problem, **options):
    schedule = SolveExact(**{"work": 2, **options}).run(problem, Context())
    check_timed(schedule)
    assert schedule.seconds >= schedule.bound.seconds
    return schedule


COLLECTIVES = [item for item in Collective if item is not Collective.CUSTOM]


@pytest.mark.parametrize("seed", range(len(COLLECTIVES)))
def test_no_bound_exceeds_a_schedule_however_it_batches(seed):
    """At a few bytes latency is all, at many bandwidth; nor does the matcher beat any."""
    problem = problem_of(machine(seed), COLLECTIVES[seed])
    for size in (60, 6 * 10**4):
        found = solved(problem, size=size, fallback=False)
        assert not faults(found)
        matched = MatchChunks(size=size, gap="none").run(problem, Context())
        stepped = solved(problem, size=size, fallback=False, intervals=False)
        assert stepped.bound == matched.bound
        for other in (stepped, matched):
            assert other.bound.seconds <= found.bound.seconds <= other.seconds
        assert found.seconds <= stepped.seconds
        assert solved(problem, size=size).seconds <= min(found.seconds, matched.seconds)


@pytest.mark.parametrize("seed", range(6))
def test_on_equal_links_steps_are_as_few_as_brute_force_finds(seed):
    topology = machine(seed + 100)
    ends = sorted({(x.source, x.target) for x in topology.links if max(x.source, x.target) < 4})
    nodes = topology.nodes[:3]
    links = tuple(Link(a, b, Fraction(10**9)) for a, b in ends if max(a, b) < 3)
    links += tuple(
        Link(a, (a + 1) % 3, Fraction(10**9)) for a in range(3) if (a, (a + 1) % 3) not in ends
    )
    small = Topology("small", nodes, links, (0, 1, 2))
    for collective in (Collective.ALLGATHER, Collective.ALLTOALL):
        steps = fewest_steps(small, copies_of(collective, 3, 1))
        schedule = solved(problem_of(small, collective), size=3000, steps=steps)
        assert schedule.seconds == steps * schedule.chunk_bytes / 10**9


def test_no_schedule_has_more_steps_than_allowed():
    """A ring of eight needs four steps a phase; without a limit, schedules without steps count."""
    problem = problem_of(load("ring:8"), "allgather")
    with pytest.raises(LimitError, match="CS327"):
        solved(problem, steps=3)
    assert "in steps is optimal for 4 steps" in solved(problem, steps=4).claim
    claim = solved(problem_of(load("ring:8"), "allreduce"), steps=4).claim
    assert claim.count("in steps is optimal for 4 steps") == 2


def test_more_steps_than_chunks_arrive_are_not_modelled():
    """Four chunks arrive at three GPUs each: a model of a billion steps would never be made."""
    assert "for 12 steps" in solved(problem_of(load("ring:4"), "allgather"), steps=10**9).claim
    with pytest.raises(LimitError, match="too many for -a exact"):
        solved(problem_of(load("ring:32"), "allgather"), steps=10**9)


def test_more_steps_are_asked_only_for_less_time():
    """Beyond the optimum of fewer steps, the question with that limit finds what the plain does."""
    seen = set()
    for seed in (seed for seed in range(16) if machine(seed).size == len(machine(seed).nodes)):
        asked = Frontier(problem_of(machine(seed), "allgather"), 1, 1).instance(1)
        fewer = solve(asked, Question(least_steps(asked)))
        plain = solve(asked, Question(least_steps(asked) + 1))
        limited = solve(asked, Question(least_steps(asked) + 1, below=fewer.units))
        shorter = plain.units < fewer.units
        assert (limited.status, limited.units) == (
            ("optimal", plain.units) if shorter else ("infeasible", 0)
        )
        seen.add(shorter)
    assert seen == {True, False}


def test_without_steps_no_order_of_the_cube_mesh_is_shorter():
    """64 MB: the search raises the bound to the schedule; the matcher takes 641 us."""
    found = solved(problem_of(load("dgx-1v"), "allgather"), size=64 * 10**6)
    assert found.gap == 0 < MatchChunks(size=64 * 10**6).run(found.problem, Context()).gap
    assert found.seconds == Fraction("482.1") * MICRO
    assert found.claim.endswith("is optimal for 1 chunk per GPU")


def test_a_batch_pays_its_latency_once():
    """Two GPUs, eight chunks, links of 1 us and a chunk of 1 us: 9 us, not 16."""
    topology = load("clique:2", bandwidth="1 GB/s", latency="1 us")
    schedule = solved(problem_of(topology, "broadcast"), size=8000, chunks_per_gpu=8)
    assert schedule.seconds == schedule.bound.seconds == 9 * MICRO
    assert "optimal for 1 step, 8 chunks per GPU" in schedule.claim


def test_limits_are_obeyed_and_equal_questions_have_equal_answers():
    problem = problem_of(load("ring:4"), "allgather")
    round_one_way = frozenset((i, (i + 1) % 4) for i in range(4))
    one = solve_problem(problem, SolveExact(work=2), Context(), Limits(pairs=round_one_way))
    check_timed(one)
    (phase,) = one.phases
    used = phase.hops.source[phase.hop_of()], phase.hops.target[phase.hop_of()]
    assert set(zip(*(ends.tolist() for ends in used), strict=True)) == round_one_way
    turn = ((1, 2, 3, 0),)
    limits = Limits(pairs=round_one_way, symmetries=turn)
    two = solve_problem(problem, SolveExact(work=2), Context(), limits)
    assert (two.ticks, two.seconds) == (one.ticks, one.seconds)
    again = solve_problem(problem, SolveExact(work=2), Context(), limits)
    assert [x.tolist() for x in (again.phases[0].chunk, again.phases[0].run_start)] == [
        x.tolist() for x in (two.phases[0].chunk, two.phases[0].run_start)
    ]
    barred = frozenset({(0, 0, 1)})
    other = solve_problem(problem, SolveExact(work=2), Context(), Limits(barred=barred))
    (phase,) = other.phases
    hop = phase.hop_of()
    kept = zip(phase.chunk.tolist(), phase.hops.source[hop], phase.hops.target[hop], strict=True)
    assert barred.isdisjoint(set(kept))


def test_relays_leave_one_connection_per_nic_and_the_bound_of_all():
    problem = problem_of(load("ndv2", nodes=2), "allgather")
    options = {"size": 2**24, "steps": 5, "intervals": False, "fallback": False}
    found = solved(problem, between="relays", **options)
    (phase,) = found.phases
    hop = phase.hop_of()
    ends = zip(phase.hops.source[hop].tolist(), phase.hops.target[hop].tolist(), strict=True)
    assert len({(u, v) for u, v in ends if u // 8 != v // 8}) == 2
    assert found.problem is problem
    assert found.bound == MatchChunks(size=2**24, gap="none").run(problem, Context()).bound
    with pytest.raises(InputError) as caught:
        solved(problem_of(load("dgx-1v"), "allgather"), between="relays")
    assert caught.value.diagnostic.code == "CS143"


def test_sums_and_custom_collectives():
    demands = (Demand((0,), (1, 2)), Demand((1, 2, 3), (0,), reduces=True))
    problem = Problem(load("ring:4"), Collective.CUSTOM, demands=demands)
    assert not faults(solved(problem, fallback=False))


def test_too_many_choices_are_refused_before_a_model_is_made():
    with pytest.raises(LimitError) as caught:
        solved(problem_of(load("dgx-a100", nodes=8), "allgather"), intervals=False)
    assert caught.value.diagnostic.code == "CS327"


def test_the_frontier_of_the_cube_mesh_is_the_published_one():
    """SCCL, table of the DGX-1: (1, 2, 2), (2, 2, 3) and (6, 3, 7), which no links beat."""
    walk = list(Frontier(problem_of(load("dgx-1v"), "allgather"), 6, 10).walk())
    reached = [(x.chunks, x.steps, x.rounds) for x in walk if x.status == "feasible"]
    assert reached == [(1, 2, 2), (2, 2, 3), (6, 3, 7)]
    assert (3, 2, 4) in {(x.chunks, x.steps, x.rounds) for x in walk if x.status == "infeasible"}
    assert {x.status for x in walk} == {"feasible", "infeasible"}
    alltoall = Frontier(problem_of(load("dgx-1v"), "alltoall"), 3, 10)
    assert [alltoall.ask(3, 2, rounds).status for rounds in (7, 8)] == ["infeasible", "feasible"]


def test_a_solver_that_prints_ends_with_an_error_and_no_hang(tmp_path, monkeypatch):
    """Packages that print at the start of a process write where answers are expected."""
    (tmp_path / "sitecustomize.py").write_text("print('hello')")
    end()  # the next question starts a process
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(DefectError) as raised:
        solved(problem_of(load("ring:4"), "allgather"))
    assert raised.value.diagnostic.code == "CS906"


def test_a_schedule_in_steps_is_told_by_what_it_takes_without_them():
    problem = Problem(load("dgx-1v"), Collective.GATHER, 3)
    found = SolveExact(size=10**6).run(problem, Context())
    assert found.seconds == Fraction(89, 10**7)
    assert "11.4 us in steps is optimal" in found.claim
    assert "sent as early as it can be, it takes 8.9 us, and match-chunks found" in found.claim


def test_phases_of_an_allreduce_that_share_steps_are_never_longer_and_may_be_shorter(monkeypatch):
    gains = []
    for seed in (2, 4, 6):
        problem = problem_of(machine(seed), Collective.ALLREDUCE)
        found = solved(problem, size=60, fallback=False)
        assert not faults(found)
        with monkeypatch.context() as patch:
            patch.setattr(solve_exact, "_joins", lambda _: False)
            apart = solved(problem, size=60, fallback=False)
        assert ("together" in found.claim) == (found.seconds < apart.seconds)
        gains.append(found.seconds < apart.seconds)
    assert any(gains)


def test_moving_a_few_chunks_at_a_time_lies_between_the_matcher_and_the_optimum(monkeypatch):
    gains = []
    for seed in range(8):
        problem = problem_of(machine(seed), Collective.ALLTOALL)
        matched = MatchChunks(size=6000, gap="none").run(problem, Context())
        best = solved(problem, size=6000, symmetry=False)
        with monkeypatch.context() as patch:
            patch.setattr(solve_exact, "_MOST", 0)  # as if the machine were large
            patch.setattr(retime, "_PAIRS", 0)
            found = solved(problem, size=6000)
        assert not faults(found)
        assert best.bound.seconds <= found.seconds <= matched.seconds
        gains.append(found.seconds < matched.seconds)
    assert any(gains)
