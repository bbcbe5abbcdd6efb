"""Lower bounds on time: never above a best schedule, equal to it where that is known."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import topology
from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.bounds.timed.time_bound import time_bound
from colsynth.bounds.trees import bound
from colsynth.errors import InfeasibleError
from colsynth.model import Collective, Demand, Kind, Link, Node, Problem, Topology
from colsynth.synthesis.timed.hops import hops_of
from tests.each import each
from tests.reference.graphs import random_topology
from tests.reference.steps import copies_of, fewest_steps

GIGA = 10**9
COPYING = (
    Collective.ALLGATHER,
    Collective.ALLTOALL,
    Collective.BROADCAST,
    Collective.SCATTER,
    Collective.GATHER,
)
MIRRORED = {
    Collective.REDUCE_SCATTER: Collective.ALLGATHER,
    Collective.REDUCE: Collective.BROADCAST,
    Collective.GATHER: Collective.SCATTER,
}


def bound_of(problem, chunks=1, chunk_bytes=10**6):
    ticks = choose_ticks(problem.topology, Fraction(chunk_bytes))
    hops = hops_of(problem.topology, Fraction(chunk_bytes), ticks)
    return time_bound(problem, chunks, Fraction(chunk_bytes), hops, ticks)


def on(machine, collective, **options):
    root = 0 if collective.rooted else None
    return Problem(machine, collective, root, **options)


def small(seed, most=4):
    """Three GPUs or more, strongly connected by one-step links, few of them."""
    rng = random.Random(seed)
    size = rng.randint(3, most)
    order = rng.sample(range(size), size)
    ends = set(zip(order, (*order[1:], order[0]), strict=True))
    ends |= {tuple(rng.sample(range(size), 2)) for _ in range(rng.randint(0, 2))}
    links = tuple(Link(a, b, Fraction(GIGA)) for a, b in sorted(ends))
    nodes = tuple(Node(f"gpu{i}", Kind.GPU) for i in range(size))
    return Topology(f"small{seed}", nodes, links, tuple(range(size)))


@pytest.mark.parametrize("collective", COPYING)
@each("seed", range(12))
def test_no_schedule_beats_the_bound(seed, collective):
    machine = small(seed, 3 if collective is Collective.ALLTOALL else 4)
    chunks = 2 if collective is Collective.BROADCAST else 1
    steps = fewest_steps(machine, copies_of(collective, machine.size, chunks))
    found = bound_of(on(machine, collective), chunks)
    assert found.seconds <= Fraction(steps, 1000)
    if collective in MIRRORED.values():
        for twin, original in MIRRORED.items():
            if original is collective:
                there = bound_of(on(machine.reversed(), twin), chunks)
                assert there.seconds == found.seconds


@pytest.mark.parametrize(
    ("spec", "collective", "steps"),
    [
        ("ring:5", "allgather", 2),  # 4 chunks over 2 links
        ("mesh:3x3", "allgather", 4),  # a corner: 8 over 2
        ("mesh:4x4", "allgather", 8),  # a corner: 15 over 2, whole chunks
        ("ring:8", "scatter", 4),
        ("ring:8", "gather", 4),
        ("mesh:2x4", "alltoall", 8),  # the middle: 16 pairs over 2 links
        ("mesh:4x2", "alltoall", 8),
        ("torus:4x4", "alltoall", 8),  # 16 * 32 hops over 64 links, or the middle
        ("mesh:1x6", "broadcast", 5),
    ],
)
def test_known_times_of_one_chunk(spec, collective, steps):
    machine = topology.load(spec, bandwidth="1 GB/s", latency="0 s")
    assert bound_of(on(machine, Collective(collective))).seconds == Fraction(steps, 1000)


def test_a_pipeline_fills_before_it_delivers():
    """Five chunks down a line of four GPUs: three links one after another, then four more."""
    machine = topology.load("mesh:1x4", bandwidth="1 GB/s", latency="0 s")
    for collective in (Collective.BROADCAST, Collective.REDUCE):
        assert bound_of(on(machine, collective), 5).seconds == Fraction(3 + 4, 1000)


def test_latency_is_paid_once_for_a_message_of_many_chunks():
    machine = topology.load("clique:2", bandwidth="1 GB/s", latency="1 us")
    found = bound_of(on(machine, Collective.ALLGATHER), 3, chunk_bytes=1000)
    assert found.seconds == Fraction(3 + 1, 10**6)


def test_whole_chunks_over_unequal_links():
    """Three chunks over links of 1 and 2 ms: one and two of them are there after 2 ms."""
    nodes = tuple(Node(name, Kind.GPU) for name in "abc")
    ends = {(0, 2): 2, (1, 2): 1, (2, 0): 9, (0, 1): 9, (2, 1): 9, (1, 0): 9}
    links = tuple(Link(a, b, Fraction(rate * GIGA)) for (a, b), rate in sorted(ends.items()))
    machine = Topology("uneven", nodes, links, (0, 1, 2))
    demands = (Demand((0, 1), (2,), count=3),)
    found = bound_of(Problem(machine, Collective.CUSTOM, demands=demands), 1, 2 * 10**6)
    assert (found.seconds, found.reason) == (Fraction(2, 1000), "ingress of c")


def test_halves_of_an_allreduce_may_overlap():
    """Of a hub with two spokes, three sums go up and down every spoke: not twice two each."""
    nodes = tuple(Node(name, Kind.GPU) for name in ("hub", "left", "right"))
    links = tuple(Link(a, b, Fraction(GIGA)) for a, b in ((0, 1), (0, 2), (1, 0), (2, 0)))
    machine = Topology("hub", nodes, links, (0, 1, 2))
    found = bound_of(on(machine, Collective.ALLREDUCE))
    # left's sum arrives after 2 steps, goes on to right in 2 more
    assert found.seconds == Fraction(4, 1000)
    assert bound_of(on(machine, Collective.ALLREDUCE), 10).seconds == Fraction(30, 1000)


@pytest.mark.parametrize(
    ("spec", "boxes", "reason"),
    [("ndv2", 2, "box"), ("dgx-a100", 1, "gpu0.0"), ("mi250", 2, "more GPUs")],
)
def test_large_messages_come_near_the_proven_optimum(spec, boxes, reason):
    machine = topology.load(spec, nodes=boxes)
    chunks, chunk_bytes = 64, 2 * 10**7
    size = machine.size * chunks * chunk_bytes
    for collective in (Collective.ALLGATHER, Collective.REDUCE_SCATTER):
        best = size / bound(on(machine, collective)).algbw
        found = bound_of(on(machine, collective), chunks, chunk_bytes)
        assert best <= found.seconds <= best * Fraction(21, 20)
        assert reason in found.reason


def test_alltoall_between_boxes_is_bound_by_the_boxes():
    """Eight times eight pairs over one NIC of 12.5 GB/s."""
    machine = topology.load("ndv2", nodes=2)
    found = bound_of(on(machine, Collective.ALLTOALL), 1, 10**7)
    assert found.seconds >= 64 * Fraction(10**7, 12_500_000_000)
    assert "box" in found.reason


def test_groups_share_the_links():
    machine = topology.load("mesh:1x4", bandwidth="1 GB/s", latency="0 s")
    every = bound_of(on(machine, Collective.ALLGATHER, groups=((0, 2), (1, 3)), transit=True))
    assert every.seconds == Fraction(2, 1000)
    assert bound_of(
        on(machine, Collective.ALLTOALL, groups=((0, 2), (1, 3)), transit=True), 3
    ).seconds == Fraction(6, 1000)


def test_gpus_outside_the_groups_are_of_use_only_in_transit():
    machine = topology.load("ring:4", bandwidth="1 GB/s", latency="0 s")
    groups = ((0, 1),)
    alone = bound_of(on(machine, Collective.ALLGATHER, groups=groups), 8)
    # Three come the long way round from the third step on, five directly.
    helped = bound_of(on(machine, Collective.ALLGATHER, groups=groups, transit=True), 8)
    assert (alone.seconds, helped.seconds) == (Fraction(8, 1000), Fraction(5, 1000))


@pytest.mark.parametrize("collective", [c for c in Collective if c is not Collective.CUSTOM])
@each("seed", range(8))
def test_a_missing_link_never_helps(seed, collective):
    machine = random_topology(seed, most_gpus=6, switches=2, directed=True)
    before = bound_of(on(machine, collective), 2)
    for dropped in range(0, len(machine.links), 3):
        links = (*machine.links[:dropped], *machine.links[dropped + 1 :])
        try:
            after = bound_of(on(replace(machine, links=links), collective), 2)
        except InfeasibleError:
            continue
        assert after.seconds >= before.seconds


def test_what_a_custom_problem_asks_for_is_bound_like_the_collective_it_equals():
    machine = topology.load("dgx-a100", nodes=2)
    ranks = tuple(range(machine.size))
    gather = tuple(Demand((rank,), ranks) for rank in ranks)
    found = bound_of(Problem(machine, Collective.CUSTOM, demands=gather), 2)
    assert found == bound_of(on(machine, Collective.ALLGATHER), 2)
    scatter = tuple(Demand(ranks, (rank,), reduces=True) for rank in ranks)
    found = bound_of(Problem(machine, Collective.CUSTOM, demands=scatter), 2)
    assert found == bound_of(on(machine, Collective.REDUCE_SCATTER), 2)


@pytest.mark.parametrize("collective", [c for c in Collective if c is not Collective.CUSTOM])
def test_unreachable_gpus_are_named(collective):
    nodes = tuple(Node(name, Kind.GPU) for name in "abcd")
    links = tuple(Link(x, y, Fraction(GIGA)) for x, y in ((0, 1), (1, 0), (2, 3), (3, 2)))
    machine = Topology("islands", nodes, links, (0, 1, 2, 3))
    with pytest.raises(InfeasibleError) as caught:
        bound_of(on(machine, collective))
    words = caught.value.diagnostic.phrase.split()
    assert caught.value.diagnostic.code == "CS302"
    assert len({"a", "b"} & set(words)) == len({"c", "d"} & set(words)) == 1


def test_nothing_to_move_takes_no_time():
    machine = topology.load("ring:4")
    demands = (Demand((1,), (1,)),)
    found = bound_of(Problem(machine, Collective.CUSTOM, demands=demands))
    assert (found.seconds, found.reason) == (0, "nothing has to move")
