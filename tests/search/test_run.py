"""One search: what is predicted decides, more effort is never worse, what was asked for stays."""

from itertools import pairwise

import pytest

from colsynth import api
from colsynth.compile.modes import Mode
from colsynth.compile.request import Request
from colsynth.compile.run import compile_problem
from colsynth.errors import InputError, NegativeFinding
from colsynth.jobs.workers import Workers
from colsynth.model import Collective
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.runtimes.selection import LARGE, usual_size
from colsynth.search.case import Case
from colsynth.search.hops import Hops
from colsynth.search.levels import HEAVY
from colsynth.search.means import Means
from colsynth.search.objective import Objective, usual
from colsynth.search.quest import Quest
from colsynth.search.run import find_each, find_plan
from colsynth.search.wish import Wish, algorithm_names
from colsynth.search.workshop import Workshop
from colsynth.synthesis.forest.rate import candidates

FOUR = {"gpus": "4"}
"""Settings of gb200-nvl72 that leave four GPUs behind NVSwitches, the smallest of all presets."""


def problem_of(machine, boxes, collective):
    settings = FOUR if machine == "gb200-nvl72" else None
    topology = api.load_topology(machine, nodes=boxes, settings=settings)
    return api.make_problem(topology, collective)


def case_of(machine, boxes, collective, runtime, sizes=(LARGE,)):
    both = profile(runtime).both_modes
    return Case(problem_of(machine, boxes, collective), runtime, sizes, out_of_place=both)


def found(case, **wish):
    sizes, objective = usual(0, None, case.problem.collective, 8, beside=True)
    if case.sizes != sizes:
        objective = Objective()
    return find_plan(case, objective, Wish(**wish), Means())


def made(machine, boxes, collective, runtime, **options):
    problem = problem_of(machine, boxes, collective)
    request = Request(mode=Mode.AUTO, several=False, **options)
    return compile_problem(problem, aim(problem, profile(runtime), "Simple"), request)


@pytest.mark.parametrize(
    ("machine", "boxes", "collective", "runtime", "size"),
    [
        ("ring:2", None, "allreduce", "msccl", 2**16),
        ("mesh:2x2", None, "allgather", "rccl", 2**20),
        ("gb200-nvl72", 1, "reduce-scatter", "msccl-executor", 2**26),
    ],
)
def test_more_effort_is_never_slower_and_beats_every_algorithm(
    machine, boxes, collective, runtime, size
):
    """The laws: -O3 <= -O2 <= -O1 <= -O0, and -O3 <= each algorithm, as it stands or compared."""
    case = case_of(machine, boxes, collective, runtime, (size,))
    objective = Objective()
    scores = [objective.score(found(case, level=level).best) for level in range(4)]
    assert all(later <= earlier for earlier, later in pairwise(scores))
    for algorithm in [name for name in ALGORITHMS if name != HEAVY]:
        try:
            alone = found(case, algorithm=algorithm, level=0).best
        except (InputError, NegativeFinding):
            continue
        assert scores[3] <= objective.score(alone), algorithm
    compared = objective.best(find_each(case, algorithm_names(case.problem), Means()).measured)
    assert scores[3] <= objective.score(compared)


def test_the_answer_does_not_depend_on_the_number_of_processes():
    case = case_of("dgx-a100", 1, "allgather", "msccl", (2**16, 2**26))
    with Workers(2) as workers:
        runs = [
            find_each(case, ("forest", "ring"), Means(10, some))
            for some in (Workers(), workers, Workers())
        ]
    assert runs[0] == runs[1] == runs[2]
    assert 10 <= len(runs[0].measured) <= 20  # of two sizes; what both try counts for both


@pytest.mark.parametrize(
    ("machine", "boxes", "collective", "runtime"),
    [
        ("dgx-1v", 1, "reduce-scatter", "msccl"),
        ("mi300x", 1, "allgather", "rccl"),
    ],
)
def test_the_default_is_faster_than_the_pipeline_as_it_stands(machine, boxes, collective, runtime):
    """A schedule that is optimal on links can be many times slower than a ring in threadblocks."""
    sizes, _ = usual(0, None, Collective(collective), 8, beside=True)
    case = case_of(machine, boxes, collective, runtime, sizes)
    plain, best = (found(case, level=level).best for level in (0, 1))
    assert best.seconds[-1] < 0.8 * plain.seconds[-1]


