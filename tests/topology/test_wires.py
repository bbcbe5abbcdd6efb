"""Two kinds of wire between two GPUs: the slower one is left out."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth import api
from colsynth.cli.main import run
from colsynth.cost.routes import routes
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology import export_flat, load, presets
from colsynth.topology.document import parse_document
from colsynth.topology.load import read_topology
from colsynth.topology.wires import choose_wires

GB = 10**9
BOX = """
version: 1
name: box
box:
  nodes:
    - {name: gpu, kind: gpu, count: 4}
    - {name: pcie, kind: switch}
  links:
    - {from: gpu, to: gpu, bandwidth: 100 GB/s, latency: 0.7 us}
    - {from: gpu, to: pcie, bandwidth: 25 GB/s, latency: 1 us}
"""
PCIE = "    - {from: gpu, to: pcie, bandwidth: 25 GB/s, latency: 1 us}\n"
PLAIN = BOX.replace("    - {name: pcie, kind: switch}\n", "").replace(PCIE, "")
CLUSTER = """
version: 1
name: cluster
boxes: 2
box:
  nodes:
    - {name: gpu, kind: gpu, count: 4}
    - {name: nvswitch, kind: switch}
    - {name: pcie, kind: switch, count: 2}
    - {name: nic, kind: nic, count: 4}
  links:
    - {from: gpu, to: nvswitch, bandwidth: 300 GB/s}
    - {from: gpu, to: pcie, join: blocks, bandwidth: 25 GB/s}
    - {from: nic, to: pcie, join: blocks, bandwidth: 25 GB/s}
fabric:
  nodes:
    - {name: ib, kind: switch}
  links:
    - {from: nic, to: ib, bandwidth: 12.5 GB/s}
