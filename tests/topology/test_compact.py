"""What the rules of the compact form mean."""

from textwrap import dedent

import pytest

from colsynth.errors import InputError
from colsynth.model import Kind
from colsynth.topology.document import parse_document
from colsynth.topology.load import read_topology
from colsynth.topology.presets import folder

GB = 10**9

HEAD = """
version: 1
wires: all
name: lab
boxes: {boxes}
box:
  nodes:
    - {{name: gpu, kind: gpu, count: {gpus}}}
    - {{name: chip, kind: switch, count: {chips}}}
  links:
    - {{from: gpu, to: chip, bandwidth: 10 GB/s}}
"""


def read(text, nodes=None, **settings):
    return read_topology(parse_document(dedent(text), "lab.yaml"), nodes, settings)


def ends(topology):
    """Return {(source name, target name): GB/s}."""
    return {
        (topology.nodes[x.source].name, topology.nodes[x.target].name): x.bandwidth / GB
        for x in topology.links
    }


def box(rule, gpus=4, chips=2):
    """Return the links of one box that a rule adds to GPUs that are joined by switches."""
    text = HEAD.format(boxes=1, gpus=gpus, chips=chips)
    plain, more = ends(read(text)), ends(read(f"{text}    - {rule}\n"))
    assert plain.items() <= more.items()
    return {pair: more[pair] for pair in more if pair not in plain}


def test_all_pairs_of_a_group_with_itself():
    added = box("{from: gpu, to: gpu, bandwidth: 1 GB/s}")
    names = [f"gpu0.{i}" for i in range(4)]
    assert added == {(a, b): 1 for a in names for b in names if a != b}


def test_one_way_pairs_of_two_lists():
    added = box("{from: [gpu0, gpu1], to: [gpu2, gpu3], bandwidth: 1 GB/s, one-way: true}")
    assert set(added) == {(f"gpu0.{a}", f"gpu0.{b}") for a in (0, 1) for b in (2, 3)}


def test_one_way_all_pairs_of_a_group_are_both_directions():
    both = box("{from: gpu, to: gpu, bandwidth: 1 GB/s}")
    assert box("{from: gpu, to: gpu, bandwidth: 1 GB/s, one-way: true}") == both


def test_parallel_links_add_up():
    added = box("{from: gpu0, to: gpu1, count: 3, bandwidth: 2.5 GB/s}")
    assert added == {("gpu0.0", "gpu0.1"): 7.5, ("gpu0.1", "gpu0.0"): 7.5}


def test_counts_between_two_selections():
    rule = "{from: [gpu0, gpu1], to: [gpu2, gpu3], bandwidth: 2 GB/s, counts: [[1, 0], [0, 3]]}"
    assert box(rule) == {
        ("gpu0.0", "gpu0.2"): 2,
        ("gpu0.2", "gpu0.0"): 2,
        ("gpu0.1", "gpu0.3"): 6,
        ("gpu0.3", "gpu0.1"): 6,
    }


def test_one_way_counts_within_a_group_may_differ_by_direction():
    rule = "{from: gpu, to: gpu, bandwidth: 1 GB/s, counts: [[0, 2], [1, 0]], one-way: true}"
    assert box(rule, gpus=2) == {("gpu0.0", "gpu0.1"): 2, ("gpu0.1", "gpu0.0"): 1}


def joined(join, gpus, nics):
    """Return {(gpu, nic)} that a join makes."""
    text = f"""
    version: 1
    name: lab
    boxes: 2
    box:
      nodes:
        - {{name: gpu, kind: gpu, count: {gpus}}}
        - {{name: nic, kind: nic, count: {nics}}}
      links:
        - {{from: gpu, to: gpu, bandwidth: 1 GB/s}}
        - {{from: gpu, to: nic, join: {join}, bandwidth: 1 GB/s}}
    fabric:
      nodes:
        - {{name: leaf, kind: switch}}
      links:
        - {{from: nic, to: leaf, bandwidth: 1 GB/s}}
    """
    pairs = ends(read(text))
    found = [(a, b) for a, b in pairs if a.startswith("gpu0") and b.startswith("nic0")]
    assert all((b, a) in pairs for a, b in found)
    return [(int(a.split(".")[1]), int(b.split(".")[1])) for a, b in found]


