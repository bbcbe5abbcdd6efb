"""What a topology adds up to."""

from fractions import Fraction

from colsynth.model import Kind
from colsynth.topology import load
from colsynth.topology.summary import headline, matrix, totals

GB = 10**9


def test_totals_by_kind_of_neighbour():
    found = {x.node.name: x for x in totals(load("dgx-a100", nodes=2))}
    gpu = found["gpu1.3"]
    assert gpu.rank == 11
    assert gpu.egress == {Kind.SWITCH: 300 * GB, Kind.NIC: 25 * GB}
    assert gpu.total_ingress == 325 * GB
    assert found["ib0"].rank is None
    assert found["ib0"].ingress == {Kind.NIC: 200 * GB}


def test_egress_and_ingress_are_not_confused():
    found = {x.node.name: x for x in totals(load("dgx2", nodes=2))}
    assert found["gpu0.1"].egress[Kind.NIC] == Fraction("12.5") * GB
    assert Kind.NIC not in found["gpu0.1"].ingress


def test_every_link_is_counted_at_both_ends():
    topology = load("mi300x", nodes=3)
    whole = sum(link.bandwidth for link in topology.links)
    assert sum(x.total_egress for x in totals(topology)) == whole
    assert sum(x.total_ingress for x in totals(topology)) == whole


def test_the_matrix_holds_direct_links_only():
    rows = matrix(load("ring:4"))
    assert [[int(x / GB) for x in row] for row in rows] == [
        [0, 50, 0, 50],
        [50, 0, 50, 0],
        [0, 50, 0, 50],
        [50, 0, 50, 0],
    ]


def test_headline():
    assert headline(load("mi250")) == "mi250 x1: 16 GPUs, 1 box, 56 links"
    two = headline(load("dgx2", nodes=2))
    assert two == "dgx2 x2: 32 GPUs, 3 switches, 16 NICs, 2 boxes, 128 links"
