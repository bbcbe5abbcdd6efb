"""Process groups as machines of their own."""

from dataclasses import replace

import pytest

from colsynth.model import Collective, Kind, Problem
from colsynth.topology import load
from colsynth.topology.communicator import communicators, spell_ranks
from tests.each import each
from tests.reference.graphs import clustered_topology


def group_of(machine, *groups, transit=False, **more):
    return Problem(machine, Collective.ALLGATHER, groups=groups, transit=transit, **more)


def test_no_groups_are_one_of_everybody():
    problem = Problem(load("mi250"), Collective.ALLREDUCE)
    (found,) = communicators(problem)
    assert found.problem == problem
    assert found.old_ranks == tuple(range(16))
    assert found.relays == ()


@pytest.mark.parametrize("transit", [False, True])
@each("seed", range(20))
def test_nodes_and_links_are_those_of_the_whole(seed, transit):
    machine = clustered_topology(seed)
    members = tuple(range(machine.size))[::-2]
    (found,) = communicators(group_of(machine, members, transit=transit))
    own = found.problem.topology
    taken = {machine.ranks[rank] for rank in members}
    for new, old in enumerate(found.nodes):
        assert own.nodes[new].name == machine.nodes[old].name
        assert (own.nodes[new].kind is Kind.GPU) == (old in taken)
    assert [own.nodes[node].name for node in own.ranks] == [
        machine.nodes[machine.ranks[rank]].name for rank in members
    ]
    for new, old in enumerate(found.links):
        assert own.link_name(new) == machine.link_name(old)
        assert own.links[new].bandwidth == machine.links[old].bandwidth
    strangers = set(machine.ranks) - taken
    kept = [x for x in machine.links if transit or not strangers & {x.source, x.target}]
    assert len(own.links) == len(kept)
    assert list(own.links) == sorted(own.links, key=lambda x: (x.source, x.target))
    assert len(found.relays) == (len(strangers) if transit else 0)


def test_roots_and_shards_are_those_of_the_members():
    machine = load("ring:6")
    rooted = replace(group_of(machine, (4, 5, 3)), collective=Collective.REDUCE, root=2)
    assert communicators(rooted)[0].problem.root == 2
    uneven = group_of(machine, (4, 5, 3), shards=(0, 0, 0, 2, 1, 0))
    assert communicators(uneven)[0].problem.shards == (1, 0, 2)


def test_every_group_has_its_own():
    first, second = communicators(group_of(load("clique:5"), (0, 1), (4, 2)))
    assert (first.old_ranks, second.old_ranks) == ((0, 1), (4, 2))
    assert second.problem.topology.name == "clique:5 group 4,2"


def test_ranks_are_spelt_in_runs():
    assert spell_ranks((0, 1, 2, 5, 7, 6)) == "0-2,5,7,6"
    assert spell_ranks(tuple(range(0, 40, 2))) == "0,2,4,6,8,10 and 14 more"
