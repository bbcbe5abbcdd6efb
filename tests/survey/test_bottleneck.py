import json
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.model import Bound, FlowBound, Topology
from colsynth.survey import Bottleneck
from colsynth.survey.bottleneck import bottleneck_of
from tests.each import each
from tests.reference.graphs import random_topology


def solved(topology, collective, root=None):
    return best_optimum(api.make_problem(topology, collective, root))


def check_links(topology: Topology, cut: Bottleneck) -> None:
    """Every link leads the way that is said, and their bandwidths add up."""
    rank_names = {topology.nodes[node].name for node in topology.ranks}
    part = {name: number for number, names in enumerate(cut.sets) for name in names}
    for link in cut.links:
        source, target = link.split(" -> ")
        if {source, target} <= rank_names and cut.way == "between":
            assert part[source] != part[target]
        if cut.way == "out of":
            assert target not in part
        if cut.way == "into":
            assert source not in part
    held = {topology.link_name(i): x.bandwidth for i, x in enumerate(topology.links)}
    assert cut.bandwidth == sum(held[link] for link in cut.links)


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
@each("seed", range(20))
def test_cuts_are_told_by_their_smaller_side_and_prove_the_bound(seed, collective):
    topology = random_topology(seed, directed=seed % 2 == 0)
    bound = solved(topology, collective)
    cut = bottleneck_of(topology, bound)
    check_links(topology, cut)
    (side,) = cut.sets
    assert 0 < len(side) <= topology.size / 2
    roots = len(side)
    if (cut.way == "out of") != (collective == "allgather"):
        roots = topology.size - roots
    assert bound.algbw == topology.size * cut.bandwidth / roots


@pytest.mark.parametrize(("preset", "nodes"), [("dgx-a100", 2), ("mi250", 1), ("dgx-1v", 1)])
def test_an_allreduce_is_held_back_between_sets_of_gpus(preset, nodes):
    topology = api.load_topology(preset, nodes=nodes)
    bound = solved(topology, "allreduce")
    assert bound.limit.algbw == bound.algbw
    cut = bottleneck_of(topology, bound)
    assert cut.way == "between"
    check_links(topology, cut)
    assert cut.bandwidth == bound.limit.bandwidth
    assert bound.algbw == cut.bandwidth / (2 * (len(cut.sets) - 1))
    assert sum(map(len, cut.sets)) == topology.size


@pytest.mark.parametrize("seed", range(12))
def test_any_allreduce_has_a_bottleneck_with_links(seed):
    topology = random_topology(seed, directed=True)
    bound = solved(topology, "allreduce")
    cut = bottleneck_of(topology, bound)
    check_links(topology, cut)
    assert cut.links
    assert cut.bandwidth > 0


def test_flows_and_roots():
    topology = api.load_topology("dgx-a100", nodes=2)
    flows, tree = solved(topology, "alltoall"), solved(topology, "broadcast", 3)
    assert isinstance(flows, FlowBound)
    assert isinstance(tree, Bound)
    for bound in (flows, tree):
        check_links(topology, bottleneck_of(topology, bound))


def test_a_cut_that_allows_more_than_the_bound_says_so():
    topology = api.load_topology("kautz:2,2")
    bound = solved(topology, "alltoall")
    assert bottleneck_of(topology, bound).allows == bound.cut_algbw > bound.algbw


def test_bottlenecks_come_back_from_json_exactly():
    sets = ("a", "b"), ("c",)
    cut = Bottleneck("between", sets, ("a -> c",), Fraction(10**10, 7), Fraction(10**10, 3))
    assert Bottleneck.of_entry(json.loads(json.dumps(cut.entry()))) == cut