@pytest.mark.parametrize(
    ("join", "gpus", "nics", "pairs"),
    [
        ("blocks", 4, 4, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("blocks", 4, 2, [(0, 0), (1, 0), (2, 1), (3, 1)]),
        ("blocks", 2, 4, [(0, 0), (0, 1), (1, 2), (1, 3)]),
        ("round-robin", 4, 2, [(0, 0), (1, 1), (2, 0), (3, 1)]),
        ("round-robin", 2, 4, [(0, 0), (0, 2), (1, 1), (1, 3)]),
        ("round-robin", 3, 2, [(0, 0), (1, 1), (2, 0)]),
        ("all", 2, 2, [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_joins(join, gpus, nics, pairs):
    assert joined(join, gpus, nics) == pairs


SPINE = """
version: 1
name: tree
parameters: {up: 5 GB/s, leaves: 2, delay: 2 us}
boxes: 2
box:
  nodes: [{name: gpu, kind: gpu}]
fabric:
  nodes:
    - {name: leaf, kind: switch, count: $leaves}
    - {name: spine, kind: switch, capabilities: [reduce]}
  links:
    - {from: gpu, to: leaf, join: round-robin, bandwidth: 8 GB/s, latency: $delay}
    - {from: leaf, to: spine, bandwidth: $up}
"""


def test_links_inside_the_fabric_are_there_once():
    pairs = ends(read(SPINE, nodes=3))
    assert pairs["leaf0", "spine"] == 5
    assert pairs["gpu2", "leaf0"] == 8
    assert len(pairs) == 2 * (3 * 2 + 2)


def test_a_group_without_count_carries_no_number():
    topology = read(SPINE)
    names = [node.name for node in topology.nodes]
    assert names == ["gpu0", "gpu1", "leaf0", "leaf1", "spine"]
    assert topology.nodes[-1].capabilities == ("reduce",)
    assert [node.kind for node in topology.nodes[:2]] == [Kind.GPU] * 2


def test_switches_and_nics_may_store_and_forward():
    text = SPINE.replace("from: gpu", "from: nic").replace(
        "nodes: [{name: gpu, kind: gpu}]", STORING
    )
    found = read(text.replace("[reduce]", "[store-and-forward, reduce]"), leaves="1").nodes
    waits = ("store-and-forward",)
    powers = {node.name: node.capabilities for node in found if node.capabilities}
    assert powers == {"nic0": waits, "nic1": waits, "spine": ("reduce", *waits)}


STORING = """nodes:
    - {name: gpu, kind: gpu}
    - {name: nic, kind: nic, capabilities: [store-and-forward]}
  links:
    - {from: gpu, to: nic, bandwidth: 8 GB/s}"""


def test_parameters_of_every_kind():
    topology = read(SPINE, up="1 GB/s", leaves="1", delay="3 us")
    assert topology.name == "tree x2 delay=3 us leaves=1 up=1 GB/s"
    assert ends(topology)["leaf0", "spine"] == 1
    assert {float(x.latency) for x in topology.links} == {3e-6, 0}


def test_boxes_of_the_file_hold_until_nodes_says_otherwise():
    assert read(SPINE).size == 2
    assert read(SPINE, nodes=5).size == 5


def test_nics_do_not_join_the_gpus_of_one_box():
    text = """
    version: 1
    name: loose
    box:
      nodes: [{name: gpu, kind: gpu, count: 2}, {name: nic, kind: nic}]
      links: [{from: gpu, to: nic, bandwidth: 1 GB/s}]
    fabric:
      nodes: [{name: leaf, kind: switch}]
      links: [{from: nic, to: leaf, bandwidth: 1 GB/s}]
    """
    assert read(text, nodes=2).size == 4
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.diagnostic.code == "CS116"


def test_the_fabric_is_checked_even_where_it_is_left_out():
    text = SPINE.replace("to: leaf, join", "to: leef, join")
    with pytest.raises(InputError) as caught:
        read(text, nodes=1)
    assert caught.value.diagnostic.code == "CS112"


def test_the_examples_of_the_guide_load():
    guide = (folder() / "../colsynth/guide/topologies.md").resolve().read_text(encoding="utf-8")
    lab, _, pair = (block.split("```")[0] for block in guide.split("```yaml\n")[1:])
    assert [x.name for x in read(lab).nodes if x.kind is Kind.NIC][-1] == "nic1.3"
    assert read(lab, nodes=3, planes="4").size == 24
    for planes, code in ((10**9, "CS125"), (10**9 + 1, "CS123")):  # as the schema says
        with pytest.raises(InputError) as caught:
            read(lab, planes=str(planes))
        assert caught.value.diagnostic.code == code
    assert [read(pair).nodes[node].name for node in read(pair).ranks] == ["b", "a"]
