"""Topologies with the bandwidth that protocols leave."""

from fractions import Fraction

from colsynth import api
from colsynth.cost import default_model, ideal_model
from colsynth.cost.usable import has_several_shares, usable
from colsynth.runtimes import profile

MODEL = default_model(profile("rccl"))


def test_each_link_keeps_its_share():
    topology = api.load_topology("dgx-a100", nodes=2)
    left = usable(topology, MODEL)
    for index, (wire, link) in enumerate(zip(topology.links, left.links, strict=True)):
        share = Fraction(96, 100) if index in topology.network else Fraction(75, 100)
        assert link.bandwidth == wire.bandwidth * share
    assert left.ranks == topology.ranks


def test_shares_differ_where_links_leave_boxes():
    assert has_several_shares(api.load_topology("dgx-a100", nodes=2), MODEL)
    assert not has_several_shares(api.load_topology("dgx-a100"), MODEL)
    assert not has_several_shares(api.load_topology("dgx-a100", nodes=2), ideal_model())
