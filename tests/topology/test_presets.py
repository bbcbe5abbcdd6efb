"""The shipped machines: their figures, and how they are found."""

from fractions import Fraction

import pytest

import colsynth
from colsynth.errors import InputError
from colsynth.model import Kind
from colsynth.topology import load, presets
from colsynth.topology.presets import folder, preset_path
from colsynth.topology.summary import matrix, totals

GB = 10**9
NAMES = (
    *("dgx-1v", "dgx-a100", "dgx-b200", "dgx-h100", "dgx2", "gb200-nvl72"),
    *("mi250", "mi300x", "ndv2"),
)


def per_gpu(topology):
    """Return the distinct (egress, ingress) of the GPUs in GB/s."""
    sums = [x for x in totals(topology) if x.rank is not None]
    return {(x.total_egress / GB, x.total_ingress / GB) for x in sums}


def test_all_machines_are_listed_by_name():
    assert tuple(preset.name for preset in presets()) == NAMES


def test_a_preset_is_called_like_its_file():
    assert [preset.path.stem for preset in presets()] == [preset.name for preset in presets()]


def test_names_and_aliases_are_unique():
    words = [word for preset in presets() for word in (preset.name, *preset.aliases)]
    assert len(words) == len(set(words))


def test_an_alias_is_the_same_machine():
    assert load("ndv4", nodes=2) == load("dgx-a100", nodes=2)


def test_a_preset_can_be_named_by_its_path():
    assert load(str(folder() / "mi250.yaml"), nodes=2) == load("mi250", nodes=2)


def test_an_installed_package_brings_its_own_presets(tmp_path, monkeypatch):
    shipped = tmp_path / "colsynth" / "_topologies"
    shipped.mkdir(parents=True)
    (shipped / "lab.yaml").write_text((folder() / "mi250.yaml").read_text().replace("mi250", "lab"))
    monkeypatch.setattr(colsynth, "__file__", str(tmp_path / "colsynth" / "__init__.py"))
    assert [preset.name for preset in presets()] == ["lab"]
    assert load("lab").size == 16


def test_unknown_preset_offers_the_nearest():
    with pytest.raises(InputError) as caught:
        preset_path("dgx-a10")
    assert caught.value.diagnostic.code == "CS120"
    assert "did you mean 'dgx-a100'?" in caught.value.diagnostic.help


@pytest.mark.parametrize(
    ("name", "gpus", "inside", "with_fabric"),
    [
        ("dgx-a100", 8, {(300, 300)}, {(325, 325)}),
        ("dgx-b200", 8, {(900, 900)}, {(950, 950)}),
        ("dgx-h100", 8, {(450, 450)}, {(500, 500)}),
        ("gb200-nvl72", 72, {(900, 900)}, {(950, 950)}),
        ("dgx-1v", 8, {(150, 150)}, {(Fraction("162.5"), Fraction("162.5"))}),
        ("ndv2", 8, {(150, 150)}, {(150, 150), (Fraction("162.5"), Fraction("162.5"))}),
        ("dgx2", 16, {(125, 125)}, {(125, Fraction("137.5")), (Fraction("137.5"), 125)}),
        ("mi250", 16, {(350, 350)}, {(366, 366)}),
        ("mi300x", 8, {(448, 448)}, {(498, 498)}),
    ],
)
def test_bandwidth_per_gpu(name, gpus, inside, with_fabric):
    alone, three = load(name), load(name, nodes=3)
    assert (alone.size, three.size) == (gpus, 3 * gpus)
    assert per_gpu(alone) == inside
    assert per_gpu(three) == with_fabric


@pytest.mark.parametrize(
    ("name", "per_box"),
    [
        ("dgx-a100", 200),
        ("dgx-b200", 400),
        ("dgx-h100", 400),
        ("gb200-nvl72", 3600),
        ("dgx-1v", 50),
        ("ndv2", Fraction("12.5")),
        ("dgx2", 100),
        ("mi250", 256),
        ("mi300x", 400),
    ],
)
def test_bandwidth_between_boxes(name, per_box):
    topology = load(name, nodes=2)
    box = [node.box for node in topology.nodes]
    for number in (0, 1):
        out = [x for x in topology.links if box[x.source] == number and box[x.target] is None]
        into = [x for x in topology.links if box[x.target] == number and box[x.source] is None]
        assert sum(x.bandwidth for x in out) == per_box * GB
        assert sum(x.bandwidth for x in into) == per_box * GB


