"""Forests: the exact optimum on the presets, the best rate for K, low trees."""

from fractions import Fraction

import pytest

from colsynth import runtimes, topology
from colsynth.bounds.trees import bound
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Direction, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest.rate import TOLERANCE, algbw_of, candidates
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from tests.each import each
from tests.reference.graphs import forwarding_topology, three_tiers

GIGA = 10**9
TARGET = Target(runtimes.profile("msccl"))


def forest_of(problem, trees):
    forest = PackTrees(trees).run(problem, TARGET)
    check_forest(forest)
    return forest


@pytest.mark.parametrize(
    ("name", "boxes"),
    [("dgx-a100", 1), ("dgx-a100", 2), ("dgx-a100", 4), ("mi250", 1), ("mi250", 2)],
)
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_optimal_forests_reach_the_bound_exactly(name, boxes, collective):
    problem = Problem(topology.load(name, nodes=boxes), Collective(collective))
    forest = forest_of(problem, "optimal")
    assert forest.gap == 0
    assert forest.trees_per_root <= forest.bound.trees_per_root


# ForestColl's formula gives 8 and 83: so many leave no fraction of a tree on any link.
@pytest.mark.parametrize(("boxes", "fewest"), [(4, 3), (2, 83), (8, 1)])
def test_optimal_takes_the_fewest_trees_that_reach_the_optimum(boxes, fewest):
    problem = Problem(topology.load("mi250", nodes=boxes), Collective.ALLGATHER)
    assert forest_of(problem, "optimal").trees_per_root == fewest
    optimum = bound(problem)
    least = next(k for k in range(1, 84) if algbw_of(problem, optimum, k) == optimum.algbw)
    assert least == fewest


# Recomputed by the authors' code, field survey A.1: GB/s for k = 1..5.
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        (
            "mi250",
            (320, Fraction(1024, 3), Fraction(2400, 7), Fraction(1024, 3), Fraction(8000, 23)),
        ),
        ("dgx-a100", (Fraction(2400, 7),) * 5),
    ],
)
def test_best_rate_for_a_fixed_number_of_trees(name, figures):
    problem = Problem(topology.load(name, nodes=2), Collective.ALLGATHER)
    for trees, gb_per_s in enumerate(figures, start=1):
        forest = forest_of(problem, str(trees))
        assert forest.algbw == gb_per_s * GIGA
        assert forest.algbw == algbw_of(problem, forest.bound, trees)


def test_auto_takes_the_fewest_trees_within_tolerance():
    problem = Problem(topology.load("mi250", nodes=2), Collective.ALLGATHER)
    first, *rest = candidates(problem)
    optimum = bound(problem)
    enough = optimum.algbw * (1 - TOLERANCE)
    assert algbw_of(problem, optimum, first) >= enough
    assert all(algbw_of(problem, optimum, k) < enough for k in range(1, first))
    assert sorted(rest) == list(range(1, first))
    assert rest == sorted(rest, key=lambda k: (-algbw_of(problem, optimum, k), k))
    assert forest_of(problem, "auto").trees_per_root == first


def test_trees_are_as_low_as_rails_allow():
    """Root to its rail peers, a star inside each box: nothing is lower on this machine."""
    problem = Problem(topology.load("dgx-a100", nodes=4), Collective.ALLGATHER)
    assert forest_of(problem, "optimal").max_height == 2


@pytest.mark.parametrize(("planes", "share"), [(1, 900), (2, 450), (18, 50)])
def test_parallel_switch_planes_are_as_good_as_one(planes, share):
    """36 GPUs on switches that add up to the same bandwidth: a star, at the optimum."""
    gpus = 36
    nodes = [Node(f"g{i}", Kind.GPU, 0) for i in range(gpus)]
    nodes += [Node(f"sw{i}", Kind.SWITCH, 0) for i in range(planes)]
    pairs = [(g, gpus + p) for g in range(gpus) for p in range(planes)]
    links = sorted((ends for a, b in pairs for ends in ((a, b), (b, a))))
    machine = Topology(
        "planes",
        tuple(nodes),
        tuple(Link(a, b, Fraction(share * GIGA)) for a, b in links),
        tuple(range(gpus)),
    )
    problem = Problem(machine, Collective.ALLGATHER)
    assert forest_of(problem, "optimal").gap == 0
    assert forest_of(problem, "1").max_height == 1


def test_inward_routes_follow_the_data():
    machine = topology.load("dgx-a100", nodes=2)
    forest = forest_of(Problem(machine, Collective.ALLREDUCE), "auto")
    inward, outward = forest.phases
    assert (inward.direction, outward.direction) == (Direction.IN, Direction.OUT)
    edge = inward.trees[0].edges[-1]
    assert machine.links[edge.route[0]].source == machine.ranks[edge.child]
    assert machine.links[edge.route[-1]].target == machine.ranks[edge.parent]


