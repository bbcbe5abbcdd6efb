"""What links allow a program: never more than the optimum, and the rate of the data it moves."""

from fractions import Fraction
from itertools import product

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.compile.link_rate import forest_rate, link_rate
from colsynth.errors import InputError, LimitError
from tests.each import each


@pytest.mark.parametrize("runtime", ["msccl", "torch"])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "alltoall"])
@pytest.mark.parametrize(("machine", "nodes"), [("dgx-a100", 2), ("mi250", 1), ("ring:5", None)])
def test_no_program_has_a_higher_rate_than_the_optimum(machine, nodes, collective, runtime):
    topology = api.load_topology(machine, nodes=nodes)
    problem = api.make_problem(topology, collective)
    rates = []
    for algorithm in ("allpairs", "allpairs2", "rails", "two-level", "pairwise"):
        try:
            done = api.compile(problem, runtime, algorithm=algorithm, level=0)
        except (InputError, LimitError):
            continue
        assert done.links.gap >= 0
        figures = done.summary()
        assert figures["algbw_gb_per_s"] == pytest.approx(float(done.links.algbw) / 1e9)
        assert figures["gap"] == float(done.links.gap)
        rates.append(done.links.algbw)
    assert rates


def test_the_rate_counts_what_the_busiest_link_carries():
    """In a ring of five, data of all pairs passes 1 or 2 links each way: 1 + 2 messages a link."""
    topology = api.load_topology("ring:5")
    problem = api.make_problem(topology, "alltoall")
    done = api.compile(problem, "msccl", algorithm="allpairs", level=0)
    bandwidth = topology.links[0].bandwidth
    assert done.links.algbw == Fraction(5, 3) * bandwidth
    assert done.links.gap == 0


@pytest.mark.parametrize("machine", ["mesh:4x4", "mesh:2x3"])
def test_trees_are_compared_with_what_any_schedule_reaches(machine):
    """Free roots make an allreduce faster than its reduce-scatter and allgather: the larger rate
    is the bound, also for algorithms with equal roots."""
    problem = api.make_problem(api.load_topology(machine), "allreduce")
    done = api.compile(problem, "msccl", algorithm="ring", level=0)
    figures = done.summary()
    best = api.allreduce_bound(problem)
    assert figures["bound_gb_per_s"] == pytest.approx(float(best.algbw) / 1e9)
    assert done.links.bound == best.algbw > done.schedule.bound.algbw
    assert figures["gap"] == float(best.algbw / done.links.algbw - 1) > 0


@each("machine", ["kautz:2,3", "ring:6", "mesh:2x3", "ring:4"])
def test_a_timed_schedule_has_a_rate_and_a_time_with_a_bound_for_each(machine):
    """Links do not wait for whole chunks as its time does, and no file is faster than they are."""
    topology = api.load_topology(machine)
    for collective, algorithm in product(("alltoall", "allreduce"), ("ten", "exact")):
        if (machine, algorithm) == ("kautz:2,3", "exact"):
            continue  # for minutes
        problem = api.make_problem(topology, collective)
        done = api.compile(problem, "msccl", algorithm=algorithm, level=0)
        figures, size = done.summary(), done.schedule.size
        assert done.schedule.algbw <= done.links.algbw <= done.links.bound
        assert done.links.bound == best_optimum(problem).algbw
        assert figures["gap"] == float(done.links.gap)
        least = max(done.schedule.bound.seconds, size / done.links.bound)
        assert figures["time_us"] >= figures["bound_us"] == pytest.approx(float(least) * 1e6)
        for point in figures["predicted"]:
            assert point["algbw_gb_per_s"] <= figures["algbw_gb_per_s"]


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "broadcast"])
@pytest.mark.parametrize(("machine", "nodes"), [("dgx-a100", 2), ("mi250", 1), ("mesh:2x3", None)])
def test_phases_overlap_on_links(machine, nodes, collective):
    """One phase alone has the rate that its forest states; several have that or more."""
    problem = api.make_problem(api.load_topology(machine, nodes=nodes), collective)
    bound = best_optimum(problem).algbw
    for trees in ("1", "optimal"):
        forest = api.pack(problem, trees)
        rate = forest_rate(forest, bound)
        assert bound >= rate.algbw >= forest.algbw
        assert rate.algbw == forest.algbw or len(forest.phases) > 1


def test_equal_roots_on_a_path_reach_what_free_ones_do():
    """Its end links carry 3/4 one way while it reduces, and 1/4 while it copies: 1 in all."""
    problem = api.make_problem(api.load_topology("mesh:1x4"), "allreduce")
    forest = api.pack(problem, "1")
    assert forest.algbw == Fraction(100 * 10**9, 3)
    assert forest_rate(forest, forest.bound.algbw).algbw == 50 * 10**9


def test_rounds_have_the_rate_of_the_messages_that_they_send():
    """In a ring of four, a link carries a chunk of its ends, and two that go past a GPU."""
    problem = api.make_problem(api.load_topology("ring:4"), "allgather")
    done = api.compile(problem, "torch", algorithm="allpairs", level=0)
    (link, *_) = problem.topology.links
    assert done.links.algbw == 4 * link.bandwidth / 3
    bound = Fraction(10**12)
    assert link_rate(done.artefacts[0].program, problem.topology, bound).gap > 0


@pytest.mark.parametrize(("collective", "times"), [("allreduce", 8 / 9), ("allgather", 1)])
def test_a_file_over_a_switch_has_the_rate_of_what_passes_it(collective, times):
    """The message, and in an allreduce a shard of sums besides: 450 GB/s to and from a GPU."""
    problem = api.make_problem(api.load_topology("dgx-h100"), collective)
    done = api.compile(problem, "mscclpp@0.10", algorithm="multicast", level=0)
    assert done.links.algbw == pytest.approx(450e9 * times)
    assert (done.links.gap == 0) == (collective == "allreduce")
    forest = api.compile(problem, "mscclpp@0.10", algorithm="forest", level=0)
    assert (forest.links.gap == 0) == (collective == "allgather")


@pytest.mark.parametrize(
    ("direct", "told"), [("  - {from: l, to: m, bandwidth: 1 GB/s}\n", 1), ("", 0)]
)
def test_ways_that_no_file_can_choose_are_told(tmp_path, direct, told):
    """Connections take the thin direct link between two switches, and trees the spine as well."""
    nodes = [f"  - {{name: {name}, kind: gpu}}\n" for name in "ab"]
    nodes += [f"  - {{name: {name}, kind: switch}}\n" for name in "lms"]
    ends = "al", "bm", "ls", "ms"
    links = [f"  - {{from: {x}, to: {y}, bandwidth: 50 GB/s}}\n" for x, y in ends]
    path = tmp_path / "t.yaml"
    path.write_text(
        "".join(["version: 1\nname: thin\nnodes:\n", *nodes, "links:\n", *links, direct])
    )
    problem = api.make_problem(api.load_topology(str(path)), "allgather")
    notes = api.compile(problem, "msccl", algorithm="forest", level=0).notes
    assert sum("files cannot choose routes" in note for note in notes) == told
