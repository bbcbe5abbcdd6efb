"""A NIC leads to one place outside its box; others are refused, since it would pass data on."""

import pytest

from colsynth.errors import InputError
from colsynth.topology.document import parse_document
from colsynth.topology.export import export_flat
from colsynth.topology.failure_text import read_failures
from colsynth.topology.failures import apply_failures
from colsynth.topology.load import read_topology

PLANES = """\
version: 1
name: planes
nodes:
  - {name: a, kind: gpu, box: 0}
  - {name: b, kind: gpu, box: 1}
  - {name: c, kind: gpu, box: 2}
  - {name: na, kind: nic, box: 0}
  - {name: nb, kind: nic, box: 1}
  - {name: nc, kind: nic, box: 2}
  - {name: west, kind: switch}
  - {name: east, kind: switch}
links:
  - {from: a, to: na, bandwidth: 50 GB/s}
  - {from: b, to: nb, bandwidth: 50 GB/s}
  - {from: c, to: nc, bandwidth: 50 GB/s}
  - {from: na, to: west, bandwidth: 25 GB/s}
  - {from: nb, to: west, bandwidth: 25 GB/s}
  - {from: nb, to: east, bandwidth: 25 GB/s}
  - {from: nc, to: east, bandwidth: 25 GB/s}
"""
"""Data for box 2 leaves box 0 on a network that ends in a NIC of box 1."""


def read(text):
    return read_topology(parse_document(text, "planes.yaml"), None, {})


def test_a_nic_on_two_networks_is_refused_at_its_place():
    for text in (PLANES, PLANES.replace("from: nb, to: east", "from: nb, to: nc")):
        with pytest.raises(InputError) as refused:
            read(text)
        told = refused.value.diagnostic
        assert told.code == "CS145"
        assert "'nb' is between 2 networks" in told.phrase
        assert told.span.line == 8
        assert "each port" in told.help


def test_ports_that_are_nics_of_their_own_are_accepted():
    text = PLANES.replace(
        "- {name: nc, kind", "- {name: nb2, kind: nic, box: 1}\n  - {name: nc, kind"
    )
    text = text.replace("from: nb, to: east", "from: nb2, to: east")
    text += "  - {from: b, to: nb2, bandwidth: 50 GB/s}\n"
    assert read(text).size == 3


def test_planes_are_one_network_be_it_with_a_broken_link():
    whole = PLANES + "".join(
        f"  - {{from: {nic}, to: {plane}, bandwidth: 25 GB/s}}\n"
        for nic, plane in (("na", "east"), ("nc", "west"))
    )
    topology = read(whole)
    broken = apply_failures(topology, read_failures(topology, links=("na-east",))).topology
    assert read(export_flat(broken)).size == 3
    with pytest.raises(InputError, match="CS145"):  # a and c have no plane in common any more
        apply_failures(topology, read_failures(topology, links=("na-east", "nc-west")))


def test_nics_without_a_box_are_on_the_side_of_their_gpus():
    assert read(ONE_NETWORK.replace("nic, box: 0", "nic").replace("nic, box: 1", "nic")).size == 2


ONE_NETWORK = """\
version: 1
name: one
nodes:
  - {name: a, kind: gpu, box: 0}
  - {name: b, kind: gpu, box: 1}
  - {name: na, kind: nic, box: 0}
  - {name: nb, kind: nic, box: 1}
  - {name: leaf, kind: switch}
links:
  - {from: a, to: na, bandwidth: 50 GB/s}
  - {from: b, to: nb, bandwidth: 50 GB/s}
  - {from: na, to: leaf, bandwidth: 25 GB/s}
  - {from: nb, to: leaf, bandwidth: 25 GB/s}
"""


@pytest.mark.parametrize("box", [", box: 0", ""])
def test_two_switches_of_the_box_are_no_networks(box):
    """A NIC between two PCIe switches leads to one place outside."""
    text = """\
version: 1
name: pcie
nodes:
  - {name: a, kind: gpuBOX}
  - {name: b, kind: gpuBOX}
  - {name: left, kind: switchBOX}
  - {name: right, kind: switchBOX}
  - {name: na, kind: nicBOX}
  - {name: c, kind: gpu, box: 1}
  - {name: nc, kind: nic, box: 1}
links:
  - {from: a, to: left, bandwidth: 50 GB/s}
  - {from: b, to: right, bandwidth: 50 GB/s}
  - {from: left, to: right, bandwidth: 25 GB/s}
  - {from: left, to: na, bandwidth: 25 GB/s}
  - {from: right, to: na, bandwidth: 25 GB/s}
  - {from: na, to: nc, bandwidth: 25 GB/s}
  - {from: c, to: nc, bandwidth: 50 GB/s}
""".replace("BOX", box)
    assert read(text).size == 3