def test_dgx_a100_as_forestcoll_models_it():
    topology = load("dgx-a100", nodes=2)
    ends = {
        (topology.nodes[x.source].name, topology.nodes[x.target].name): x.bandwidth / GB
        for x in topology.links
    }
    assert topology.name == "dgx-a100 x2"
    for box in (0, 1):
        for i in range(8):
            assert ends[f"gpu{box}.{i}", f"nvswitch{box}"] == 300
            assert ends[f"gpu{box}.{i}", f"nic{box}.{i}"] == 25
            assert ends[f"nic{box}.{i}", f"ib{i % 2}"] == 25
    assert len(ends) == 2 * (3 * 8) * 2
    assert topology.is_symmetric


def test_mi250_has_seven_links_per_gcd_in_fours_twos_and_ones():
    rows = matrix(load("mi250"))
    counts = [sorted((int(x / (50 * GB)) for x in row if x), reverse=True) for row in rows]
    assert sorted(map(tuple, counts)) == [(4, 1, 1, 1)] * 8 + [(4, 2, 1)] * 8
    assert rows == [list(column) for column in zip(*rows, strict=True)]


def test_mi300x_is_fully_connected():
    rows = matrix(load("mi300x"))
    assert all(rows[i][j] == (64 * GB if i != j else 0) for i in range(8) for j in range(8))


def test_the_two_cube_meshes_are_the_same_graph():
    networkx = pytest.importorskip("networkx")
    graphs = []
    for name in ("dgx-1v", "ndv2"):
        graph = networkx.DiGraph()
        for link in load(name).links:
            graph.add_edge(link.source, link.target, bandwidth=link.bandwidth)
        graphs.append(graph)
    same = networkx.algorithms.isomorphism.numerical_edge_match("bandwidth", 0)
    assert networkx.is_isomorphic(*graphs, edge_match=same)


@pytest.mark.parametrize("name", NAMES)
def test_one_box_has_neither_nics_nor_fabric(name):
    topology = load(name)
    assert {node.kind for node in topology.nodes} <= {Kind.GPU, Kind.SWITCH}
    assert {node.box for node in topology.nodes} == {0}


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_a_box_say_so_and_fabric_switches_do_not(name):
    topology = load(name, nodes=2)
    assert topology.boxes == (0, 1)
    for node in topology.nodes:
        if node.box is None:
            assert node.kind is Kind.SWITCH
    assert any(node.box is None for node in topology.nodes)


@pytest.mark.parametrize("name", NAMES)
def test_links_are_sorted_and_unique_and_have_a_latency(name):
    links = load(name, nodes=2).links
    pairs = [(link.source, link.target) for link in links]
    assert pairs == sorted(set(pairs))
    assert all(link.latency > 0 for link in links)


def test_ranks_follow_the_boxes():
    topology = load("dgx-h100", nodes=2)
    names = [topology.nodes[node].name for node in topology.ranks]
    assert names == [f"gpu{box}.{i}" for box in (0, 1) for i in range(8)]


def test_capabilities_of_the_hopper_switch():
    found = {node.capabilities for node in load("dgx-h100").nodes if node.kind is Kind.SWITCH}
    assert found == {("multicast", "reduce")}
    assert all(not node.capabilities for node in load("dgx-a100").nodes)


def test_settings_change_figures_and_the_name():
    topology = load("dgx-a100", nodes=2, settings={"nvlink": "20 GB/s", "planes": "1"})
    assert topology.name == "dgx-a100 x2 nvlink=20 GB/s planes=1"
    assert per_gpu(topology) == {(265, 265)}
    assert sum(node.box is None for node in topology.nodes) == 1


def test_a_setting_equal_to_the_default_changes_nothing():
    changed = load("dgx-a100", nodes=2, settings={"nic": "200 Gb/s", "planes": "2"})
    assert changed == load("dgx-a100", nodes=2)


def test_four_nics_are_shared_by_two_gpus_each():
    topology = load("dgx-a100", nodes=2, settings={"nics": "4", "nic": "12.5 GB/s"})
    shared = {
        topology.nodes[x.target].name: []
        for x in topology.links
        if topology.nodes[x.target].kind is Kind.NIC
    }
    for link in topology.links:
        if topology.nodes[link.source].kind is Kind.GPU and link.target >= 0:
            name = topology.nodes[link.target].name
            if name in shared:
                shared[name].append(topology.nodes[link.source].name)
    assert shared["nic0.1"] == ["gpu0.2", "gpu0.3"]
    assert [len(gpus) for gpus in shared.values()] == [2] * 8
