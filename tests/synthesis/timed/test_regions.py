"""Regions: boxes and cards, where entering them twice costs time."""

from fractions import Fraction

import pytest

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.synthesis.timed.hops import hops_of
from colsynth.synthesis.timed.regions import held_together, regions
from colsynth.topology.load import load
from tests.each import each
from tests.synthesis.timed.problems import both_ways, network, wild_topology


def regions_of(topology):
    size = Fraction(10**6)
    hops = hops_of(topology, size, choose_ticks(topology, size))
    return held_together(regions(topology, hops), hops), hops


def test_boxes_joined_by_a_fabric():
    assert regions_of(load("dgx-a100", nodes=2))[0] == (tuple(range(8)), tuple(range(8, 16)))


def test_cards_of_two_dies():
    found, _ = regions_of(load("mi250", nodes=1))
    pairs = tuple((die, die + 1) for die in range(0, 16, 2))
    assert found[-8:] == pairs


@pytest.mark.parametrize("spec", ["torus:4x4", "ring:6", "dgx-a100", "clique:5"])
def test_none_where_all_links_are_alike(spec):
    assert regions_of(load(spec, nodes=1 if spec == "dgx-a100" else None))[0] == ()


def test_sets_are_no_regions_where_another_gpu_waits_longer_anyhow():
    links = both_ways("a b", "c d", cost=8) | both_ways("a c", "b d", cost=1)
    assert regions_of(network(links))[0] == ((0, 1), (2, 3))
    # Whatever the others do, four chunks for the fifth take four times as long.
    thin = both_ways("a e", cost=Fraction(1, 4))
    assert regions_of(network(links | thin))[0] == ()


@each("seed", range(60))
def test_regions_are_nested_or_apart_and_held_together(seed):
    found, hops = regions_of(wild_topology(seed))
    assert list(found) == sorted(found, key=lambda part: (-len(part), part))
    ends = list(zip(hops.source.tolist(), hops.target.tolist(), strict=True))
    for part in map(set, found):
        assert len(part) > 1
        for other in map(set, found):
            assert part <= other or other <= part or not part & other
        for start in part:
            seen = {start}
            for _ in part:
                seen |= {b for a, b in ends if a in seen and b in part}
            assert seen == part


def test_what_nothing_enters_holds_nothing_back():
    links = {"a b": 1} | both_ways("b c", cost=3)
    assert regions_of(network(links))[0] == ((1, 2),)
