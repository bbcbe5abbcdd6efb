"""No program is predicted faster than the bound of its runtime."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from colsynth import api
from colsynth.bounds.latency import Latency
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.runtime import link_rate, runtime_bounds
from colsynth.bounds.ways import Ways
from colsynth.cost import default_model
from colsynth.errors import ColsynthError
from colsynth.runtimes import profile
from colsynth.simulate import simulate
from tests.reference.graphs import random_topology

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 26, 1 << 30)
TOPOLOGIES = (
    api.load_topology("dgx-h100"),
    api.load_topology("ndv2", nodes=2),
    api.load_topology("ring:5"),
)
RUNTIMES = ("msccl", "rccl", "mscclpp")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast", "reduce")
CUSTOM = "version: 1\nchunks:\n  - {held-by: [9], wanted-by: [10]}\n"


def bounds(problem, runtime, sizes=SIZES, protocol=None):
    target = profile(runtime)
    if protocol is not None:
        target = replace(target, fifo_calls={protocol: target.fifo_calls[protocol]})
    return runtime_bounds(problem, target, best_optimum(problem), sizes)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_is_predicted_to_beat_it(collective, runtime):
    """What is made with a protocol, and the ring of the other one, stay above at every size.

    Each machine meets each collective once, and each runtime twice.
    """
    seen = 0
    root = 0 if collective in {"broadcast", "reduce"} else None
    place = COLLECTIVES.index(collective) + RUNTIMES.index(runtime)
    topology = TOPOLOGIES[place % 3]
    problem = api.make_problem(topology, collective, root)
    least = bounds(problem, runtime)
    protocols = ("Simple", "LL")
    for protocol, algorithm in ((protocols[place % 2], None), (protocols[place % 2 - 1], "ring")):
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
    assert seen >= len(SIZES)


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
    network = [link in topology.network for link in range(len(topology.links))]
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
    problem = api.make_problem(api.load_topology("dgx-b200"), "allreduce")
    small, *_, large = bounds(problem, "rccl")
    assert (small.binds, large.binds) == ("latency", "threadblocks")
    assert bounds(problem, "msccl")[-1].binds == "links"
    for bound in (small, large):
        assert bound.seconds == getattr(bound, bound.binds)


def test_it_is_the_sum_that_is_said():
    """Seven eighths twice out and twice in, and added once, by 64 threadblocks of 12 GB/s.

    Of the seven sums of a byte, six may be further operands of the first.
    """
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    model = default_model(profile("rccl"))
    (found,) = bounds(problem, "rccl", (1 << 30,))
    begun = (model.launch["Simple"] + model.step["Simple"]) / 1e6
    moved = (1 << 30) * 7 / 8 / 64
    calls = 2 * moved * 2 / (1 << 21)  # of 2 MiB at most, to receive and to send, 1 us each
    added = (1 + 6 * model.operand) / 7
    expected = begun + moved * (4 + added) / 12e9 + (calls - 1) * 1e-6
    assert found.threadblocks == pytest.approx(expected)
    hop = (model.hop["Simple"] + 0.7) / 1e6
    assert found.links == pytest.approx(begun + (1 << 30) / (1800 / 7 * 0.75e9) + hop)


SMALL_SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 23)
TWO_BOXES = api.load_topology("gb200-nvl72", nodes=2, settings={"gpus": "4"})
SMALL = (
    *(api.load_topology(name) for name in ("ring:3", "ring:5", "mesh:2x2")),
    api.load_topology("gb200-nvl72", nodes=3, settings={"gpus": "2"}),
    random_topology(7),
    TWO_BOXES,
)


PLANS = (("allpairs", "LL", 1), ("allpairs2", "Simple", 2), ("bfb", "LL", 2), ("forest", "LL", 1))


def test_no_algorithm_is_predicted_to_beat_it_at_small_sizes():
    """With one hop or several, direct or relayed, one copy or two, in one box or more.

    Each program is held to the bound of its own protocol.
    """
    seen, runtimes = 0, ("msccl", "rccl", "mscclpp")
    for place, (topology, collective) in enumerate(product(SMALL, COLLECTIVES[:4])):
        problem = api.make_problem(topology, collective)
        runtime = runtimes[place % 3]
        least = {name: bounds(problem, runtime, SMALL_SIZES, name) for name in ("LL", "Simple")}
        for algorithm, protocol, instances in PLANS:
            plan = {"algorithm": algorithm, "instances": instances, "protocol": protocol}
            try:
                found = api.compile(problem, runtime, level=0, several=False, **plan)
            except ColsynthError:
                continue  # no algorithm serves everything
            program = found.artefacts[0].program
            points = simulate(program, topology, profile(runtime), SMALL_SIZES)
            pairs = zip(points, least[program.header.protocol], strict=True)
            assert all(p.seconds >= b.seconds * (1 - 1e-9) for p, b in pairs)
            seen += 1
    assert seen >= 55


@pytest.mark.parametrize(
    ("runtime", "collective", "size", "most"),
    [
        # launch 4.8, steps 0.8, hops 0.5 and wires 0.7, and a wait of 0.5 between two sums
        ("msccl", "allgather", 1 << 10, 4.8 + 0.8 + 1.2 + 0.8),
        ("msccl", "reduce-scatter", 1 << 10, 4.8 + 0.8 + 1.2 + 0.8 + 0.5 + 0.8),
        ("msccl", "allreduce", 1 << 10, 4.8 + 0.8 + 1.2 + 0.8 + 0.5 + 0.8),
        ("msccl", "allreduce", 1 << 17, 4.8 + 0.8 + 1.2 + 0.8 + 1.2 + 0.8),
        # launch 12; sums are steps of their own
        ("rccl", "allreduce", 1 << 10, 12 + 0.8 + 1.2 + 0.8 + 0.5 + 0.8),
    ],
)
def test_hops_steps_and_sums_are_counted(runtime, collective, size, most):
    """On 8 GPUs of one switch; 128 KiB are too many for each GPU to receive seven times."""
    problem = api.make_problem(api.load_topology("dgx-h100"), collective)
    target = profile(runtime)
    ways = Ways(problem, default_model(target))
    assert Latency(ways, target, ways.model, "LL").least(size) == pytest.approx(most / 1e6)


def test_messages_hold_more_contributions_later():
    """Seven copies of each byte, then pairs, then sums that waited."""
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    ways = Ways(problem, default_model(profile("msccl")))
    latency = Latency(ways, profile("msccl"), ways.model, "Simple")
    hop, merge = 1.7 + 0.7 + 1.0, 0.5 + 1.0
    least = 8.4 + 1.0 + 1.7 + 0.7 + hop + merge + 20
    size = (hop / 7 + merge / 3.5 + 20) / 1e6 * ways.entry
    assert latency.links(size) == pytest.approx(least / 1e6)


@pytest.mark.parametrize(
    ("moved", "calls", "slices"), [(30000, 1, 1), (60000, 1, 2), (10**6, 5, 2)]
)
def test_a_connection_takes_few_large_calls_or_many_steps(moved, calls, slices):
    """Of 24 GB/s, with a step of 1 us a call; a slice has 32 KiB at least."""
    problem = api.make_problem(api.load_topology("dgx-h100"), "allgather")
    target = profile("msccl")
    latency = Latency(Ways(problem, default_model(target)), target, default_model(target), "Simple")
    first = max(moved / calls / slices, min(moved, 32768))
    assert latency.connection(moved) == pytest.approx(calls * 1e-6 + (moved + first) / 24e9)


def test_what_is_sent_directly_passes_several_links():
    """On a ring of five, 30 links' worth of pairs over 10 links; 4 into each GPU over 2."""
    problem = api.make_problem(api.load_topology("ring:5"), "allgather")
    ways = Ways(problem, default_model(profile("msccl")))
    speed = ways.speed[0]
    assert ways.entry == pytest.approx(2 * speed)
    assert ways.crowd == pytest.approx(3 / speed)


