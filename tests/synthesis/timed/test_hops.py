"""What a chunk costs on a route: by hand, and rounded up where ticks are coarse."""

from fractions import Fraction

import numpy as np
import pytest

from colsynth.bounds.timed.ticks import Ticks, choose_ticks
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Context
from colsynth.synthesis.timed.hops import hops_of, reverse, select
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.verify import check_timed
from tests.each import each
from tests.synthesis.timed.problems import both_ways, network, wild_topology

KILOBYTE = Fraction(1000)
"""A microsecond at 1 GB/s."""


def micros(topology, chunk=KILOBYTE):
    """Return (begin, end) of the links of every hop, by names, in microseconds."""
    ticks = choose_ticks(topology, chunk)
    hops = hops_of(topology, chunk, ticks, spaced=True)
    found = {}
    for h in range(len(hops)):
        some = slice(hops.first[h], hops.first[h + 1])
        names = [topology.link_name(i).replace(" -> ", " ") for i in hops.links[some].tolist()]
        times = zip(hops.begin[some].tolist(), hops.end[some].tolist(), strict=True)
        found[", ".join(names)] = [
            tuple(float(t * ticks.unit * 10**6) for t in pair) for pair in times
        ]
    return found


def test_with_a_gap_a_link_is_occupied_for_latency_and_transfer():
    assert micros(network({"a b": (2, 3)})) == {"a b": [(0, 3.5)]}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        # As fast: sent on when the head is there, a microsecond after the start.
        ((1, 2), [(0, 2), (1, 4)]),
        # Faster: it waits until it can go at full speed, so that both tails come together.
        ((2, 2), [(0, 2), (1.5, 4)]),
        # Slower: sent on at once, and takes longer than what comes in.
        (("1/2", 2), [(0, 2), (1, 5)]),
    ],
)
def test_switches_cut_through(second, expected):
    topology = network({"a s": (1, 1), "s b": second})
    assert micros(topology) == {"a s, s b": expected}


@pytest.mark.parametrize(
    ("second", "expected"),
    [((1, 2), [(0, 2), (2, 5)]), ((2, 2), [(0, 2), (2, 4.5)]), (("1/2", 2), [(0, 2), (2, 6)])],
)
def test_others_store_and_forward(second, expected):
    topology = network({"a s": (1, 1), "s b": second}, stores=("s",))
    assert micros(topology) == {"a s, s b": expected}


def test_a_chain_of_switches_of_both_kinds():
    topology = network(
        {"a s0": (1, 1), "s0 s1": (2, 0), "s1 s2": (1, 1), "s2 b": (4, 0)}, stores=("s1",)
    )
    expected = [(0, 2), (1.5, 2), (2, 4), (3.75, 4)]
    assert micros(topology) == {"a s0, s0 s1, s1 s2, s2 b": expected}


@each("seed", range(30))
def test_hops_are_sorted_and_occupy_their_links_one_after_the_other(seed):
    topology = wild_topology(seed)
    hops = hops_of(topology, KILOBYTE, choose_ticks(topology, KILOBYTE))
    links = np.split(hops.links, hops.first[1:-1]) if len(hops) else []
    keys = list(zip(hops.target.tolist(), hops.source.tolist(), map(list, links), strict=True))
    assert keys == sorted(keys)
    for h in range(len(hops)):
        some = slice(hops.first[h], hops.first[h + 1])
        begin, end = hops.begin[some], hops.end[some]
        assert begin[0] == 0
        assert (np.diff(begin) >= 0).all()
        assert (np.diff(end) >= 0).all()
        assert hops.duration[h] == end[-1] + hops.lag[h]
        assert hops.stride[h] == (end - begin).max()
    moving = [KILOBYTE / topology.links[i].bandwidth for i in hops.links.tolist()]
    unit = choose_ticks(topology, KILOBYTE).unit
    assert [time * unit for time in (hops.end - hops.begin).tolist()] == moving
    spaced = hops_of(topology, KILOBYTE, choose_ticks(topology, KILOBYTE), spaced=True)
    assert (spaced.duration == hops.duration).all()
    assert (spaced.begin == hops.begin).all()
    assert (spaced.lag == 0).all()


