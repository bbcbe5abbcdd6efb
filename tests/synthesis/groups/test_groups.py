"""Bounds and forests of process groups: by hand, on presets, and their allreduce."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import topology
from colsynth.bounds.optimum import allreduce_optimum, optimum
from colsynth.errors import InfeasibleError, InputError, VerificationError
from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from colsynth.synthesis.pack_in_network import PackInNetwork
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest
from colsynth.verify.allreduce import check_limit, check_rooted
from tests.each import each
from tests.reference.allreduce import best_rooted
from tests.reference.graphs import random_topology

GIGA = 10**9
BOTH = ("multicast", "reduce")


def star_of_gpus(arms, gb_per_s=10):
    """GPU 0 in the middle of others, which have no other link."""
    nodes = tuple(Node(f"gpu{i}", Kind.GPU, 0) for i in range(arms + 1))
    ends = sorted(pair for i in range(1, arms + 1) for pair in ((0, i), (i, 0)))
    links = tuple(Link(a, b, Fraction(gb_per_s * GIGA)) for a, b in ends)
    return Topology("arms", nodes, links, tuple(range(arms + 1)))


def group_of(machine, collective, members, transit=False, **more):
    return Problem(machine, Collective(collective), groups=(members,), transit=transit, **more)


def test_arms_of_a_star_need_the_gpu_in_the_middle(target):
    machine = star_of_gpus(4)
    alone = group_of(machine, "allgather", (1, 2, 3, 4))
    with pytest.raises(InfeasibleError, match="no data can pass from gpu") as caught:
        optimum(alone)
    assert "--transit" in caught.value.diagnostic.help
    helped = replace(alone, transit=True)
    found = optimum(helped)
    # Three shards of four must enter every arm.
    assert found.algbw == Fraction(10 * GIGA * 4, 3)
    forest = PackTrees("optimal").run(helped, target)
    check_forest(forest)
    assert forest.algbw == found.algbw
    assert all((tree.root, 0) == (e.parent, e.child) for t in forest.phases[0].trees
               for tree, e in [(t, t.edges[0])])  # fmt: skip


def test_relays_copy_what_they_receive_once(target):
    """A broadcast from one arm enters the middle once and leaves it on all others."""
    problem = group_of(star_of_gpus(3), "broadcast", (1, 2, 3), True, root=0)
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert forest.algbw == optimum(problem).algbw == 10 * GIGA


def test_relays_that_add_up_double_an_allreduce(target):
    """All data goes up an arm once and comes down once, instead of (n - 1) / n of it twice."""
    problem = group_of(star_of_gpus(4), "allreduce", (1, 2, 3, 4), True)
    found = allreduce_optimum(problem)
    check_rooted(problem, found.rooted)
    check_limit(problem, found.limit)
    assert found.composition.algbw == Fraction(10 * GIGA * 4, 6)
    assert found.algbw == found.limit.algbw == 10 * GIGA
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert (forest.algbw, forest.gap, forest.in_network) == (10 * GIGA, 0, False)


def test_the_order_of_members_is_theirs(target):
    machine = topology.load("dgx-a100")
    problem = group_of(machine, "reduce", (5, 2, 7), root=2)
    assert problem.roots == (7,)
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert {tree.root for tree in forest.phases[0].trees} == {7}


@pytest.mark.parametrize(
    ("preset", "members", "transit", "gb_per_s"),
    [
        ("dgx-a100", range(4), False, 400),
        ("mi250", range(8), False, 200),
        ("mi250", range(8), True, 400),
    ],
)
def test_groups_of_presets_reach_their_bounds(preset, members, transit, gb_per_s, target):
    problem = group_of(topology.load(preset), "allgather", tuple(members), transit)
    forest = PackTrees("optimal").run(problem, target)
    check_forest(forest)
    assert forest.algbw == optimum(problem).algbw == gb_per_s * GIGA


def test_a_group_in_a_box_uses_what_is_in_the_box(tmp_path):
    """A NIC that two GPUs share joins them too; another box and the fabric add nothing."""
    inside = "  - {name: a, kind: gpu, box: 0}\n  - {name: b, kind: gpu, box: 0}\n"
    inside += "  - {name: n, kind: nic, box: 0}\n"
    outside = "  - {name: c, kind: gpu, box: 1}\n  - {name: leaf, kind: switch}\n"
    near = "  - {from: a, to: b, bandwidth: 10 GB/s}\n  - {from: a, to: n, bandwidth: 50 GB/s}\n"
    near += "  - {from: b, to: n, bandwidth: 50 GB/s}\n"
    far = "".join(f"  - {{from: {x}, to: leaf, bandwidth: 50 GB/s}}\n" for x in "abcn")
    found = []
    for nodes, links in ((inside, near), (inside + outside, near + far)):
        path = tmp_path / f"{len(nodes)}.yaml"
        path.write_text(f"version: 1\nname: box\nnodes:\n{nodes}links:\n{links}")
        machine = topology.load(str(path))
        groups = () if machine.size == 2 else ((0, 1),)
        found.append(optimum(Problem(machine, Collective.ALLGATHER, groups=groups)).algbw)
    assert found == [120 * 10**9] * 2


def test_groups_in_boxes_of_their_own_do_not_disturb_each_other(target):
    machine = topology.load("dgx-a100", nodes=2)
    halves = (tuple(range(8)), tuple(range(8, 16)))
    both = Problem(machine, Collective.ALLREDUCE, groups=halves)
    one = replace(both, groups=halves[:1])
    assert optimum(both).algbw == optimum(one).algbw
    forest = PackTrees("optimal").run(both, target)
    check_forest(forest)
    assert forest.gap == 0


def test_groups_that_share_a_link_share_its_bandwidth(target):
    """Two switches with two GPUs each; both pairs go over the link between the switches."""
    nodes = (*(Node(f"gpu{i}", Kind.GPU, i // 2) for i in range(4)), Node("a", Kind.SWITCH, 0),
             Node("b", Kind.SWITCH, 1))  # fmt: skip
    ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
    both = sorted([*ends, *((b, a) for a, b in ends)])
    links = tuple(Link(a, b, Fraction(12 * GIGA)) for a, b in both)
    pairs = Problem(Topology("dumbbell", nodes, links, (0, 1, 2, 3)), Collective.ALLGATHER,
                    groups=((0, 2), (1, 3)))  # fmt: skip
    forest = PackTrees("optimal").run(pairs, target)
    check_forest(forest)
    assert forest.algbw == optimum(pairs).algbw == 12 * GIGA
    assert optimum(replace(pairs, groups=((0, 2),))).algbw == 24 * GIGA


def test_groups_on_rails_do_not_disturb_each_other(target):
    """Rank 0 with 8 and 1 with 9: every GPU has a NIC of its own."""
    machine = topology.load("dgx-a100", nodes=2)
    pairs = Problem(machine, Collective.ALLGATHER, groups=((0, 8), (1, 9)))
    forest = PackTrees("optimal").run(pairs, target)
    check_forest(forest)
    alone = optimum(replace(pairs, groups=((0, 8),))).algbw
    assert forest.algbw == optimum(pairs).algbw == alone


def test_trees_in_the_network_are_for_one_group(target):
    machine = topology.load("dgx-h100")
    several = Problem(machine, Collective.ALLGATHER, groups=((0, 1), (2, 3)))
    with pytest.raises(InputError, match="one process group at a time") as caught:
        PackInNetwork().run(several, target)
    assert caught.value.diagnostic.code == "CS303"


def test_pairs_of_gpus_have_no_bound_for_several_groups():
    machine = topology.load("clique:4")
    several = Problem(machine, Collective.ALLTOALL, groups=((0, 1), (2, 3)))
    with pytest.raises(InputError) as caught:
        optimum(several)
    assert caught.value.diagnostic.code == "CS306"
    with pytest.raises(InputError) as caught:
        allreduce_optimum(replace(several, collective=Collective.ALLREDUCE))
    assert caught.value.diagnostic.code == "CS303"


@pytest.mark.parametrize("collective", ["alltoall", "scatter", "gather"])
def test_flows_of_a_group_are_those_of_its_own_machine(collective):
    """Half of a clique is a clique; with transit the other half helps."""
    root = 0 if Collective(collective).rooted else None
    machine = topology.load("clique:6")
    half = group_of(machine, collective, (1, 3, 5), root=root)
    small = Problem(topology.load("clique:3"), Collective(collective), root)
    assert optimum(half).algbw == optimum(small).algbw
    helped = optimum(replace(half, transit=True))
    assert helped.algbw > optimum(half).algbw
    names = {machine.link_name(link) for link in helped.cut.links}
    assert helped.cut.bandwidth == sum(
        link.bandwidth for i, link in enumerate(machine.links) if machine.link_name(i) in names
    )


@pytest.mark.parametrize("capable", [False, True])
@each("seed", [*range(1, 9), 10, 11, 13])
def test_allreduce_with_relays_equals_every_cut_in_fractions(seed, capable):
    """On machines of few cuts: on those of the other seeds, listing all takes five seconds."""
    machine = random_topology(seed, most_gpus=5, switches=1, directed=seed % 2 == 0)
    if machine.size < 3:
        return
    if capable:
        nodes = (x if x.kind is Kind.GPU else replace(x, capabilities=BOTH) for x in machine.nodes)
        machine = replace(machine, nodes=tuple(nodes))
    rng = random.Random(seed)
    members = tuple(rng.sample(range(machine.size), rng.randint(2, machine.size - 1)))
    problem = group_of(machine, "allreduce", members, True)
    found = allreduce_optimum(problem)
    check_rooted(problem, found.rooted)
    check_limit(problem, found.limit)
    if not capable:  # what switches can do changes nothing of this, and cuts take long to list
        assert found.rooted.algbw == best_rooted(machine, members=members)
    if found.in_network is not None:
        check_rooted(problem, found.in_network)
        assert found.in_network.algbw == best_rooted(machine, True, members)


@each("seed", range(40))
def test_allreduce_forests_of_groups_hold_what_they_say(seed, target):
    machine = random_topology(seed, most_gpus=8, switches=3, directed=seed % 3 == 0)
    if machine.size < 3:
        return
    members = tuple(random.Random(seed).sample(range(machine.size), machine.size // 2 + 1))
    problem = group_of(machine, "allreduce", members, True)
    forest = PackTrees("auto").run(problem, target)
    check_forest(forest)
    assert forest.algbw <= allreduce_optimum(problem).algbw


def test_switches_of_a_group_help_where_they_may(target):
    """A star of four GPUs over a switch that can do both, of which three are a group."""
    nodes = (*(Node(f"gpu{i}", Kind.GPU, 0) for i in range(4)), Node("sw", Kind.SWITCH, 0, BOTH))
    ends = sorted(pair for i in range(4) for pair in ((i, 4), (4, i)))
    links = tuple(Link(a, b, Fraction(10 * GIGA)) for a, b in ends)
    machine = Topology("star", nodes, links, (0, 1, 2, 3))
    problem = group_of(machine, "allreduce", (3, 0, 1))
    assert allreduce_optimum(problem).in_network.algbw == 10 * GIGA
    forest = PackInNetwork("auto").run(problem, target)
    check_forest(forest)
    assert forest.algbw == 10 * GIGA
    with pytest.raises(VerificationError):
        check_forest(replace(forest, in_network=False))


def test_equal_groups_give_equal_forests(target):
    machine = topology.load("mi250")
    problem = Problem(machine, Collective.ALLGATHER, groups=((0, 2, 5), (9, 4, 1)), transit=True)
    assert PackTrees("auto").run(problem, target) == PackTrees("auto").run(problem, target)


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "broadcast"])
def test_groups_need_no_links_between_each_other(collective, target):
    """Two pairs of a ring that do not touch: each is joined, all four together are not."""
    machine = topology.load("ring:8")
    root = 1 if collective == "broadcast" else None
    pairs = Problem(machine, Collective(collective), root, ((0, 1), (4, 5)))
    forest = PackTrees("optimal").run(pairs, target)
    check_forest(forest)
    one = optimum(replace(pairs, groups=pairs.groups[:1]))
    assert forest.algbw == optimum(pairs).algbw == one.algbw


def test_few_trees_are_few_in_a_group_too(target):
    chosen = group_of(topology.load("mesh:3x4"), "allgather", tuple(range(8)))
    low, few = (PackTrees("optimal", prefer).run(chosen, target) for prefer in ("low", "few"))
    check_forest(few)
    assert few.algbw == low.algbw
    assert len(few.phases[0].trees) < len(low.phases[0].trees)
