"""The links that the data of a connection takes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations

import pytest

from colsynth import api
from colsynth.cost.pair_routes import most_nics, pair_routes
from colsynth.errors import InfeasibleError
from colsynth.model import Kind, Link, Node, Topology


def names(topology, route):
    return [topology.link_name(link) for link in route]


def test_within_a_box_data_stays_there():
    topology = api.load_topology("dgx-a100", nodes=2)
    (route,) = pair_routes(topology, [(0, 3)])[0, 3]
    assert names(topology, route) == ["gpu0.0 -> nvswitch0", "nvswitch0 -> gpu0.3"]
    assert not any(link in topology.network for link in route)


def test_between_boxes_it_takes_nics_and_the_fabric():
    topology = api.load_topology("dgx-a100", nodes=2)
    (route,) = pair_routes(topology, [(0, 8)])[0, 8]
    assert names(topology, route)[1:3] == ["nic0.0 -> ib0", "ib0 -> nic1.0"]
    assert all(link in topology.network for link in route)


@pytest.mark.parametrize("preset", ["dgx-a100", "mi250", "ndv2", "mi300x", "dgx2"])
def test_every_pair_of_two_boxes_has_a_way(preset):
    """Rails and planes: where no switch joins them, data passes GPUs, as with PXN.

    In a box it stays there, also where it passes GPUs.
    """
    topology = api.load_topology(preset, nodes=2)
    boxes = [topology.nodes[node].box for node in topology.ranks]
    ranks = range(topology.size)
    pairs = [(a, b) for a in ranks for b in ranks if a != b]
    found = pair_routes(topology, pairs)
    assert sorted(found) == pairs
    for (source, target), routes in found.items():
        assert len({len(route) for route in routes}) == 1
        for route in routes:
            ends = [(topology.links[i].source, topology.links[i].target) for i in route]
            assert ends[0][0] == topology.ranks[source]
            assert ends[-1][1] == topology.ranks[target]
            assert all(left[1] == right[0] for left, right in pairwise(ends))
            within = boxes[source] == boxes[target]
            assert any(link in topology.network for link in route) is not within


def test_parallel_switches_are_ways_to_take_turns_on():
    kinds = (Kind.GPU, Kind.GPU, Kind.SWITCH, Kind.SWITCH)
    nodes = tuple(Node(f"n{i}", kind, 0) for i, kind in enumerate(kinds))
    rate = Fraction(10**9)
    links = tuple(Link(a, b, rate) for a, b in ((0, 2), (0, 3), (2, 1), (3, 1)))
    topology = Topology("two", nodes, links, (0, 1))
    assert len(pair_routes(topology, [(0, 1)])[0, 1]) == 2
    with pytest.raises(InfeasibleError) as caught:
        pair_routes(topology, [(1, 0)])
    assert caught.value.diagnostic.code == "CS601"


@pytest.mark.parametrize(
    ("rates", "kind", "turns"),
    [
        ((3, 3), Kind.SWITCH, (1, 1)),
        ((3, 1), Kind.SWITCH, (6, 2)),
        ((100, 1), Kind.SWITCH, (8, 1)),
        ((3, 3), Kind.NIC, (1, 1)),
        ((3, 1), Kind.NIC, (1, 0)),
    ],
)
def test_parallel_switches_take_turns_by_bandwidth_and_only_the_fastest_nics_do(rates, kind, turns):
    """Any few channels in a row have about the shares of all."""
    nodes = tuple(Node(f"n{i}", Kind.GPU if i < 2 else kind, 0) for i in range(4))
    links = tuple(
        Link(a, b, Fraction(rates[max(a, b) - 2])) for a, b in ((0, 2), (0, 3), (2, 1), (3, 1))
    )
    found = pair_routes(Topology("two", nodes, links, (0, 1)), [(0, 1)])[0, 1]
    assert tuple(found.count((i, i + 2)) for i in range(2)) == turns
    for many in range(1, len(found)):
        slow = sum(route == (1, 3) for route in found[:many])
        assert abs(slow - many * turns[1] / sum(turns)) <= 1


def test_each_end_chooses_among_its_own_nics():
    """A GPU with one slow NIC reaches the fast one of another all the same."""
    kinds = {"gpu0": Kind.GPU, "slow0": Kind.NIC, "gpu1": Kind.GPU, "fast1": Kind.NIC}
    kinds |= {"slow1": Kind.NIC, "leaf": Kind.SWITCH}
    boxes = [int(name[-1]) if name[-1].isdigit() else None for name in kinds]
    nodes = tuple(map(Node, kinds, kinds.values(), boxes))
    place = {name: index for index, name in enumerate(kinds)}
    nics = {"slow0": 1, "fast1": 2, "slow1": 1}
    wires = [(f"gpu{nic[-1]}", nic, rate) for nic, rate in nics.items()]
    wires += [(nic, "leaf", rate) for nic, rate in nics.items()]
    ends = ((place[a], place[b], rate) for x, y, rate in wires for a, b in ((x, y), (y, x)))
    links = tuple(Link(a, b, Fraction(rate)) for a, b, rate in sorted(ends))
    topology = Topology("lopsided", nodes, links, (0, 2))
    for pair, nic in {(0, 1): "leaf -> fast1", (1, 0): "fast1 -> leaf"}.items():
        (route,) = pair_routes(topology, [pair])[pair]
        assert nic in names(topology, route)


@pytest.mark.parametrize("box", [None, 0])
def test_links_between_switches_are_of_the_network_where_a_nic_leads_to_them(box):
    """Whether a leaf is declared in its box or in the fabric, its wire to the spine is the same."""
    kinds = {"gpu": Kind.GPU, "plx": Kind.SWITCH, "nic": Kind.NIC}
    nodes = [Node(f"{x}{b}", kind, b) for b in (0, 1) for x, kind in kinds.items()]
    nodes += [Node(f"leaf{b}", Kind.SWITCH, None if box is None else b) for b in (0, 1)]
    nodes += [Node("spine", Kind.SWITCH, None)]
    place = {node.name: index for index, node in enumerate(nodes)}
    wires = [(f"{x}{b}", f"{y}{b}") for b in (0, 1) for x, y in pairwise((*kinds, "leaf"))]
    wires += [(f"leaf{b}", "spine") for b in (0, 1)]
    ends = [(place[x], place[y]) for x, y in wires]
    links = (Link(*pair, Fraction(10**9)) for x, y in ends for pair in ((x, y), (y, x)))
    topology = Topology("tree", tuple(nodes), tuple(sorted(links, key=str)), (0, 3))
    inside = {
        topology.link_name(link)
        for link in range(len(topology.links))
        if link not in topology.network
    }
    assert inside == {f"{a}{b} -> {c}{b}" for b in (0, 1) for a, c in permutations(("gpu", "plx"))}


@pytest.mark.parametrize(
    ("preset", "settings", "most"),
    [("dgx-a100", {}, 1), ("dgx-a100", {"nics": "16"}, 2), ("gb200-nvl72", {"gpus": "8"}, 1)],
)
def test_nics_that_take_turns_are_counted(preset, settings, most):
    assert most_nics(api.load_topology(preset, nodes=2, settings=settings)) == most
