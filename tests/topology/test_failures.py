import random
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology import load
from colsynth.topology.damage import Failures, describe_damage, renumbered
from colsynth.topology.failure_text import read_failures
from colsynth.topology.failures import apply_failures
from tests.each import each
from tests.reference.graphs import random_topology

DGX = load("dgx-a100", nodes=2)
GIGA = 10**9


def damage(topology, **texts):
    return apply_failures(topology, read_failures(topology, **texts))


def names(topology):
    return [node.name for node in topology.nodes]


def linked(topology):
    """Links by the names of their ends, with their bandwidth in GB/s."""
    return {
        tuple(topology.nodes[end].name for end in (link.source, link.target)): link.bandwidth / GIGA
        for link in topology.links
    }


def graph(kinds, links):
    """Return a topology of nodes a, b, ...; links are texts such as "ab", of 1 GB/s one way."""
    nodes = tuple(Node(chr(97 + i), Kind(kind)) for i, kind in enumerate(kinds))
    place = {node.name: i for i, node in enumerate(nodes)}
    ends = sorted((place[a], place[b]) for a, b in links)
    ranks = tuple(i for i, node in enumerate(nodes) if node.kind is Kind.GPU)
    return Topology("toy", nodes, tuple(Link(a, b, Fraction(GIGA)) for a, b in ends), ranks)


def test_without_failures_nothing_changes():
    found = apply_failures(DGX, Failures())
    assert found.topology is DGX
    assert found.old_ranks == tuple(range(16))


def test_a_link_goes_both_ways_or_one():
    both = damage(DGX, links=["gpu0.0-nic0.0"]).topology
    assert linked(DGX).keys() - linked(both).keys() == {
        ("gpu0.0", "nic0.0"),
        ("nic0.0", "gpu0.0"),
        ("nic0.0", "ib0"),
        ("ib0", "nic0.0"),
    }
    assert both.name == "dgx-a100 x2 without gpu0.0-nic0.0"
    one = damage(DGX, links=["gpu0.0->nic0.0"]).topology
    assert linked(DGX).keys() - linked(one).keys() == {("gpu0.0", "nic0.0")}
    assert one.name == "dgx-a100 x2 without gpu0.0->nic0.0"


def test_a_gpu_goes_with_its_links_and_its_nic_and_ranks_close_up():
    found = damage(DGX, gpus=["gpu0.3"])
    left = found.topology
    assert set(names(DGX)) - set(names(left)) == {"gpu0.3", "nic0.3"}
    assert names(left) == [name for name in names(DGX) if name in set(names(left))]
    assert found.old_ranks == (0, 1, 2, *range(4, 16))
    assert [left.nodes[node].name for node in left.ranks] == [
        DGX.nodes[DGX.ranks[rank]].name for rank in found.old_ranks
    ]
    assert linked(left).items() < linked(DGX).items()
    assert left.boxes == (0, 1)


def test_ranks_in_an_order_of_their_own_keep_it():
    turned = Topology("turned", DGX.nodes, DGX.links, DGX.ranks[::-1])
    found = damage(turned, gpus=["15"])  # rank 15 is gpu0.0 here
    assert found.dropped == ("gpu0.0",)
    left = found.topology
    assert [left.nodes[node].name for node in left.ranks][:2] == ["gpu1.7", "gpu1.6"]
    assert found.old_ranks == tuple(range(15))


def test_what_leads_nowhere_any_more_goes_too_and_nothing_else():
    whole_box = damage(DGX, gpus=[f"gpu1.{i}" for i in range(8)])
    pruned = {DGX.nodes[node].name for node in whole_box.pruned}
    assert pruned == {"nvswitch1", *(f"nic1.{i}" for i in range(8))}
    # The other NICs still lead from GPU to GPU of box 0, over the fabric.
    assert {"ib0", "ib1", "nic0.0"} <= set(names(whole_box.topology))