def test_what_was_asked_for_stays():
    settings = {"trees": "2", "order": "chains", "merge": 1}
    asked = made("mi250", 1, "allreduce", "msccl", settings=settings)
    assert asked.schedule.trees_per_root == 2
    assert "order=" not in asked.pipeline
    assert "coalesce-chunks{merge=1}" in asked.pipeline
    exact = made("dgx-1v", 1, "allgather", "rccl", settings={"trees": "optimal"})
    assert exact.summary()["gap"] == 0
    assert exact.algorithm == "forest"


def test_pipelines_in_full_are_left_alone():
    passes = made("mi250", 1, "allreduce", "msccl", level=0).pipeline
    assert made("mi250", 1, "allreduce", "msccl", passes=passes).pipeline == passes


def test_a_note_says_that_fewer_trees_were_taken():
    best = made("mi300x", 2, "allreduce", "msccl", algorithm="forest")
    within = candidates(best.problem)[0]
    assert best.schedule.trees_per_root < within
    assert any(note.startswith(f"{within} trees per GPU have the better") for note in best.notes)


@pytest.mark.parametrize("budget", [1, 3])
def test_rivals_on_a_fabric_share_the_budget(budget):
    case = case_of("torus:3x3", None, "allgather", "msccl")
    found = find_plan(case, Objective(), Wish(), Means(budget))
    assert len(found.ranking) <= budget


def test_all_effort_is_possible_where_programs_have_no_threadblocks():
    case = case_of("ring:2", None, "allgather", "torch", (2**20,))
    quick, thorough = (found(case, level=level, rounds=True) for level in (1, 3))
    assert thorough.best.seconds[0] <= quick.best.seconds[0]


def test_the_fewest_trees_get_a_search_of_their_own():
    """Choices that suit three trees a GPU on an MI250 lead single ones to slower programs."""
    case = case_of("mi250", 1, "allgather", "rccl", (2**20,))
    single = found(case, algorithm="forest", settings={"trees": "1"}).best
    assert found(case).best.seconds[0] <= single.seconds[0] * 1.0001


def test_where_links_are_idle_shortest_path_trees_get_a_search_of_their_own():
    """The optimum on the links of an MI250 has two trees per GPU, higher ones than the shortest."""
    case = case_of("mi250", 1, "reduce-scatter", "msccl", (2**16,))
    low = found(case, algorithm="bfb").best
    assert found(case).best.seconds[0] <= low.seconds[0] * 1.0001
    assert found(case, algorithm="forest").best.seconds[0] > 1.1 * low.seconds[0]


def test_grids_behind_a_big_switch_get_a_search_of_their_own():
    """A sweep that begins with all GPUs as neighbours does not get there, one without rivals."""
    topology = api.load_topology("gb200-nvl72", settings={"gpus": "18"})
    problem = api.make_problem(topology, "allgather")
    size = usual_size(2**25, problem.collective, 18)
    alone, all_of_them = (
        api.compile(problem, "rccl", algorithm=name, size=size, several=False)
        for name in ("forest", None)
    )
    assert "grid" not in alone.summary()["settings"]
    assert "grid" in all_of_them.summary()["settings"]
    assert all_of_them.predicted[-1].seconds < 0.9 * alone.predicted[-1].seconds


def test_channels_of_the_best_trees_are_varied():
    """As many as fill the links of two DGX B200 by Simple are too few for LL128."""
    problem = api.make_problem(api.load_topology("dgx-b200", nodes=2), "allreduce")
    options = {"size": 1 << 30, "several": False}
    found = api.compile(problem, "msccl", **options).predicted[-1].seconds
    for channels in (8, 16):
        given = {"algorithm": "tree", "channels": channels, "protocol": "LL128", "level": 0}
        assert found <= api.compile(problem, "msccl", **options, **given).predicted[-1].seconds


def test_an_alltoall_needs_no_algorithm_by_name():
    done = made("dgx-a100", 1, "alltoall", "rccl")
    assert done.verified
    assert done.predicted[-1].size_bytes == LARGE


@pytest.mark.slow
def test_forty_gpus_come_near_the_bound():
    """Within 15 % of the bound for a large message; NICs alone lose 4 % of their bandwidth.

    Segments do it, and cost steps: files for small messages alone have none.
    """
    problem = problem_of("dgx-a100", 5, "reduce-scatter")
    large, small = (
        compile_problem(
            problem,
            aim(problem, profile("msccl"), "Simple", None, most),
            Request(mode=Mode.AUTO, several=False),
        )
        for most in (None, 2**20)
    )
    assert 1 < float(api.bound(problem).algbw) / large.predicted[-1].algbw < 1.15
    assert large.artefacts[0].report.ok
    assert "segments=" in large.pipeline
    assert "segments=" not in small.pipeline


