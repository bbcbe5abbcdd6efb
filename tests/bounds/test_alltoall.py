"""All-to-all: published bounds, every cut of small machines, prices checked by networkx."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import networkx as nx
import pytest

from colsynth import topology
from colsynth.bounds.flows import flow_bound
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from tests.each import each
from tests.reference.graphs import random_topology, three_tiers

GIGA = 10**9

# Bandwidth leaving a box over the pairs that must cross it; the field's figures for the two
# machines of TE-CCL (arXiv 2305.13479) are the same, since their links between boxes are.
PUBLISHED = [
    ("ndv2", 2, Fraction(25, 8)),  # 16 * 12.5 / (8 * 8)
    ("ndv2", 4, Fraction(25, 12)),  # 32 * 12.5 / (8 * 24)
    ("dgx2", 2, Fraction(25, 2)),  # 32 * 100 / (16 * 16)
    ("dgx-a100", 1, Fraction(2400, 7)),  # 8 * 300 / 7
    ("dgx-a100", 2, Fraction(50)),  # 16 * 200 / (8 * 8)
]


def alltoall(machine):
    return flow_bound(Problem(machine, Collective.ALLTOALL))


@pytest.mark.parametrize("wide", ["1 GB/s", f"0.{'0' * 20}1 GB/s", f"1{'0' * 20} GB/s"])
def test_links_of_any_width_are_bounded_exactly(wide):
    """Every other link of a ring is 10**100 times as wide: two pairs use one link each way."""
    whole = topology.load("ring:4", bandwidth=wide)
    assert alltoall(whole).cut_algbw == 2 * whole.links[0].bandwidth
    links = [(x, x.bandwidth * 10 ** (100 * (min(x.source, x.target) % 2))) for x in whole.links]
    lopsided = replace(whole, links=tuple(replace(x, bandwidth=b) for x, b in links))
    assert alltoall(lopsided).cut_algbw > 0


@pytest.mark.parametrize("power", [3, 10, 15])
def test_flows_are_told_only_where_the_solver_finds_some(power):
    whole = topology.load("ring:4")
    links = [(x, x.bandwidth / 10 ** (power * (n % 2))) for n, x in enumerate(whole.links)]
    found = alltoall(replace(whole, links=tuple(replace(x, bandwidth=b) for x, b in links)))
    assert found.algbw > 0
    assert found.reached is None or 0 < found.reached <= found.algbw * (1 + 1e-6)
    assert found.exact or power > 3


def lengths(machine, prices):
    """Return the sum over ordered pairs of GPUs of the least price of a way."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(machine.nodes)))
    for link, price in zip(machine.links, prices, strict=True):
        graph.add_edge(link.source, link.target, weight=price)
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    return sum(ways[a][b] for a in machine.ranks for b in machine.ranks)


def least_cut(machine):
    """Return the least algorithm bandwidth over all cuts, by trying every one."""
    best = None
    for size in range(1, len(machine.nodes)):
        for chosen in combinations(range(len(machine.nodes)), size):
            inside = set(chosen)
            count = len(inside & set(machine.ranks))
            pairs = count * (machine.size - count)
            if pairs:
                room = sum(
                    x.bandwidth
                    for x in machine.links
                    if x.source in inside and x.target not in inside
                )
                best = room / pairs if best is None else min(best, room / pairs)
    return machine.size * best


@pytest.mark.parametrize(("name", "boxes", "gb_per_s"), PUBLISHED)
def test_published_bounds(name, boxes, gb_per_s):
    found = alltoall(topology.load(name, nodes=boxes))
    assert (found.algbw, found.exact) == (gb_per_s * GIGA, True)
    assert found.reached == pytest.approx(float(found.algbw))


def test_an_even_torus_is_bound_by_its_average_distance():
    """Every GPU is 256 hops from the others in all; there are 256 links of 50 GB/s."""
    found = alltoall(topology.load("torus:8x8", bandwidth="50 GB/s"))
    assert found.algbw == 64 * Fraction(256 * 50 * GIGA, 64 * 256)
    assert found.exact


def test_a_mesh_is_bound_by_its_middle():
    found = alltoall(topology.load("mesh:3x6", bandwidth="1 GB/s"))
    assert found.algbw == 18 * Fraction(3 * GIGA, 81)
    assert (len(found.cut.gpus), len(found.cut.links), found.prices) == (9, 3, ())


def test_prices_can_prove_less_than_any_cut():
    """A circle of five with one-way links to the next GPU and to the one after it."""
    nodes = tuple(Node(name, Kind.GPU) for name in "abcde")
    ends = [(i, (i + 1) % 5) for i in range(5)] + [(i, (i + 2) % 5) for i in range(5)]
    links = tuple(Link(a, b, Fraction(GIGA)) for a, b in sorted(ends))
    machine = Topology("circulant", nodes, links, (0, 1, 2, 3, 4))
    found = alltoall(machine)
    # Three links pass any point of the circle, and ten of the twenty pairs must.
    assert found.algbw == 5 * Fraction(3 * GIGA, 10)
    assert found.algbw < least_cut(machine)


