"""Which variants are tried, by what hops take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.bounds.runtime import RuntimeBound
from colsynth.cost import default_model
from colsynth.runtimes import profile
from colsynth.search.case import Case
from colsynth.search.hops import Hops, hops_of
from colsynth.search.measured import Measured
from colsynth.search.objective import Objective
from colsynth.search.wish import Wish, or_longer


def case_of(nodes, collective="allreduce", runtime="rccl"):
    machine = api.load_topology("mi300x", nodes=nodes)
    return Case(api.make_problem(machine, collective), runtime, (1 << 20,))


@pytest.mark.parametrize("protocol", ["LL128", "Simple"])
def test_one_more_hop_counts_its_step_and_the_network(protocol):
    case, model = case_of(3), default_model(profile("rccl"))
    latency = 30e-6
    another = (model.network_hop[protocol] + model.step[protocol]) / 1e6
    floor = RuntimeBound(1 << 20, protocol, links=latency, threadblocks=0, latency=latency)
    for share, worth in ((0.9, False), (1.1, True)):
        assert hops_of(case, floor, latency + share * another).one_more is worth


@pytest.mark.parametrize(("links", "dominate"), [(1.0, True), (1.05, True), (1.2, False)])
def test_hops_dominate_where_nothing_takes_much_longer(links, dominate):
    floor = RuntimeBound(1 << 20, "LL", links=links * 20e-6, threadblocks=0, latency=20e-6)
    assert hops_of(case_of(3), floor, 1.0).dominate is dominate


@pytest.mark.parametrize(
    ("preset", "nodes", "collective", "runtime", "size"),
    [
        ("dgx-h100", 1, "broadcast", "mscclpp", 4096),
        ("dgx-h100", 1, "reduce", "mscclpp", 1024),
        ("dgx-a100", 2, "broadcast", "msccl", 1 << 30),
    ],
)
def test_a_floor_may_have_a_protocol_that_no_file_can_use(preset, nodes, collective, runtime, size):
    """A broadcast hangs with Simple between boxes, and with packets."""
    problem = api.make_problem(api.load_topology(preset, nodes=nodes), collective)
    assert api.compile(problem, runtime, size=size, several=False).verified


def tried(case, times, hops):
    """Return how variants exchange, and their protocols, by the time of each protocol so far."""
    start = Wish().start("rails")
    found = [
        Measured(replace(start, protocol=name), (seconds,), exact=(True,))
        for name, seconds in times.items()
    ]
    rows = Wish().variants_of(case, found, Objective((1.0,)), hops)
    return {(plan.option("exchange"), plan.protocol) for row in rows for plan in row}


@pytest.mark.parametrize("dominate", [False, True])
def test_only_those_of_several_hops_are_tried_with_protocols_that_are_nearly_as_fast(dominate):
    times = {"Simple": 1.0, "LL128": 1.05, "LL": 1.5}
    direct, ring = {("direct", "Simple")}, {("ring", "Simple"), ("ring", "LL128")}
    twice = {("two-shot", "Simple"), ("two-shot", "LL128")}
    ring = set() if dominate else ring
    assert tried(case_of(3), times, Hops(dominate, one_more=True)) == direct | ring | twice
    assert tried(case_of(3), times, Hops(dominate, one_more=False)) == direct | ring
    assert tried(case_of(2), times, Hops(dominate, one_more=True)) == direct


def test_where_segments_do_not_fit_half_as_many_are_tried():
    for algorithm, segments, expected in (("rails", 8, [8, 4, 2]), ("rails", 1, [1])):
        found = or_longer(Wish().start(algorithm, strategy="spread", segments=segments))
        assert [plan.option("segments") for plan in found] == expected
        assert {plan.option("strategy") for plan in found} == {"spread"}
    assert len(or_longer(Wish().start("forest", segments="8"))) == 1
