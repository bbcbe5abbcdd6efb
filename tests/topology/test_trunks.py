"""Parallel switches of a box count as one, and only they."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth import api
from colsynth.cli.main import run
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology import export_flat
from colsynth.topology.communicator import communicators
from colsynth.topology.document import parse_document
from colsynth.topology.failures import apply_failures
from colsynth.topology.load import read_topology
from colsynth.topology.single_failures import single_failures
from colsynth.topology.summary import headline
from colsynth.topology.trunks import merge_switches

GB = 10**9
BOARD = """
version: 1
name: board
{wires}box:
  nodes:
    - {{name: gpu, kind: gpu, count: 4}}
    - {{name: a, kind: switch{capabilities}}}
    - {{name: b, kind: switch, capabilities: [multicast]}}
    {nodes}
  links:
    - {{from: gpu, to: a, count: 5, bandwidth: 25 GB/s, latency: 0.3 us}}
    - {{from: {gpus}, to: b, count: 4, bandwidth: 25 GB/s, latency: {latency}}}
    {links}
{fabric}"""
SAME = {
    "wires": "",
    "capabilities": ", capabilities: [multicast]",
    "gpus": "gpu",
    "latency": "0.3 us",
    "nodes": "",
    "links": "",
    "fabric": "",
}
NIC = {
    "wires": "boxes: 2\n",
    "nodes": "- {name: nic, kind: nic}",
    "links": "- {from: nic, to: b, bandwidth: 25 GB/s, latency: 0.3 us}",
    "fabric": "fabric:\n  nodes: [{name: ib, kind: switch}]\n"
    "  links: [{from: nic, to: ib, bandwidth: 25 GB/s}]\n",
}
TRUNK = {"links": "- {from: a, to: b, bandwidth: 25 GB/s, latency: 0.3 us}"}


def board(**changes):
    return read_topology(parse_document(BOARD.format(**SAME | changes), "board.yaml"), None, {})


def test_two_chips_carry_what_one_with_all_links_carries():
    topology = board()
    assert {link.bandwidth for link in topology.links} == {225 * GB}
    assert len(topology.links) == 8
    assert topology.notes == (
        "a0, b0 join the same GPUs, which spread data over all of them: they count as one",
    )
    assert len(topology.whole.links) == 16
    assert headline(topology) == "board x1: 4 GPUs, 1 switch, 1 box, 8 links"
    assert export_flat(topology) == export_flat(topology.whole).replace("wires: all\n", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"latency": "0.4 us"},
        {"capabilities": ""},
        {"gpus": "[gpu0, gpu1, gpu2]"},
        {"wires": "wires: all\n"},
        NIC,
        TRUNK,
    ],
    ids="-".join,
)
def test_others_stay_apart(changes):
    topology = board(**changes)
    assert not any("count as one" in note for note in topology.notes)
    assert max(link.bandwidth for link in topology.links) == 125 * GB
    again = read_topology(parse_document(export_flat(topology), "flat.yaml"), None, {})
    assert again.links == topology.links


def test_links_of_merged_switches_fail_one_by_one():
    topology = board()
    found = single_failures(topology, "links")
    assert len(found) == 8
    left = apply_failures(topology, found[1]).topology
    assert len(left.links) == 14
    group = api.make_problem(topology, "allgather", groups=[[0, 1, 3]])
    (alone,) = communicators(group)
    assert len(alone.problem.topology.links) == 6
    assert len(single_failures(alone.problem.topology, "links")) == 6


def test_a_switch_that_fails_in_part_leaves_the_others_together():
    topology = board(
        nodes="- {name: c, kind: switch, capabilities: [multicast]}",
        links="- {from: gpu, to: c, count: 4, bandwidth: 25 GB/s, latency: 0.3 us}",
    )
    left = api.damage(topology, links=["gpu0.0-b0"]).topology
    assert sorted({link.bandwidth // GB for link in left.links}) == [100, 225]


@st.composite
def planes(draw):
    """Return a box of two boards, whose planes are a switch on each and a trunk between them."""
    rates = draw(st.lists(st.integers(1, 40), min_size=8, max_size=8))
    shares = draw(st.lists(st.integers(1, 5), min_size=2, max_size=3))
    gpus = [Node(f"g{n}", Kind.GPU, 0) for n in range(4)]
    switches = [Node(f"s{n}", Kind.SWITCH, 0) for n in range(2 * len(shares))]
    links = []
    for plane, share in enumerate(shares):
        pair = 4 + 2 * plane, 5 + 2 * plane
        for gpu in range(4):
            switch = pair[gpu // 2]
            links.append(Link(gpu, switch, Fraction(rates[gpu] * share)))
            links.append(Link(switch, gpu, Fraction(rates[(gpu + 1) % 4] * share)))
        links.append(Link(*pair, Fraction(rates[4] * share)))
        links.append(Link(*pair[::-1], Fraction(rates[5] * share)))
    links.sort(key=lambda link: (link.source, link.target))
    return Topology("planes", (*gpus, *switches), tuple(links), (0, 1, 2, 3))


@settings(max_examples=25)
@given(planes())
def test_no_bound_changes(topology):
    """What parallel planes carry together, one with all their links carries, and no more."""
    merged = merge_switches(topology)
    assert len(merged.links) == 10
    for collective in ("allgather", "reduce-scatter", "broadcast"):
        bounds = {api.bound(api.make_problem(x, collective)).algbw for x in (topology, merged)}
        assert len(bounds) == 1


def test_notes_tell_what_is_merged_after_failures(tmp_path, capsys):
    path = tmp_path / "board.yaml"
    path.write_text(BOARD.format(**SAME))
    for more, told in (((), 1), (("--drop-link", "gpu0.0-b0"), 0), (("--drop-gpu", "3"), 1)):
        assert run(["bound", str(path), "-c", "allgather", *more]) == 0
        assert capsys.readouterr().err.count("they count as one") == told