@pytest.mark.parametrize("directed", [False, True])
@each("seed", range(25))
def test_bounds_are_proven_and_reached_on_small_machines(seed, directed):
    machine = random_topology(seed, most_gpus=6, switches=2, directed=directed)
    found = alltoall(machine)
    tight = least_cut(machine)
    assert found.algbw <= tight <= found.cut_algbw
    assert found.exact
    assert found.reached <= float(found.algbw) * (1 + 1e-6)
    crossing = sum(machine.links[i].bandwidth for i in found.cut.links)
    pairs = len(found.cut.gpus) * (machine.size - len(found.cut.gpus))
    assert found.cut.bandwidth == crossing
    assert found.cut_algbw == machine.size * crossing / pairs
    if found.prices:
        paid = sum(x.bandwidth * p for x, p in zip(machine.links, found.prices, strict=True))
        assert found.algbw == machine.size * paid / lengths(machine, found.prices)
        assert found.algbw < found.cut_algbw


def test_some_small_machine_needs_prices():
    machine = random_topology(25, directed=True)
    found = alltoall(machine)
    assert found.prices
    assert found.algbw < least_cut(machine)


def test_the_cut_runs_the_way_it_says():
    machine = three_tiers()
    cut = alltoall(machine).cut
    for index in cut.links:
        link = machine.links[index]
        start, end = link.source, link.target
        inner, outer = (start, end) if cut.direction == "out" else (end, start)
        assert inner in cut.nodes
        assert outer not in cut.nodes


def test_beyond_the_limit_of_work_the_bound_stays_and_nobody_knows_what_flows_reach(monkeypatch):
    machine = topology.load("torus:9x9", bandwidth="1 GB/s")
    solved = alltoall(machine)
    monkeypatch.setattr("colsynth.bounds.alltoall._MOST_FLOWS", 0)
    found = alltoall(machine)
    # 4 * 9 * 9 links; distances from one GPU: 9 * 20 in each of two dimensions.
    assert found.algbw == solved.algbw == 81 * Fraction(4 * 81 * GIGA, 81 * 2 * 9 * 20)
    assert (found.reached, found.exact) == (None, False)
    assert solved.exact


def test_prices_of_one_on_every_link_bound_large_machines_too(monkeypatch):
    """Seventy GPUs around a one-way circle: the average way is half the circle."""
    nodes = tuple(Node(f"gpu{i}", Kind.GPU) for i in range(70))
    links = tuple(Link(i, (i + 1) % 70, Fraction(GIGA)) for i in range(70))
    monkeypatch.setattr("colsynth.bounds.alltoall._MOST_FLOWS", 0)
    found = alltoall(Topology("circle", nodes, links, tuple(range(70))))
    assert found.algbw == 70 * Fraction(70 * GIGA, 70 * sum(range(70)))


def test_equal_machines_give_equal_bounds():
    first, second = (alltoall(random_topology(25, directed=True)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("collective", [Collective.SCATTER, Collective.GATHER])
@each("seed", range(20))
def test_scatter_and_gather_reach_their_least_cut(seed, collective):
    machine = random_topology(seed, most_gpus=6, switches=2, directed=True)
    found = flow_bound(Problem(machine, collective, 0))
    links = machine.links if collective is Collective.SCATTER else machine.reversed().links
    rates = []
    for size in range(1, len(machine.nodes)):
        for chosen in combinations(range(len(machine.nodes)), size):
            beyond = sum(node not in chosen for node in machine.ranks)
            if machine.ranks[0] in chosen and beyond:
                leaving = [x for x in links if x.source in chosen and x.target not in chosen]
                rates.append(sum(x.bandwidth for x in leaving) / beyond)
    assert found.algbw == machine.size * min(rates)
    assert found.exact


def test_unreachable_gpus_are_named():
    nodes = tuple(Node(name, Kind.GPU) for name in "abc")
    links = tuple(Link(x, y, Fraction(GIGA)) for x, y in ((0, 1), (1, 0), (2, 0)))
    machine = Topology("one way", nodes, links, (0, 1, 2))
    for collective, root in ((Collective.ALLTOALL, None), (Collective.SCATTER, 1)):
        with pytest.raises(InfeasibleError) as caught:
            flow_bound(Problem(machine, collective, root))
        diagnostic = caught.value.diagnostic
        assert diagnostic.code == "CS302"
        assert diagnostic.phrase == "no data can pass from a to c"


def test_groups_and_single_gpus_are_refused():
    machine = topology.load("ring:4")
    with pytest.raises(InputError) as caught:
        flow_bound(Problem(machine, Collective.ALLTOALL, groups=((0, 1), (2, 3))))
    assert caught.value.diagnostic.code == "CS306"
    alone = Topology("alone", (Node("a", Kind.GPU),), (), (0,))
    with pytest.raises(InputError) as caught:
        flow_bound(Problem(alone, Collective.SCATTER, 0))
    assert caught.value.diagnostic.code == "CS117"
