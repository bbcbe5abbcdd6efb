"""No program is predicted faster than the bound of its runtime."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.runtime import link_rate, runtime_bounds
from colsynth.cost import default_model
from colsynth.cost.pair_routes import is_network
from colsynth.errors import ColsynthError
from colsynth.runtimes import profile
from colsynth.simulate import simulate

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 26, 1 << 30)
TOPOLOGIES = (
    api.load_topology("dgx-h100"),
    api.load_topology("ndv2", nodes=2),
    api.load_topology("ring:5"),
)
RUNTIMES = ("msccl", "rccl", "mscclpp")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast", "reduce")
CUSTOM = "version: 1\nchunks:\n  - {held-by: [9], wanted-by: [10]}\n"


def bounds(problem, runtime, sizes=SIZES):
    return runtime_bounds(problem, profile(runtime), best_optimum(problem), sizes)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_is_predicted_to_beat_it(collective, runtime):
    """What is made with each protocol stays above, at every size.

    Each machine meets each collective once, and each runtime twice.
    """
    seen = 0
    root = 0 if collective in {"broadcast", "reduce"} else None
    topology = TOPOLOGIES[(COLLECTIVES.index(collective) + RUNTIMES.index(runtime)) % 3]
    problem = api.make_problem(topology, collective, root)
    least = bounds(problem, runtime)
    for protocol, algorithm in product(("Simple", "LL"), (None, "ring")):
        asked = {"algorithm": algorithm, "level": 0, "protocol": protocol, "several": False}
        try:
            found = api.compile(problem, runtime, **asked)
        except ColsynthError:
            continue  # rings do not serve every collective
        program = found.artefacts[0].program
        points = simulate(program, topology, profile(runtime), SIZES)
        for point, bound in zip(points, least, strict=True):
            assert point.seconds >= bound.seconds * (1 - 1e-9)
            seen += 1
    assert seen >= 2 * len(SIZES)


def test_what_stays_in_a_box_need_not_leave_it(tmp_path):
    """Groups within boxes, and a custom collective within one, are not held to the network."""
    topology = api.load_topology("dgx-a100", nodes=2)
    one = api.make_problem(api.load_topology("dgx-a100"), "allgather")
    grouped = api.make_problem(topology, "allgather", groups=[range(8, 16), range(8)])
    asked = tmp_path / "asked.yaml"
    asked.write_text(CUSTOM)
    custom = api.make_problem(topology, None, custom=asked)
    alone, groups, own = (bounds(x, "msccl", (1 << 10,))[0] for x in (one, grouped, custom))
    assert groups.latency == alone.latency == own.latency


def test_prices_of_links_count_by_what_each_link_leaves():
    """A flow bound by prices on links of two kinds is not held to the links of a cut."""
    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "alltoall")
    found = best_optimum(problem)
    model = default_model(profile("msccl"))
    network = [is_network(topology, link) for link in range(len(topology.links))]
    priced = replace(found, prices=tuple(map(int, network)))
    assert link_rate(problem, priced, model) == found.algbw * Fraction(24, 25)
    priced = replace(found, prices=tuple(int(not outside) for outside in network))
    assert link_rate(problem, priced, model) == found.algbw * Fraction(4, 5)


def test_compile_tells_of_it():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allgather")
    found = api.compile(problem, "msccl", level=0, several=False)
    sizes = [point.size_bytes for point in found.predicted]
    assert [point.least for point in found.predicted] == list(bounds(problem, "msccl", sizes))
    assert sum(found.limited_by.values()) == pytest.approx(1)


def test_it_says_which_limit_binds():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    small, *_, large = bounds(problem, "rccl")
    assert (small.binds, large.binds) == ("latency", "threadblocks")
    assert bounds(problem, "msccl")[-1].binds == "links"
    for bound in (small, large):
        assert bound.seconds == getattr(bound, bound.binds)


def test_it_is_the_sum_that_is_said():
    """Seven eighths twice out and twice in, and added once, by 64 threadblocks of 12 GB/s."""
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    model = default_model(profile("rccl"))
    (found,) = bounds(problem, "rccl", (1 << 30,))
    begun = (model.launch["Simple"] + model.step["Simple"]) / 1e6
    assert found.threadblocks == pytest.approx(begun + (1 << 30) * 7 / 8 * 5 / 12e9 / 64)
    assert found.links == pytest.approx(begun + (1 << 30) / (1800 / 7 * 0.75e9))


def test_latency_counts_the_way_to_another_box():
    one, two = (
        bounds(api.make_problem(api.load_topology("dgx-a100", nodes=n), "allgather"), "msccl")[0]
        for n in (1, 2)
    )
    assert two.latency > one.latency + 1e-6
