"""Allgather, reduce-scatter, broadcast and reduce over switches that can do more."""

from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api, runtimes, topology
from colsynth.errors import InfeasibleError, VerificationError
from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_in_network import PackInNetwork
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.each import each
from tests.synthesis.in_network.test_both_ways import capable_topology

GIGA = 10**9
TARGET = Target(runtimes.profile("msccl"))
ONE_WAY = {
    Collective.ALLGATHER: "multicast",
    Collective.BROADCAST: "multicast",
    Collective.REDUCE_SCATTER: "reduce",
    Collective.REDUCE: "reduce",
}


def problem_of(machine, collective):
    return Problem(machine, collective, 0 if collective.rooted else None)


def forest_of(problem, trees="auto"):
    forest = PackInNetwork(trees).run(problem, TARGET)
    check_forest(forest)
    return forest


def megaphone(capability, inwards):
    """g0 has one link of 10 GB/s to a switch, which has one of 10 to each of eight others.

    They answer over a ring that is wide enough; `inwards` turns every link around.
    """
    nodes = (*(Node(f"g{i}", Kind.GPU) for i in range(9)), Node("sw", Kind.SWITCH))
    nodes = (*nodes[:-1], replace(nodes[-1], capabilities=(capability,) if capability else ()))
    rates = {(0, 9): 10} | {(9, i): 10 for i in range(1, 9)} | {(1, 0): 80}
    rates |= {(i, i - 1): 80 for i in range(2, 9)}
    ends = {(b, a) if inwards else (a, b): rate for (a, b), rate in rates.items()}
    links = tuple(Link(a, b, Fraction(rate * GIGA)) for (a, b), rate in sorted(ends.items()))
    return Topology("megaphone", nodes, links, tuple(range(9)))


@pytest.mark.parametrize("collective", [Collective.BROADCAST, Collective.REDUCE])
def test_a_switch_with_one_link_in_serves_eight_out(collective):
    """10 GB/s for all at once, where forwarding hands the data on from GPU to GPU."""
    inwards = collective is Collective.REDUCE
    forest = forest_of(problem_of(megaphone(ONE_WAY[collective], inwards), collective), "1")
    assert (forest.algbw, forest.gap, forest.max_height) == (10 * GIGA, 0, 1)


@pytest.mark.parametrize("collective", list(ONE_WAY))
def test_cuts_bound_a_dgx_h100_as_before_and_are_reached(collective):
    problem = problem_of(topology.load("dgx-h100", nodes=2), collective)
    forest = forest_of(problem, "optimal")
    assert forest.gap == 0
    assert forest.bound == PackTrees("optimal").run(problem, TARGET).bound


@pytest.mark.parametrize("collective", list(ONE_WAY))
@each("seed", range(20))
def test_random_forests_hold_what_they_say(seed, collective):
    machine = capable_topology(seed, directed=seed % 2 == 1, most_gpus=8, switches=3)
    problem = problem_of(machine, collective)
    if not any(ONE_WAY[collective] in node.capabilities for node in machine.nodes):
        with pytest.raises(InfeasibleError) as caught:
            forest_of(problem)
        assert caught.value.diagnostic.code == "CS324"
        return
    assert forest_of(problem).in_network


def test_links_are_shared_up_to_where_edges_part():
    forest = forest_of(problem_of(megaphone("multicast", False), Collective.BROADCAST), "1")
    with pytest.raises(VerificationError) as caught:
        check_forest(replace(forest, in_network=False))
    assert "g0 -> sw carries 80000000000" in caught.value.diagnostic.phrase


def test_trees_for_programs_of_ones_own():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allgather")
    forest = api.pack(problem, in_network=True)
    assert forest.in_network
    assert forest.algbw == api.bound(problem).algbw