"""


def read(text, nodes=None):
    return read_topology(parse_document(text, "box.yaml"), nodes, {})


def bound(topology, collective="allgather"):
    return api.bound(api.make_problem(topology, collective)).algbw


def between_gpus(topology):
    """Return {(source, target): bandwidths of its ways without NICs}, by names of GPUs."""
    found = {}
    for source, target, route in routes(topology):
        ends = {x for i in route for x in (topology.links[i].source, topology.links[i].target)}
        if all(topology.nodes[x].kind is not Kind.NIC for x in ends):
            pair = tuple(topology.nodes[topology.ranks[x]].name for x in (source, target))
            found.setdefault(pair, []).append(min(topology.links[i].bandwidth for i in route))
    return found


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", [preset.name for preset in presets()])
def test_presets_keep_all_wires(name, nodes):
    topology = load(name, nodes=nodes)
    assert choose_wires(topology) is topology
    assert (topology.whole, topology.notes) == (None, ())


def test_the_slower_wire_counts_in_no_bound_forest_or_simulation():
    slow, plain = read(BOX), read(PLAIN)
    assert bound(slow) == bound(plain) == 400 * GB
    assert bound(slow.whole) > bound(plain)
    done = api.compile(api.make_problem(slow, "allgather"), "msccl")
    assert done.problem.topology.links == plain.links
    assert between_gpus(slow) == between_gpus(plain)


def test_a_direct_link_that_is_slower_than_a_switch_goes():
    text = BOX.replace("100 GB/s", "16 GB/s").replace("25 GB/s", "300 GB/s")
    topology = read(text)
    assert set(map(tuple, between_gpus(topology).values())) == {(300 * GB,)}
    assert "gpu0.0-gpu0.1" in topology.notes[0]


@pytest.mark.parametrize("bandwidth", ["50 GB/s", "60 GB/s"])
def test_equal_wires_stay_and_chips_of_one_kind_are_one(bandwidth):
    chips = BOX.replace("from: gpu, to: gpu", "from: gpu, to: chip").replace("1 us", "0.7 us")
    chips = chips.replace("100 GB/s", "60 GB/s").replace("25 GB/s", bandwidth)
    chips = chips.replace("name: pcie,", "name: chip, kind: switch}\n    - {name: pcie,")
    (note,) = read(chips).notes
    assert "they count as one" in note
    direct = BOX.replace("100 GB/s", "60 GB/s").replace("25 GB/s", bandwidth)
    assert (read(direct).whole is None) == (bandwidth == "60 GB/s")


def test_the_network_is_still_reached_through_the_slower_wire():
    """Two GPUs and two NICs on each PCIe switch: ways from GPU to GPU alone are left out."""
    topology = read(CLUSTER)
    assert len(topology.nodes) == len(topology.whole.nodes) + 4
    assert len(topology.links) == len(topology.whole.links)
    assert set(map(tuple, between_gpus(topology).values())) == {(300 * GB,)}
    assert bound(topology) == bound(topology.whole) == 100 * GB  # the network is the bottleneck
    single = read(CLUSTER, nodes=1)
    assert bound(single) == 400 * GB
    assert bound(single.whole) > 400 * GB
    assert api.compile(api.make_problem(topology, "allreduce"), "msccl").artefacts[0].report.ok


def test_pairs_without_a_faster_wire_keep_theirs():
    """Two hives, as of MI100: PCIe joins GPUs of different hives alone."""
    text = BOX.replace("count: 4", "count: 8").replace("from: gpu, to: gpu,", "JOIN")
    matrix = [[int(i != j and i // 4 == j // 4) for j in range(8)] for i in range(8)]
    topology = read(text.replace("JOIN", f"from: gpu, to: gpu, counts: {matrix},"))
    for (a, b), found in between_gpus(topology).items():
        assert found == [(100 if int(a[-1]) // 4 == int(b[-1]) // 4 else 25) * GB]
    assert len(topology.notes) == 1


def test_a_wire_that_cannot_be_divided_goes_where_gpus_can_do_without_it():
    """A cube mesh with PCIe below: GPU 0 has NVLink to some GPUs, which lead to the others."""
    mesh = load("dgx-1v")
    nodes = (*mesh.nodes, Node("pcie0", Kind.SWITCH, 0))
    more = [Link(*ends, Fraction(12 * GB)) for g in range(8) for ends in ((g, 8), (8, g))]
    links = tuple(sorted((*mesh.links, *more), key=lambda x: (x.source, x.target)))
    topology = replace(mesh, nodes=nodes, links=links)
    found = choose_wires(topology)
    assert found.links == mesh.links
    assert found.notes[0].endswith("('wires: all' in the file keeps them)")
    # Without GPU 7's NVLinks it is PCIe or nothing, and GPUs 0 to 6 use it too.
    left = tuple(x for x in links if 7 not in (x.source, x.target) or 8 in (x.source, x.target))
    kept = choose_wires(replace(topology, links=left))
    assert kept.links == left
    assert "cannot be left out" in kept.notes[0]


def test_all_wires_on_demand():
    text = BOX.replace("version: 1", "version: 1\nwires: all")
    topology = read(text)
    assert topology.whole is None
    assert [note for note in topology.notes if "wires: all" in note] == list(topology.notes[:1])
    assert read(PLAIN.replace("version: 1", "version: 1\nwires: all")).notes == ()
    assert bound(topology) == bound(read(BOX).whole)
    for one in (topology, read(BOX), read(CLUSTER)):
        assert read(export_flat(one)) == one


def test_a_slower_wire_serves_where_the_faster_one_fails():
    topology = read(BOX)
    damaged = api.damage(topology, links=["gpu0.0-gpu0.1"]).topology
    found = between_gpus(damaged)
    assert found["gpu0.0", "gpu0.1"] == found["gpu0.1", "gpu0.0"] == [25 * GB]
    assert {tuple(x) for pair, x in found.items() if set(pair) != {"gpu0.0", "gpu0.1"}} == {
        (100 * GB,)
    }
    assert api.damage(topology, links=["gpu0.0-pcie0"]).topology.size == 4
    slow = api.damage(topology, degraded=["gpu0.0-gpu0.1=1%"]).topology
    assert between_gpus(slow)["gpu0.0", "gpu0.1"] == [GB]  # the runtime takes NVLink all the same


def test_it_is_noted(tmp_path, capsys):
    path = tmp_path / "box.yaml"
    path.write_text(BOX)
    assert run(["bound", str(path), "-c", "allgather"]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert len([line for line in shown if "through pcie0" in line]) == 1


@st.composite
def boxes(draw):
    """Five GPUs, two NICs and three switches: a ring, and links that some of them have."""
    kinds = [Kind.GPU] * 5 + [Kind.SWITCH] * 3 + [Kind.NIC] * 2
    nodes = tuple(Node(f"n{i}", kind) for i, kind in enumerate(kinds))
    rates = {(i, (i + 1) % 5): 4 for i in range(5)}
    for hub in range(5, draw(st.integers(6, 8))):
        rate = draw(st.sampled_from([1, 2, 4]))
        for node in draw(st.sets(st.integers(0, 9).filter(lambda x: x > 8 or x < 6), max_size=7)):
            rates |= {ends: rate for ends in ((node, hub), (hub, node)) if node != hub}
    pairs = st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda x: x[0] != x[1])
    rates |= draw(st.dictionaries(pairs, st.sampled_from([1, 2, 4, 8]), max_size=12))
    delays = st.sampled_from([Fraction(0), Fraction(1)])
    links = tuple(Link(*x, Fraction(rates[x]), draw(delays)) for x in sorted(rates))
    return Topology("any", nodes, links, tuple(range(5)))


def named(topology):
    """Return links by names, those of parts of a switch under the name of the whole."""
    names = [node.name.split(" ")[0] for node in topology.nodes]
    return [(names[x.source], names[x.target], x.bandwidth) for x in topology.links]


def widest(topology, source, target, direct):
    """Return the widest way from GPU to GPU, over a link or through switches; 0 for none."""
    rates = {(x.source, x.target): x.bandwidth for x in topology.links}
    if direct:
        return rates.get((source, target), 0)
    width = {source: max(rates.values()) + 1}
    for _ in topology.nodes:
        for (a, b), rate in rates.items():
            through = topology.nodes[b].kind is Kind.SWITCH or b == target
            if a in width and through and not (a == source and b == target) and a != target:
                width[b] = max(width.get(b, 0), min(width[a], rate))
    return width.get(target, 0)


@given(boxes())
def test_laws_of_any_box(topology):
    found = choose_wires(topology)
    assert len(set(named(found))) == len(found.links)
    assert set(named(found)) <= set(named(topology))
    assert choose_wires(found).links == found.links
    kept = any("cannot be left out" in note for note in found.notes)
    for pair in permutations(range(5), 2):
        before = [widest(topology, *pair, direct) for direct in (True, False)]
        after = [widest(found, *pair, direct) for direct in (True, False)]
        assert all(x <= y for x, y in zip(after, before, strict=True))
        if not kept:
            assert all(x in (0, y) for x, y in zip(after, before, strict=True))
            assert 0 in after or after[0] == after[1]
    reached = nx.DiGraph((x.source, x.target) for x in found.links)
    assert all(set(range(5)) <= nx.descendants(reached, gpu) | {gpu} for gpu in range(5))


def test_a_group_without_the_faster_wire_takes_the_slower_one(tmp_path, capsys):
    """GPUs 0 and 5 of a cube mesh have no NVLink between them; PCIe joins them (Blink's case)."""
    mesh = load("dgx-1v")
    nodes = (*mesh.nodes, Node("pcie0", Kind.SWITCH, 0))
    more = [Link(*ends, Fraction(12 * GB)) for g in range(8) for ends in ((g, 8), (8, g))]
    links = tuple(sorted((*mesh.links, *more), key=lambda x: (x.source, x.target)))
    topology = choose_wires(replace(mesh, nodes=nodes, links=links))
    problem = api.make_problem(topology, "allgather", groups=[[0, 5]])
    assert api.bound(problem).algbw == 24 * GB
    assert api.compile(problem, "msccl").artefacts[0].report.ok
    assert problem.topology.whole is topology.whole
    # NVLink alone serves GPUs that it joins, and PCIe is not counted on.
    joined = api.make_problem(topology, "allgather", groups=[[0, 1, 2]])
    assert joined.topology is topology
    # Two groups at once: PCIe for one, while the other keeps NVLink where it has it.
    both = api.make_problem(topology, "allgather", groups=[[0, 5], [1, 2]])
    hops = {
        (a, b): [both.topology.links[i].bandwidth for i in route]
        for a, b, route in routes(both.topology, both.groups)
    }
    assert hops[1, 2] == [50 * GB]
    assert hops[0, 5] == [12 * GB] * 2
    path = tmp_path / "mesh.yaml"
    path.write_text(export_flat(topology))
    assert run(["bound", str(path), "-c", "allgather", "--group", "0,5"]) == 0
    assert "the group takes slower wires" in capsys.readouterr().err