@each("seed", range(30))
def test_time_turned_around_twice_is_time(seed):
    topology = wild_topology(seed)
    hops = hops_of(topology, KILOBYTE, choose_ticks(topology, KILOBYTE))
    turned, was = reverse(hops)
    again, before = reverse(turned)
    assert (turned.source == hops.target[was]).all()
    assert (turned.target == hops.source[was]).all()
    assert (turned.duration == hops.duration[was]).all()
    # The order of parallel routes may differ; which hop is which does not.
    back = was[before]
    for name in ("source", "target", "duration", "stride", "lag"):
        assert (getattr(again, name) == getattr(hops, name)[back]).all()
    for h, old in enumerate(back.tolist()):
        for name in ("links", "begin", "end"):
            mine = getattr(again, name)[again.first[h] : again.first[h + 1]]
            theirs = getattr(hops, name)[hops.first[old] : hops.first[old + 1]]
            assert mine.tolist() == theirs.tolist()


def test_some_hops_of_all():
    topology = network(both_ways("a s", "b s", "c s", "a b"))
    hops = hops_of(topology, KILOBYTE, choose_ticks(topology, KILOBYTE))
    keep = hops.target == 1
    some = select(hops, keep)
    assert some.source.tolist() == hops.source[keep].tolist()
    kept = np.flatnonzero(keep).tolist()
    expected = [hops.links[hops.first[h] : hops.first[h + 1]].tolist() for h in kept]
    assert [x.tolist() for x in np.split(some.links, some.first[1:-1])] == expected


def test_ticks_are_exact_where_they_can_be():
    topology = network({"a b": ("7/3", "1/7"), "b a": (5, "1/11")})
    ticks = choose_ticks(topology, KILOBYTE)
    for link in topology.links:
        for time in (link.latency, KILOBYTE / link.bandwidth):
            assert (time / ticks.unit).denominator == 1
    # Everything divides by the unit, and nothing larger would do.
    counts = [
        int(time / ticks.unit)
        for x in topology.links
        for time in (x.latency, KILOBYTE / x.bandwidth)
    ]
    assert np.gcd.reduce(counts) == 1


ABSURD = {
    "a b": ("1.000000007", "1/998244353"),
    "b c": ("0.998244353", "1/1000000009"),
    "c a": ("0.999999937", "1/999999893"),
    "c s": ("1.000000033", "1/999999883"),
    "s a": ("0.999999929", "1/1000000021"),
}


def test_coarse_ticks_round_times_up_by_little():
    topology = network(ABSURD)
    ticks = choose_ticks(topology, KILOBYTE)
    slowest = max(KILOBYTE / link.bandwidth for link in topology.links)
    assert ticks.unit == slowest / 2**40
    hops = hops_of(topology, KILOBYTE, ticks)
    for h in range(len(hops)):
        links = [topology.links[i] for i in hops.links[hops.first[h] : hops.first[h + 1]]]
        if len(links) == 1:
            exact = links[0].latency + KILOBYTE / links[0].bandwidth
            assert 0 <= hops.duration[h] * ticks.unit - exact < ticks.unit


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "alltoall"])
def test_schedules_in_coarse_ticks_hold(collective):
    problem = Problem(network(ABSURD), Collective(collective))
    schedule = MatchChunks(size=9001, chunks_per_gpu=3).run(problem, Context())
    check_timed(schedule)
    assert schedule.seconds >= schedule.bound.seconds


def test_without_links_any_unit_will_do():
    topology = network({"a b": 1})
    assert choose_ticks(type(topology)("none", topology.nodes, (), (0, 1)), KILOBYTE) == Ticks(
        Fraction(1)
    )
