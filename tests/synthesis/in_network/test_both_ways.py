"""Switches that multicast and reduce: bounds by hand, forests that branch at switches."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api, runtimes, topology
from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.errors import InfeasibleError, LimitError, VerificationError
from colsynth.model import Collective, Direction, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_in_network import PackInNetwork
from colsynth.verify import check_forest
from colsynth.verify.allreduce import check_rooted
from tests.each import each
from tests.reference.allreduce import best_rooted
from tests.reference.graphs import random_topology

GIGA = 10**9
TARGET = Target(runtimes.profile("msccl"))
BOTH = ("multicast", "reduce")


def solved(machine):
    problem = Problem(machine, Collective.ALLREDUCE)
    found = allreduce_bound(problem)
    if found.in_network is not None:
        check_rooted(problem, found.in_network)
        assert found.in_network.algbw >= found.algbw
    return found


def forest_of(machine, trees="auto"):
    forest = PackInNetwork(trees).run(Problem(machine, Collective.ALLREDUCE), TARGET)
    check_forest(forest)
    return forest


def star(gpus, capabilities, gb_per_s=100):
    nodes = [Node(f"g{i}", Kind.GPU, 0) for i in range(gpus)]
    nodes.append(Node("sw", Kind.SWITCH, 0, capabilities))
    ends = [pair for i in range(gpus) for pair in ((i, gpus), (gpus, i))]
    links = tuple(Link(a, b, Fraction(gb_per_s * GIGA)) for a, b in sorted(ends))
    return Topology("star", tuple(nodes), links, tuple(range(gpus)))


def capable_topology(seed, directed=False, most_gpus=4, switches=1):
    """A random topology whose switches can what dice say."""
    machine = random_topology(seed, most_gpus=most_gpus, switches=switches, directed=directed)
    rng = random.Random(seed)
    powers = (BOTH, BOTH[:1], BOTH[1:], ())
    nodes = tuple(
        x if x.kind is Kind.GPU else replace(x, capabilities=rng.choice(powers))
        for x in machine.nodes
    )
    return replace(machine, nodes=nodes)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_all_data_goes_up_once_and_down_once(gpus):
    """N GPUs at b GB/s: b in the network, N b / (2 (N - 1)) between GPUs."""
    found = solved(star(gpus, BOTH))
    assert found.algbw == Fraction(100 * gpus, 2 * (gpus - 1)) * GIGA
    assert found.in_network.algbw == 100 * GIGA


@pytest.mark.parametrize("only", BOTH)
def test_one_of_both_alone_gains_nothing_on_a_star(only):
    """Multicast leaves what enters GPUs as it is, reduction what leaves them."""
    found = solved(star(6, (only,)))
    assert found.in_network.algbw == found.algbw == 60 * GIGA


def test_without_such_switches_there_is_nothing_to_say():
    assert solved(star(4, ())).in_network is None
    with pytest.raises(InfeasibleError) as caught:
        forest_of(star(4, ()))
    assert caught.value.diagnostic.code == "CS324"


# One box: NVLink, 18 x 25 GB/s. Two: 8 x 50 GB/s of a box are its narrowest cut. Four: each
# box must receive 2 (k - 1) / k of the data, since the fabric between them only forwards.
H100 = [(1, 450), (2, 400), (4, Fraction(800, 3)), (8, Fraction(1600, 7))]


@pytest.mark.parametrize(("boxes", "gb_per_s"), H100)
def test_a_dgx_h100_is_bound_by_nvlink_then_by_its_nics(boxes, gb_per_s):
    found = solved(topology.load("dgx-h100", nodes=boxes))
    assert found.in_network.algbw == gb_per_s * GIGA


def test_measured_nvls_lies_between_both_bounds():
    """nccl-tests prints 477 to 489 GB/s busbw for 8 GPUs of H100 and H200 boxes.

    Forwarding alone allows 450: the very bandwidth of NVLink, as busbw is made for.
    """
    found = solved(topology.load("dgx-h100"))
    busbw = [float(x * 2 * 7 / 8 / GIGA) for x in (found.algbw, found.in_network.algbw)]
    assert busbw[0] == pytest.approx(450)
    assert all(busbw[0] < measured < busbw[1] for measured in (477, 489))


@pytest.mark.parametrize(("boxes", "gb_per_s"), H100[:3])
def test_forests_branch_at_switches_and_reach_the_bound(boxes, gb_per_s):
    machine = topology.load("dgx-h100", nodes=boxes)
    forest = forest_of(machine, "optimal")
    assert (forest.algbw, forest.gap) == (gb_per_s * GIGA, 0)
    assert all(len(t.edges) == machine.size - 1 for p in forest.phases for t in p.trees)
    with pytest.raises(VerificationError) as caught:
        check_forest(replace(forest, in_network=False))
    assert caught.value.diagnostic.code == "CS523"


def test_edges_part_at_capable_switches_alone():
    """The same trees on a switch that has lost a capability overload the roots' links."""
    machine = star(4, BOTH)
    forest = forest_of(machine)
    assert forest.algbw == 100 * GIGA
    nodes = (*machine.nodes[:-1], replace(machine.nodes[-1], capabilities=("multicast",)))
    lesser = replace(forest.problem, topology=replace(machine, nodes=nodes))
    with pytest.raises(VerificationError) as caught:
        check_forest(replace(forest, problem=lesser))
    assert "in phase" in caught.value.diagnostic.phrase


@pytest.mark.parametrize("directed", [False, True])
@each("seed", range(14))
def test_rates_equal_those_of_every_cut_in_fractions(seed, directed):
    machine = capable_topology(seed, directed)
    found = solved(machine)
    if found.in_network is not None:
        assert found.in_network.algbw == best_rooted(machine, in_network=True)


@each("seed", range(40))
def test_random_forests_hold_what_they_say(seed):
    machine = capable_topology(seed, seed % 2 == 1, most_gpus=8, switches=3)
    if solved(machine).in_network is None:
        return
    forest = forest_of(machine)
    assert forest.in_network
    assert forest.algbw <= forest.bound.algbw


def test_refunds_at_switches_that_do_more_than_forward_are_refused():
    machine = star(4, BOTH)
    problem = Problem(machine, Collective.ALLREDUCE)
    found = allreduce_bound(problem).in_network
    for way in Direction:
        with pytest.raises(VerificationError):
            check_rooted(problem, replace(found, potentials=((way, 4, 1),)))


def test_files_are_written_without_and_say_so():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    done = api.compile(problem, "msccl", mode="in-place")
    [note] = [note for note in done.notes if "multicast" in note]
    assert note.startswith("nvswitch0 can multicast and reduce, which a file for msccl cannot say")
    assert "450 GB/s, 75.00 % more" in note
    gather = api.make_problem(api.load_topology("dgx-h100"), "allgather")
    [note] = [n for n in api.compile(gather, "msccl", mode="in-place").notes if "multicast" in n]
    assert "reduce" not in note
    assert note.endswith("the bound is the same with it")
    plain = api.make_problem(api.load_topology("dgx-a100"), "allreduce")
    assert not any("multicast" in n for n in api.compile(plain, "msccl", mode="in-place").notes)


def test_trees_that_branch_at_switches_cannot_be_lowered():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    rest = "coalesce-chunks,order-transfers,place-slots,assign-threadblocks,spell-dependencies"
    text = f"pack-in-network,lower-forest,{rest}"
    with pytest.raises(LimitError) as caught:
        api.compile(problem, "msccl", passes=text)
    assert caught.value.diagnostic.code == "CS323"