def test_all_pairs_of_two_boxes_share_what_joins_them():
    """Four GPUs by four, over four NICs; and relays take a hop of the network, and one within."""
    problem = api.make_problem(TWO_BOXES, "allgather")
    ways = Ways(problem, default_model(profile("msccl")))
    assert ways.crowd_across == pytest.approx(16 / (4 * 50e9 * 0.96))
    latency = Latency(ways, profile("msccl"), ways.model, "LL")
    across, within = 0.7 + 2.6, 0.5 + 0.7
    assert latency.least(1 << 18) == pytest.approx((5.6 + across + 0.8 + within + 0.8) / 1e6)
    latency = Latency(ways, profile("msccl"), ways.model, "LL")
    late = within * 3 / 4 + within * 2 / 4  # one GPU gets it, then two, then four
    entering = (1 << 25) / 2 / (4 * 50e9 * 0.96 * 0.5) + late / 1e6
    assert latency.links(1 << 25) == pytest.approx((5.6 + across) / 1e6 + entering)
    summed = Ways(api.make_problem(TWO_BOXES, "allreduce"), ways.model)
    assert summed.lines_across == pytest.approx(4 / (4 * 50e9 * 0.96))
    least = Latency(summed, profile("msccl"), ways.model, "LL").least(1 << 18)
    assert least == pytest.approx((5.6 + across + 0.8 + 2 * (within + 0.8)) / 1e6)