def test_trees_among_fewer_neighbours_stand_where_all_are_too_many():
    problem = api.make_problem(api.load_topology("gb200-nvl72"), "allgather")
    done = api.compile(problem, "rccl", algorithm="forest", level=0)
    assert "grid=2x2x2x3x3" in done.pipeline


def test_wishes_that_no_algorithm_grants_are_refused():
    for settings, said in (
        ({"trees": "2", "chunks_per_gpu": 2}, "no algorithm has --trees, --chunks-per-gpu"),
        ({"trees": "many"}, "many"),
    ):
        with pytest.raises(InputError) as refusal:
            made("dgx-a100", 1, "allgather", "msccl", settings=settings)
        assert said in str(refusal.value)
    with pytest.raises(InputError, match="no algorithm"):
        algorithm_names(problem_of("dgx-a100", 1, "allgather"), ["rong"])
    with pytest.raises(InputError, match="-O4"):
        made("dgx-a100", 1, "allgather", "msccl", level=4)


def test_choices_are_varied_with_the_protocol_of_the_floor_first(monkeypatch):
    """Another one may lead until trees carry segments, and takes far longer to simulate."""
    tried, measure = [], Workshop.measure

    def note(workshop, asked):
        tried.extend(plan.protocol for plan, _ in asked)
        return measure(workshop, asked)

    monkeypatch.setattr(Workshop, "measure", note)
    for size, first in ((2**30, "Simple"), (2**12, "LL")):
        tried.clear()
        found(case_of("mi250", 1, "allgather", "msccl", (size,)), algorithm="forest")
        others = set(tried) - {"Simple", first}
        assert others
        assert tried[: min(map(tried.index, others))].count(first) > 5


def test_the_highest_level_varies_choices_though_the_one_below_spent_its_budget(monkeypatch):
    spent, improve, sweep = [], Quest.improve, Quest.sweep

    def after(quest, level):
        improve(quest, level)
        spent.append(quest.searcher.is_spent())

    def before(quest, *args, anything):
        if anything:
            spent.append(quest.searcher.is_spent())
        sweep(quest, *args, anything=anything)

    monkeypatch.setattr(Quest, "improve", after)
    monkeypatch.setattr(Quest, "sweep", before)
    found(case_of("ring:4", None, "allgather", "msccl", (2**20,)), level=3)
    assert spent[2:5] == [False, True, False]  # of -O2 before and after, then of -O3


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_a_protocol_that_was_asked_for_is_the_only_one_that_must_serve(runtime):
    """With Simple, a broadcast would hang between boxes."""
    problem = problem_of("gb200-nvl72", 2, "broadcast")
    done = api.compile(problem, runtime, protocol="LL", level=1, several=False)
    assert done.artefacts[0].program.header.protocol == "LL"


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_an_alltoall_is_cut_into_more_chunks_where_one_leaves_links_idle(runtime):
    """A link far slower than the others makes one chunk wait where two take two ways around it."""
    clique = api.load_topology("clique:4")
    slow = api.damage(clique, degraded=["gpu0-gpu1=1%"]).topology
    done = api.compile(api.make_problem(slow, "alltoall"), runtime)
    assert done.schedule.chunks_per_gpu > 1
    last = done.summary()["predicted"][-1]
    assert last["algbw_gb_per_s"] > 0.9 * last["most_gb_per_s"]


THREE = """
version: 1
name: three
boxes: 3
box:
  nodes:
    - {name: gpu, kind: gpu, count: 4}
    - {name: nvswitch, kind: switch}
    - {name: nic, kind: nic, count: 4}
  links:
    - {from: gpu, to: nvswitch, bandwidth: 300 GB/s, latency: 0.35 us}
    - {from: gpu, to: nic, join: blocks, bandwidth: 25 GB/s, latency: 0.65 us}
fabric:
  nodes:
    - {name: ib, kind: switch}
  links:
    - {from: nic, to: ib, bandwidth: 25 GB/s, latency: 0.65 us}
"""


