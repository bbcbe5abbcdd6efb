"""Routes: through switches alone, in the box where that suffices, more only for bandwidth."""

import networkx as nx
import pytest

from colsynth.cost.routes import MOST_ROUTES, routes
from colsynth.model import Kind
from colsynth.topology.load import load
from tests.each import each
from tests.synthesis.timed.problems import both_ways, network, roads, wild_problem


def routes_of(topology, groups=()):
    """Return the routes of each pair as names of nodes."""
    found = {}
    names = [node.name for node in topology.nodes]
    for source, target, route in routes(topology, groups):
        ends = names[topology.ranks[source]], names[topology.ranks[target]]
        links = [topology.links[i] for i in route]
        path = [names[links[0].source], *(names[link.target] for link in links)]
        assert (path[0], path[-1]) == ends
        found.setdefault(ends, []).append(" ".join(path))
    return found


@each("seed", range(100))
def test_routes_are_paths_through_forwarders_and_join_what_links_join(seed):
    problem = wild_problem(seed)
    topology = problem.topology
    kinds = {node.name: node.kind for node in topology.nodes}
    gpus = [node.name for node in topology.nodes if node.kind is Kind.GPU]
    groups = () if problem.transit else problem.groups
    found = routes_of(topology, groups)
    joined = nx.DiGraph()
    joined.add_nodes_from(gpus)
    for ends, paths in found.items():
        assert len(set(paths)) == len(paths) <= MOST_ROUTES
        for path in paths:
            inner = path.split()[1:-1]
            assert len(set(inner)) == len(inner)
            assert all(kinds[name] is not Kind.GPU for name in inner)
        joined.add_edge(*ends)
    for members in problem.members:
        inside = joined.subgraph([gpus[rank] for rank in members])
        ways = roads(problem, members)
        for a in members:
            for b in members:
                there = nx.has_path(ways, topology.ranks[a], topology.ranks[b])
                over = inside if groups else joined
                assert nx.has_path(over, gpus[a], gpus[b]) == there


@pytest.mark.parametrize("spec", ["dgx-a100", "dgx2", "ndv2", "mi250"])
def test_neither_the_fabric_nor_nics_are_used_inside_a_box(spec):
    topology = load(spec, nodes=2)
    boxes = {node.name: node.box for node in topology.nodes}
    nics = {node.name for node in topology.nodes if node.kind is Kind.NIC}
    found = routes_of(topology)
    assert found
    for ends, paths in found.items():
        within = boxes[ends[0]] == boxes[ends[1]]
        for path in paths:
            assert (len({boxes[name] for name in path.split()}) == 1) == within
            assert not within or nics.isdisjoint(path.split())


def test_neighbours_of_neighbours_in_a_box_are_not_joined_over_the_fabric():
    ring = both_ways("a b", "b c", "c d", "a d", "a s", "b s", "c s", "d s")
    found = routes_of(network(ring, boxes=("a b c d",)))
    assert found["a", "b"] == ["a b"]
    assert ("a", "c") not in found


def test_a_box_that_joins_two_gpus_one_way_only_leaves_the_fabric_to_both():
    links = {"a b": 1} | both_ways("a s", "b s")
    found = routes_of(network(links, boxes=("a b",)))
    assert found["b", "a"] == ["b s a"]
    assert found["a", "b"] == ["a b", "a s b"]


def test_a_group_that_its_box_joins_through_others_only_takes_the_fabric():
    ring = both_ways("a b", "b c", "c d", "a d", "a s", "b s", "c s", "d s")
    topology = network(ring, boxes=("a b c d",))
    found = routes_of(topology, groups=((0, 2), (1,)))
    assert found["a", "c"] == ["a s c"]
    assert found["c", "a"] == ["c s a"]


def test_a_short_cut_over_the_fabric_does_not_hide_the_way_in_the_box():
    links = both_ways("a s0", "s0 s1", "s1 s2", "s2 b", "a s9", "s9 s2")
    found = routes_of(network(links, boxes=("a s0 s1 s2 b",)))
    assert found["a", "b"] == ["a s0 s1 s2 b"]


def test_longer_routes_are_kept_where_they_add_bandwidth():
    direct = {"a b": 1}
    apart = both_ways("a s0", "s0 b", "a s1", "s1 s2", "s2 b")
    assert routes_of(network(direct | apart))["a", "b"] == ["a b", "a s0 b", "a s1 s2 b"]
    # The last link is that of the shorter route.
    shared = both_ways("a s0", "s0 b", "a s1", "s1 s0")
    assert routes_of(network(direct | shared))["a", "b"] == ["a b", "a s0 b"]


def test_at_most_so_many_routes_are_kept():
    links = both_ways(*(f"{end} s{i}" for end in "ab" for i in range(7)))
    assert len(routes_of(network(links))["a", "b"]) == MOST_ROUTES


def test_equal_spines_are_used_evenly():
    gpus, spines = "abcdefgh", [f"sp{i}" for i in range(8)]
    links = both_ways(*(f"{gpu} {spine}" for gpu in gpus for spine in spines))
    found = routes_of(network(links))
    uses = dict.fromkeys(spines, 0)
    for paths in found.values():
        for path in paths:
            uses[path.split()[1]] += 1
    assert set(uses.values()) == {8 * 7 * MOST_ROUTES // len(spines)}