def test_switches_that_were_useless_before_are_not_our_business():
    toy = graph(["gpu", "gpu", "gpu", "switch"], ["ab", "ba", "bc", "cb", "ad", "da"])
    assert names(damage(toy, links=["b->c"], gpus=["c"]).topology) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("c->b", ["a", "b"]),  # nobody can leave the switch but to where it came from
        ("a->c", ["a", "b"]),
        ("b->c", ["a", "b", "c"]),  # still leads from a to b
    ],
)
def test_a_switch_is_of_use_while_a_way_leads_through_it(gone, left):
    toy = graph(["gpu", "gpu", "switch"], ["ab", "ba", "ac", "ca", "cb", "bc"])
    one_way = {"c->b": ["b->c"], "a->c": ["c->a"], "b->c": []}[gone]
    assert names(damage(toy, links=[gone, *one_way]).topology) == left


def test_pruning_goes_on_along_a_chain_of_switches():
    toy = graph(["gpu", "gpu", "switch", "nic"], ["ab", "ba", "ac", "ca", "cd", "dc", "db", "bd"])
    found = damage(toy, links=["d-b"])
    assert names(found.topology) == ["a", "b"]
    assert describe_damage(found)["pruned"] == ["c", "d"]


def test_degraded_links_keep_an_exact_share():
    left = damage(DGX, degraded=["gpu0.0-nvswitch0=200/3%", "nic0.1 -> ib1=12.5%"]).topology
    changed = dict(linked(left).items() - linked(DGX).items())
    assert changed == {
        ("gpu0.0", "nvswitch0"): 200,
        ("nvswitch0", "gpu0.0"): 200,
        ("nic0.1", "ib1"): Fraction(25, 8),
    }
    assert left.name == "dgx-a100 x2 with gpu0.0-nvswitch0 at 200/3%, nic0.1->ib1 at 12.5%"


def test_different_shares_each_way_are_told_apart():
    found = damage(DGX, degraded=["nic0.1->ib1=50%", "ib1->nic0.1=25%"])
    assert found.degraded == {"nic0.1->ib1": Fraction(1, 2), "ib1->nic0.1": Fraction(1, 4)}


def test_order_and_repetition_do_not_matter():
    one = damage(DGX, gpus=["3", "gpu1.0"], nics=["nic1.5", "nic0.1"], links=["gpu0.0-nic0.0"])
    other = damage(
        DGX, gpus=["gpu1.0", "3", "3"], nics=["nic0.1", "nic1.5"], links=["nic0.0-gpu0.0"]
    )
    assert one == other
    assert one.topology.name == "dgx-a100 x2 without gpu0.3, gpu1.0, nic0.1, nic1.5, gpu0.0-nic0.0"


def test_a_long_list_of_failures_is_counted_in_the_name():
    found = damage(DGX, nics=[*(f"nic0.{i}" for i in range(6)), "nic1.1", "nic1.3"])
    assert found.topology.name.endswith("nic0.5 and 2 more")
    assert len(found.dropped) == 8


def test_gpus_that_are_cut_off_are_named():
    with pytest.raises(InfeasibleError) as caught:
        damage(DGX, links=["0-nvswitch0", "0-nic0.0", "9-nvswitch1", "9->nic1.1"])
    found = caught.value.diagnostic
    assert found.code == "CS302"
    assert "cut gpu0.0 off" in found.phrase
    assert found.help == "run on the largest part that is left: --drop-gpu gpu0.0 --drop-gpu gpu1.1"
    one_way = "data can pass in one direction only to or from gpu1.1"
    assert found.notes == ("no data can pass from gpu0.1 to gpu0.0", one_way)


def test_the_advice_about_gpus_that_are_cut_off_works():
    left = damage(DGX, links=["0-nvswitch0", "0-nic0.0"], gpus=["gpu0.0"]).topology
    assert left.size == 15


def test_a_gpu_that_can_hear_but_not_speak_is_cut_off_too():
    with pytest.raises(InfeasibleError, match="no data can pass from gpu3 to gpu0"):
        damage(load("ring:4"), links=["gpu3->gpu0", "gpu3->gpu2"])


def test_a_way_back_that_is_lost_cuts_nobody_off():
    with pytest.raises(InfeasibleError, match="no data can pass from gpu1 to gpu0") as caught:
        damage(load("uniring:4"), links=["gpu3->gpu0"])
    told = caught.value.diagnostic
    assert "cut" not in told.phrase
    assert told.help is None  # one GPU alone would be left
    assert "every GPU must reach every other one" in told.notes[0]


