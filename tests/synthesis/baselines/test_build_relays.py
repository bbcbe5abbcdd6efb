"""Relays: every tree reaches everyone, in few hops, and no link of a switch carries too much."""

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.verify import check_forest

SHAPES = [(0, 0), (3, 0), (4, 0), (4, 4), (7, 0), (3, 3), (2, 5), ("auto", "auto")]

UNFIT = {("mi250", 3), ("mi250", 4), ("mi250", 5), ("mesh:3x3", 4), ("mesh:3x3", 5)}
"""Machines without ways between heads of groups; those of rows of a mesh are neighbours."""


@pytest.fixture
def relayed(schedule):
    """Return a function that builds the forest of a shape, from root 2."""

    def build(machine, collective, relays, group, nodes=None):
        return schedule("relays", machine, collective, nodes, 2, relays=relays, group=group)

    return build


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("relays", "group"), SHAPES)
@pytest.mark.parametrize(
    ("machine", "nodes"), [("dgx-a100", 1), ("dgx-a100", 2), ("mi250", 1), ("mesh:3x3", None)]
)
def test_forests_prove_themselves(relayed, machine, nodes, relays, group, collective):
    """The certificate walks every tree along its links, and adds up what they carry.

    Where links join neighbours alone, groups may have no ways to each other.
    """
    if (machine, group) in UNFIT:
        with pytest.raises(InputError, match="CS312"):
            relayed(machine, collective, relays, group, nodes)
        return
    forest = relayed(machine, collective, relays, group, nodes)
    check_forest(forest)
    heads = {tree.edges[0].child for tree in forest.phases[0].trees}
    assert len(forest.phases[0].trees) == 1 or len(heads) > 1


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_behind_a_switch_all_others_as_relays_are_optimal(relayed, collective):
    assert relayed("dgx-a100", collective, 7, 0).gap == 0
    assert relayed("dgx-a100", collective, "auto", "auto").max_height == 2


@pytest.mark.parametrize(("machine", "nodes"), [("clique:5", None), ("gb200-nvl72", 1)])
def test_without_relays_the_root_reaches_everyone_in_one_hop(relayed, machine, nodes):
    assert relayed(machine, "broadcast", 0, 0, nodes=nodes).max_height == 1


def test_groups_bound_the_peers_of_every_gpu(relayed):
    """18 GPUs of a group, and a head in each of the three others."""
    forest = relayed("gb200-nvl72", "broadcast", "auto", "auto")
    peers = {}
    for tree in forest.phases[0].trees:
        for edge in tree.edges:
            peers.setdefault(edge.parent, set()).add(edge.child)
    assert max(map(len, peers.values())) == 17 + 3
    assert forest.max_height == 3


def test_between_boxes_shares_stay_on_rails(relayed):
    """Where a relay and a head are in two boxes, they have equal places there."""
    forest = relayed("dgx-a100", "broadcast", "auto", "auto", nodes=4)
    assert len(forest.phases[0].trees) == 8
    pairs = [(e.parent, e.child) for t in forest.phases[0].trees for e in t.edges]
    assert all(a % 8 == b % 8 for a, b in pairs if a // 8 != b // 8)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_the_default_of_small_messages_is_no_slower_than_trees_or_timed_schedules(collective):
    machine = api.load_topology("gb200-nvl72", nodes=2, settings={"gpus": "4"})
    problem = api.make_problem(machine, collective)
    for size in (1024, 1 << 16):
        mine, *others = (
            api.compile(problem, "msccl", algorithm=name, size=size, several=False)
            for name in (None, "relays", "forest", "ten")
        )
        assert all(mine.predicted[0].seconds <= x.predicted[0].seconds for x in others)


def test_a_copy_count_that_is_fixed_leaves_relays_open():
    problem = api.make_problem(api.load_topology("dgx-a100"), "broadcast")
    given = {"algorithm": "relays", "instances": 2, "size": 1024, "several": False}
    settings = api.compile(problem, "msccl", **given).summary()["settings"]
    assert (settings["relays"], settings["instances"]) == (0, 2)