def test_a_missing_nic_does_not_leave_an_allreduce_with_too_few_trees(tmp_path):
    path = tmp_path / "three.yaml"
    path.write_text(THREE)
    left = api.damage(api.load_topology(path), nics=["nic2.3"]).topology
    done = api.compile(api.make_problem(left, "allreduce"), "msccl")
    last = done.summary()["predicted"][-1]
    assert last["algbw_gb_per_s"] > 0.85 * last["most_gb_per_s"]


def test_sizes_that_no_file_serves_do_not_decide():
    """Plans with LL serve no large messages, at which rings would be the fastest of them."""
    problem = problem_of("dgx-a100", 1, "allreduce")
    done, forest = (
        api.compile(problem, "mscclpp", algorithm=name, protocol="LL") for name in (None, "forest")
    )
    (ours,), (theirs,) = (x.summary()["predicted"] for x in (done, forest))
    assert ours["size_bytes"] == theirs["size_bytes"] == 2**20
    assert ours["algbw_gb_per_s"] >= theirs["algbw_gb_per_s"]


def test_variants_are_tried_with_the_protocol_of_the_floor_too():
    """Rails as they stand are faster by LL128, but not where their sums are shared.

    Only with the protocol that was asked for, if one was.
    """
    machine = api.load_topology("gb200-nvl72", settings={"gpus": "12"})
    problem, size = api.make_problem(machine, "reduce-scatter"), 3 << 22
    passes = ALGORITHMS["rails"].replace("paired", "shared")
    passes = passes.replace("build-rails", "build-rails{strategy=shared}")
    given = {"size": size, "several": False}
    (mine,), (shared,) = (
        api.compile(problem, "msccl", **options, **given).predicted
        for options in ({}, {"passes": passes, "level": 0, "protocol": "Simple"})
    )
    assert mine.seconds <= shared.seconds * (1 + 1e-9)
    asked = api.compile(problem, "msccl", protocol="LL128", **given)
    assert asked.summary()["protocol"] == "LL128"


@pytest.mark.parametrize("runtime", ["msccl", "mscclpp", "rccl"])
def test_small_sums_are_sent_straight_by_as_many_copies_as_fit(runtime):
    """Each copy has threadblocks of its own; one copy is slower than trees at this size."""
    case = case_of("dgx-a100", 1, "allreduce", runtime, (1 << 13,))
    best = found(case).best
    assert (best.plan.algorithm, best.plan.values()["build-all-pairs.instances"]) == ("allpairs", 8)
    others = [found(case, algorithm=name).best for name in ("forest", "rails")]
    assert best.seconds[0] < 0.95 * min(other.seconds[0] for other in others)


@pytest.mark.parametrize(("runtime", "gpus", "copies"), [("rccl", 80, []), ("msccl", 10, [8, 4])])
def test_copies_are_as_many_as_threadblocks_suffice_for(runtime, gpus, copies):
    """Half as many too, for sums need some; and one is the plan as it stands."""
    case = case_of(f"clique:{gpus}", None, "allreduce", runtime)
    plans = Wish().variants("allpairs", case, Hops(dominate=True, one_more=False))
    assert [plan.values()["build-all-pairs.instances"] for plan in plans] == copies


@pytest.mark.parametrize(("runtime", "strategy"), [("msccl", "shared"), ("mscclpp", "spread")])
def test_own_shards_travel_while_sums_are_on_their_way(runtime, strategy):
    """In two segments; a plan has no operations for the sums of shared threadblocks."""
    case = case_of("dgx-h100", 2, "reduce-scatter", runtime)
    plans = Wish().variants("rails", case, Hops(dominate=False, one_more=False))
    halved = [plan for plan in plans if plan.values()["build-rails.segments"] == 2]
    assert [plan.values()["build-rails.strategy"] for plan in halved] == [strategy]


def test_plans_need_not_serve_larger_messages_than_were_asked_for():
    """Copies of all pairs with LL hold less than 4 MiB, up to which LL is tried."""
    problem = problem_of("dgx-a100", 1, "allreduce")
    small, large = (
        api.compile(problem, "mscclpp", size=1 << 13, max_bytes=most) for most in (None, 1 << 22)
    )
    served = [one.artefacts[0].program.header.max_bytes for one in (small, large)]
    assert small.predicted[0].seconds < large.predicted[0].seconds
    assert 1 << 13 <= served[0] < 1 << 22 == served[1]
    assert len(small.artefacts) == 2  # of each call mode
    larger = api.compile(problem, "mscclpp", size=1 << 13, max_bytes=1 << 23)
    assert larger.predicted == large.predicted  # LL serves 4 MiB of them
