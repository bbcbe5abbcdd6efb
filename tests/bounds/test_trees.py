"""The bound: published figures, brute force over cuts, refusals."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import topology
from colsynth.bounds.trees import bound
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Direction, Kind, Link, Node, Problem, Topology
from colsynth.model.problem import PHASES
from tests.each import each
from tests.reference.flows import least_cut_ratio
from tests.reference.graphs import random_topology

GIGA = 10**9

# Recomputed by the authors' code for their own models (field survey, section A.1 and E).
PUBLISHED = [
    ("dgx-a100", 1, Fraction(2400, 7), 1),
    ("dgx-a100", 2, Fraction(1040, 3), 13),
    ("dgx-a100", 4, Fraction(800, 3), 1),
    ("dgx-a100", 8, Fraction(1600, 7), 1),
    ("mi250", 1, Fraction(2400, 7), 3),
    ("mi250", 2, Fraction(5312, 15), 83),
    ("mi250", 4, Fraction(1024, 3), 8),
    ("ndv2", 2, Fraction(25), 1),
]


@pytest.mark.parametrize(("name", "boxes", "gb_per_s", "trees"), PUBLISHED)
def test_published_optima(name, boxes, gb_per_s, trees):
    machine = topology.load(name, nodes=boxes)
    for collective in (Collective.ALLGATHER, Collective.REDUCE_SCATTER):
        found = bound(Problem(machine, collective))
        assert found.algbw == gb_per_s * GIGA
        assert found.trees_per_root == trees
    assert bound(Problem(machine, Collective.ALLREDUCE)).algbw == gb_per_s * GIGA / 2


@pytest.mark.parametrize("directed", [False, True])
@each("seed", range(40))
def test_rate_and_cut_agree_with_every_cut(seed, directed):
    machine = random_topology(seed, most_gpus=6, switches=2, directed=directed)
    for collective, directions in PHASES.items():
        problem = Problem(machine, collective, 0 if collective.rooted else None)
        found = bound(problem)
        for direction, rate, cut in zip(directions, found.rates, found.cuts, strict=True):
            assert cut.direction is direction
            assert rate / len(problem.roots) == least_cut_ratio(problem, direction)
            inside = len(set(cut.gpus) & set(problem.roots))
            assert rate == len(problem.roots) * cut.bandwidth / inside
            assert len(cut.gpus) < machine.size


def test_reduce_scatter_is_bound_by_what_flows_in():
    nodes = (Node("a", Kind.GPU), Node("b", Kind.GPU))
    links = (Link(0, 1, Fraction(3 * GIGA)), Link(1, 0, Fraction(5 * GIGA)))
    machine = Topology("pair", nodes, links, (0, 1))
    gather = bound(Problem(machine, Collective.BROADCAST, 0))
    gathered = bound(Problem(machine, Collective.REDUCE, 0))
    assert (gather.algbw, gathered.algbw) == (3 * GIGA, 5 * GIGA)
    assert gathered.cuts[0].direction is Direction.IN


def test_unreachable_gpus_are_named():
    nodes = tuple(Node(name, Kind.GPU) for name in "abcd")
    links = tuple(Link(x, y, Fraction(GIGA)) for x, y in ((0, 1), (1, 0), (2, 3), (3, 2)))
    machine = Topology("islands", nodes, links, (0, 1, 2, 3))
    with pytest.raises(InfeasibleError) as caught:
        bound(Problem(machine, Collective.ALLGATHER))
    assert "from a to c" in caught.value.diagnostic.phrase or (
        "from c to a" in caught.value.diagnostic.phrase
    )


def test_bandwidths_without_a_common_unit_are_refused_by_name():
    machine = topology.load("ring:4")
    links = tuple(
        replace(link, bandwidth=Fraction(10**18 + 7919 * i, 10**9 + 9 + i))
        for i, link in enumerate(machine.links)
    )
    with pytest.raises(InputError) as caught:
        bound(Problem(replace(machine, links=links), Collective.ALLGATHER))
    assert caught.value.diagnostic.code == "CS301"


def test_trees_cannot_serve_alltoall():
    with pytest.raises(InputError) as caught:
        bound(Problem(topology.load("ring:4"), Collective.ALLTOALL))
    assert caught.value.diagnostic.code == "CS303"


def test_one_gpu_has_nobody_to_talk_to():
    alone = Topology("alone", (Node("a", Kind.GPU),), (), (0,))
    with pytest.raises(InputError) as caught:
        bound(Problem(alone, Collective.ALLGATHER))
    assert caught.value.diagnostic.code == "CS117"


@pytest.mark.parametrize(
    "asked", [{"collective": Collective.SCATTER}, {"groups": ((0, 1), (2, 3))}], ids=str
)
def test_what_trees_cannot_serve_is_sent_to_ten(asked):
    problem = replace(Problem(topology.load("clique:4"), Collective.ALLGATHER), **asked)
    with pytest.raises(InputError, match="'-a ten' does") as caught:
        bound(problem)
    assert caught.value.diagnostic.code == "CS303"


@pytest.mark.parametrize("collective", [Collective.ALLGATHER, Collective.REDUCE_SCATTER])
@each("seed", range(30))
def test_shards_weigh_as_much_as_they_hold(seed, collective):
    """Against every cut; some shards are empty."""
    rng = random.Random(seed)
    machine = random_topology(seed, most_gpus=6, switches=2, directed=seed % 2 == 0)
    shards = [rng.choice((0, 1, 1, 2, 3, 7)) for _ in machine.ranks]
    shards[rng.randrange(machine.size)] = 5
    problem = Problem(machine, collective, shards=tuple(shards))
    found = bound(problem)
    (direction,) = PHASES[collective]
    assert found.algbw / sum(shards) == least_cut_ratio(problem, direction)
    (cut,) = found.cuts
    assert found.algbw == sum(shards) * cut.bandwidth / sum(shards[rank] for rank in cut.gpus)


def test_equal_shards_change_nothing():
    machine = topology.load("dgx-a100", nodes=2)
    plain = bound(Problem(machine, Collective.ALLGATHER))
    assert bound(Problem(machine, Collective.ALLGATHER, shards=(1,) * 16)) == plain


def test_one_shard_alone_is_a_broadcast():
    machine = topology.load("mi250")
    shards = tuple(int(rank == 3) for rank in range(16))
    alone = bound(Problem(machine, Collective.ALLGATHER, shards=shards))
    assert alone == bound(Problem(machine, Collective.BROADCAST, 3))
