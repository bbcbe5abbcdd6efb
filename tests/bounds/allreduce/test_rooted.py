"""What free roots can gain, and what no allreduce can beat."""

from fractions import Fraction

import pytest

from colsynth import api, topology
from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Direction, Kind, Link, Node, Problem, Topology
from colsynth.verify.allreduce import check_limit, check_rooted
from tests.each import each
from tests.reference.allreduce import best_rooted, fewest_messages
from tests.reference.graphs import forwarding_topology, random_topology

GIGA = 10**9


def solved(machine):
    problem = Problem(machine, Collective.ALLREDUCE)
    found = allreduce_bound(problem)
    check_limit(problem, found.limit)
    if found.rooted is not None:
        check_rooted(problem, found.rooted)
    return found


def graph(name, gpus, switches, rates):
    nodes = [Node(f"g{i}", Kind.GPU) for i in range(gpus)]
    nodes += [Node(f"s{i}", Kind.SWITCH) for i in range(switches)]
    links = tuple(Link(a, b, Fraction(c) * GIGA) for (a, b), c in sorted(rates.items()))
    return Topology(name, tuple(nodes), links, tuple(range(gpus)))


def both_ways(rates):
    return rates | {(b, a): rate for (a, b), rate in rates.items()}


# What is left, GB/s: equal roots, free roots. Two DGX A100 reach 520/3 where all is well.
BROKEN = [
    ("dgx-a100", 2, {"nics": ["nic0.3"]}, 160, Fraction(1375, 8)),
    ("dgx-a100", 4, {"nics": ["nic0.3"]}, Fraction(350, 3), Fraction(775, 6)),
    ("torus:4x4", None, {"links": ["gpu0-gpu1"]}, 80, Fraction(310, 3)),
    ("mi250", 1, {"gpus": ["3"]}, Fraction(1125, 14), 150),
]


@pytest.mark.parametrize(("name", "boxes", "broken", "equal", "free"), BROKEN)
def test_broken_machines_lose_less_with_free_roots(name, boxes, broken, equal, free):
    left = api.damage(topology.load(name, nodes=boxes), **broken).topology
    found = solved(left)
    assert found.composition.algbw == equal * GIGA
    assert found.algbw == found.limit.algbw == free * GIGA


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_everybody_knows_everything_after_two_messages_less_than_twice_their_number(parts):
    """The counting behind partition bounds, tried out on all sequences of messages."""
    assert fewest_messages(parts) == 2 * (parts - 1)


def test_a_star_of_gpus_has_its_root_in_the_middle():
    """Four leaves at 1 GB/s: all of it through the centre, nothing beats a leaf's link."""
    found = solved(graph("star", 5, 0, both_ways({(0, i): 1 for i in range(1, 5)})))
    assert found.composition.algbw == Fraction(5, 8) * GIGA
    assert found.rooted.algbw == found.limit.algbw == GIGA
    assert found.gain == Fraction(3, 5)


def test_a_ring_gains_nothing():
    found = solved(topology.load("ring:6"))
    assert found.rooted is None
    assert found.algbw == found.limit.algbw == Fraction(6, 10) * 2 * 50 * GIGA
    assert len(found.limit.parts) == 6


@pytest.mark.parametrize(
    ("side", "gb_per_s"), [(2, Fraction(200, 3)), (3, 75), (4, 80), (8, Fraction(800, 9))]
)
def test_meshes_reach_the_strength_of_the_graph(side, gb_per_s):
    """Links over GPUs less one, 50 GB/s each way: trees without a common link."""
    links = 2 * side * (side - 1)
    assert gb_per_s == Fraction(50 * links, side**2 - 1)
    found = solved(topology.load(f"mesh:{side}x{side}"))
    assert found.algbw == found.limit.algbw == gb_per_s * GIGA


def test_lopsided_nics_of_a_dgx2_leave_room_for_free_roots():
    """Odd GPUs send to the fabric and even ones receive: 137.5 out, 125 in, or the reverse."""
    found = solved(topology.load("dgx2", nodes=2))
    assert found.composition.algbw == Fraction(2000, 31) * GIGA
    total = 32 * 125 + 16 * Fraction(25, 2)
    assert found.algbw == found.limit.algbw == total / 62 * GIGA


@pytest.mark.parametrize(
    ("name", "boxes"), [("dgx-a100", 1), ("dgx-a100", 2), ("dgx-a100", 4), ("ndv2", 2)]
)
def test_machines_of_equal_gpus_cannot_be_beaten(name, boxes):
    found = solved(topology.load(name, nodes=boxes))
    assert found.rooted is None
    assert found.limit.algbw == found.composition.algbw


def test_the_mi250_gains_nothing_although_no_simple_cut_says_so():
    found = solved(topology.load("mi250", nodes=2))
    assert found.rooted is not None
    assert found.gain == 0
    assert found.limit.algbw == found.algbw


@pytest.mark.parametrize("directed", [False, True])
@each("seed", range(14))
def test_rates_equal_those_of_every_cut_in_fractions(seed, directed):
    machine = random_topology(seed, most_gpus=4, switches=1, directed=directed)
    found = solved(machine)
    reference = best_rooted(machine)
    if found.rooted is None:
        assert found.composition.algbw == found.limit.algbw
        assert reference <= found.limit.algbw
    else:
        assert found.rooted.algbw == reference


@each("seed", range(60))
def test_bounds_are_in_order_and_proven(seed):
    if seed % 3 == 0:
        machine = forwarding_topology(seed)
    else:
        machine = random_topology(seed, most_gpus=12, directed=seed % 3 == 1)
    found = solved(machine)
    assert found.algbw <= found.limit.algbw
    if found.rooted is not None:
        assert found.rooted.reached == pytest.approx(float(found.rooted.algbw), rel=1e-6)


def test_a_switch_only_forwards():
    """Cuts allow three GPUs behind 6 in and 3 out nothing that the switch cannot pair."""
    rates = {(0, 3): 3, (3, 1): 3, (3, 2): 3, (1, 0): 9, (2, 0): 9, (0, 1): 1, (0, 2): 1}
    machine = graph("funnel", 3, 1, rates)
    found = solved(machine)
    assert found.rooted.algbw == best_rooted(machine)
    assert any(way in Direction for way, _, _ in found.rooted.potentials)


def test_other_collectives_and_islands_are_refused():
    machine = topology.load("ring:4")
    with pytest.raises(InputError) as caught:
        allreduce_bound(Problem(machine, Collective.ALLGATHER))
    assert caught.value.diagnostic.code == "CS321"
    islands = graph("islands", 4, 0, both_ways({(0, 1): 1, (2, 3): 1}))
    with pytest.raises(InfeasibleError):
        allreduce_bound(Problem(islands, Collective.ALLREDUCE))