def test_latency_counts_the_way_to_another_box():
    one, two = (
        bounds(api.make_problem(api.load_topology("dgx-a100", nodes=n), "allgather"), "msccl")[0]
        for n in (1, 2)
    )
    assert two.latency > one.latency + 1e-6


@pytest.mark.parametrize(
    ("name", "boxes", "runtime", "most"),
    [
        # launch 4.8 and a step 0.8; five links of 0.7 in three connections, which pass one GPU each
        ("mi250", None, "msccl", 5.6 + 3 * 0.5 + 5 * 0.7 + 2 * 0.8 + 0.8),
        # launch 12 and a step 0.8; four GPUs are passed on the way
        ("mi250", None, "rccl", 12.8 + 0.5 + 5 * 0.7 + 0.8),
        # none passes others: four stops
        ("ring:8", None, "mscclpp", 4.8 + 4 * (0.1 + 0.7) + 3 * 0.3 + 0.3),
        # a GPU without a NIC sends over one with it; there, a stop for the GPU behind
        ("ndv2", 2, "msccl", 5.6 + 0.7 + 0.5 + 2 * 0.7 + 4 * 0.325 + 0.8 + 0.8),
    ],
)
def test_data_stops_on_long_ways(name, boxes, runtime, most):
    problem = api.make_problem(api.load_topology(name, nodes=boxes), "allgather")
    target = profile(runtime)
    ways = Ways(problem, default_model(target))
    assert Latency(ways, target, ways.model, "LL").once == pytest.approx(most / 1e6, abs=5e-9)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("machine", ["dgx-1v", "mi250", "dgx2"])
def test_no_allreduce_beats_links_of_which_protocols_leave_less(machine, runtime):
    """Two boxes, whose links lose different shares: the bound is above that of the best share."""
    topology = api.load_topology(machine, nodes=2)
    problem = api.make_problem(topology, "allreduce")
    model, optimum = default_model(profile(runtime)), best_optimum(problem)
    rate = link_rate(problem, optimum, model)
    best = Fraction(max(model.link_efficiency, model.network_efficiency)).limit_denominator()
    assert rate <= optimum.limit.algbw * best
    for algorithm in (None, "ring", "tree"):
        try:
            done = api.compile(
                problem, runtime, algorithm=algorithm, level=0, size=1 << 30, several=False
            )
        except ColsynthError:
            continue
        assert done.predicted[-1].seconds >= (1 << 30) / rate