def test_phases_of_a_lopsided_topology_have_forests_of_their_own():
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(3))
    rates = {(0, 1): 4, (1, 2): 4, (2, 0): 4, (1, 0): 1, (2, 1): 2, (0, 2): 1}
    links = tuple(Link(a, b, Fraction(c * GIGA)) for (a, b), c in sorted(rates.items()))
    problem = Problem(Topology("lopsided", nodes, links, (0, 1, 2)), Collective.ALLREDUCE)
    forest = forest_of(problem, "optimal")
    assert forest.gap == 0
    assert forest.phases[0].trees != forest.phases[1].trees


def _funnel(ingress, egress):
    """A switch that one GPU feeds at `ingress` and that feeds two others at `egress`."""
    nodes = (*(Node(f"g{i}", Kind.GPU) for i in range(3)), Node("sw", Kind.SWITCH))
    rates = {(0, 3): ingress, (3, 1): egress, (3, 2): egress, (1, 0): 9, (2, 0): 9}
    links = tuple(Link(a, b, Fraction(c * GIGA)) for (a, b), c in sorted(rates.items()))
    return Problem(Topology("funnel", nodes, links, (0, 1, 2)), Collective.BROADCAST, 0)


def test_a_switch_cannot_multiply_data_and_the_gap_says_so():
    """Cuts allow 4 GB/s, but two copies must share the 4 GB/s that enter the switch."""
    forest = forest_of(_funnel(4, 4), "optimal")
    assert forest.bound.algbw == 4 * GIGA
    assert forest.algbw == 2 * GIGA
    assert forest.gap == 1


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "broadcast"])
@each("seed", range(40))
def test_switches_that_pass_on_all_they_receive_cost_nothing(seed, collective):
    kind = Collective(collective)
    forest = forest_of(
        Problem(forwarding_topology(seed), kind, 0 if kind.rooted else None), "optimal"
    )
    assert forest.gap == 0


def test_routes_through_several_tiers_add_up_instead_of_multiplying():
    """Each switch removed cuts routes only where two shares meet."""
    problem = Problem(three_tiers(), Collective.ALLGATHER)
    forest = forest_of(problem, "optimal")
    pairs = problem.topology.size * (problem.topology.size - 1)
    assert forest.gap == 0
    assert len(forest.phases[0].trees) < 2 * pairs


def test_rounding_to_few_trees_does_not_starve_switches():
    """Whole trees leave switches lopsided here: cuts would allow 3/4 of the bound."""
    problem = Problem(forwarding_topology(123), Collective.ALLGATHER)
    forest = forest_of(problem, "2")
    assert algbw_of(problem, forest.bound, 2) == forest.bound.algbw * 3 / 4
    assert forest.algbw == forest.bound.algbw * 5 / 8


def test_what_refinement_cannot_count_is_refused_by_name():
    """A lopsided switch is cut 16 times finer, which 64 bits must still hold."""
    wide = 2**60 - 1
    rates = {(0, 3): wide, (3, 1): wide, (3, 2): wide - 6, (1, 2): 5, (2, 1): 3}
    nodes = (*(Node(f"g{i}", Kind.GPU) for i in range(3)), Node("sw", Kind.SWITCH))
    links = tuple(Link(a, b, Fraction(c)) for (a, b), c in sorted(rates.items()))
    problem = Problem(Topology("wide", nodes, links, (0, 1, 2)), Collective.BROADCAST, 0)
    with pytest.raises(InputError) as caught:
        forest_of(problem, "optimal")
    assert caught.value.diagnostic.code == "CS301"


def test_a_number_of_trees_must_be_one():
    problem = Problem(topology.load("ring:4"), Collective.ALLGATHER)
    for text in ("many", "0", "-1", "1.5"):
        with pytest.raises(InputError):
            PackTrees(text).run(problem, TARGET)


def test_equal_inputs_give_equal_forests():
    problem = Problem(topology.load("mi250", nodes=2), Collective.ALLGATHER)
    assert forest_of(problem, "5") == forest_of(problem, "5")


def test_islands_are_refused():
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(4))
    pairs = ((0, 1), (1, 0), (2, 3), (3, 2))
    links = tuple(Link(a, b, Fraction(GIGA)) for a, b in pairs)
    with pytest.raises(InfeasibleError):
        PackTrees().run(
            Problem(Topology("islands", nodes, links, (0, 1, 2, 3)), Collective.ALLGATHER), TARGET
        )