@pytest.mark.parametrize(("apart", "mute"), [("gpu0", "gpu4"), ("gpu4", "gpu0")])
def test_only_gpus_without_any_way_are_cut_off(apart, mute):
    """One loses all its links, the other only those on which it sends."""
    others = [f"gpu{place}" for place in range(5)]
    lost = [f"{apart}-{other}" for other in others if other != apart]
    lost += [f"{mute}->{other}" for other in others if other not in (apart, mute)]
    with pytest.raises(InfeasibleError, match=f"cut {apart} off from the other GPUs") as caught:
        damage(load("clique:5"), links=lost)
    assert caught.value.diagnostic.help.endswith("left: --drop-gpu gpu0 --drop-gpu gpu4")


def test_halves_without_a_link_between_them():
    with pytest.raises(InfeasibleError, match=r"cut gpu1\.0, gpu1\.1.* and 2 more off") as caught:
        damage(DGX, nics=[f"nic0.{i}" for i in range(8)])
    assert (
        caught.value.diagnostic.help
        == "run on the largest part that is left: a --drop-gpu for each of 8 others"
    )


@pytest.mark.parametrize("left", [0, 1])
def test_one_gpu_is_too_few(left):
    with pytest.raises(InputError) as caught:
        damage(load("ring:4"), gpus=[str(rank) for rank in range(left, 4)])
    assert caught.value.diagnostic.code == "CS117"


@pytest.mark.parametrize("gone", [{"links": ["nvswitch0-0"]}, {"gpus": ["0"]}])
def test_what_is_gone_cannot_be_degraded(gone):
    with pytest.raises(InputError, match=r"gpu0\.0->nvswitch0 is degraded") as caught:
        damage(DGX, degraded=["0-nvswitch0=50%"], **gone)
    assert caught.value.diagnostic.code == "CS135"


def test_ranks_are_told_in_runs():
    assert renumbered(damage(DGX, gpus=["3"]).old_ranks) == "0-2 as before, 3-14 were 4-15"
    found = damage(DGX, gpus=["0", "2", "15"])
    assert renumbered(found.old_ranks) == "0 was 1, 1-12 were 3-14"
    assert renumbered(damage(DGX, nics=["nic0.0"]).old_ranks) == "0-15 as before"


def test_plain_values():
    found = damage(DGX, gpus=["3"], degraded=["nic0.1->ib1=50%"])
    assert describe_damage(found) == {
        "healthy": "dgx-a100 x2",
        "dropped": ["gpu0.3"],
        "degraded": {"nic0.1->ib1": 50.0},
        "pruned": ["nic0.3"],
        "old_ranks": [0, 1, 2, *range(4, 16)],
    }


@each("seed", range(30))
def test_no_failure_of_a_link_raises_the_bound(seed):
    """Fewer or slower links on the same GPUs can only shrink cuts; exact, on random graphs."""
    rng = random.Random(seed)
    topology = random_topology(seed, directed=seed % 2 == 0)
    link = rng.choice(topology.links)
    ends = (link.source, link.target)
    broken = rng.choice(
        [Failures(links=(ends,)), Failures(degraded=((ends, Fraction(rng.randint(1, 9), 10)),))]
    )
    healthy = api.bound(api.make_problem(topology, "allgather")).algbw
    try:
        left = apply_failures(topology, broken).topology
    except InfeasibleError:
        assert broken.links
        return
    assert api.bound(api.make_problem(left, "allgather")).algbw <= healthy


@each("seed", range(30))
def test_pruning_changes_no_bound(seed):
    """What is pruned leads nowhere: the graph with it has the same optimum."""
    topology = random_topology(seed, switches=6)
    rng = random.Random(seed)
    pairs = sorted({(x.source, x.target) for x in topology.links})
    gone = set(rng.sample(pairs, min(4, len(pairs))))
    kept = tuple(x for x in topology.links if (x.source, x.target) not in gone)
    try:
        left = apply_failures(topology, Failures(links=tuple(sorted(gone)))).topology
    except InfeasibleError:
        return
    unpruned = Topology("unpruned", topology.nodes, kept, topology.ranks)
    bounds = [api.bound(api.make_problem(x, "allgather")).algbw for x in (left, unpruned)]
    assert bounds[0] == bounds[1]
