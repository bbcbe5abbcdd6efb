"""What a machine prints leads to the preset of that machine, up to the numbering."""

import random
from pathlib import Path

import networkx as nx
import pytest

from colsynth import api, topology
from colsynth.topology.importers import Request, Wishes, import_topology
from colsynth.topology.summary import matrix

GB = 10**9
SAMPLES = Path("/work/shared/samples/topology")


MI250 = (
    *("1:4 2:1 4:2", "0:4 2:1 3:1 5:1", "0:1 1:1 3:4 6:1", "1:1 2:4 7:2"),
    *("0:2 5:4 12:1", "1:1 4:4 13:1 14:1", "2:1 7:4 13:1 14:1", "3:2 6:4 15:1"),
    *("9:4 10:1 12:2", "8:4 10:1 11:1 13:1", "8:1 9:1 11:4 14:1", "9:1 10:4 15:2"),
    *("4:1 8:2 13:4", "5:1 6:1 9:1 12:4", "5:1 6:1 10:1 15:4", "7:1 11:2 14:4"),
)
"""xGMI links of a real node by GCD, as other:count (ROCm/rccl, tools/topo_expl topo_16p1h.xml)."""


def real_counts():
    """Return the links of the real MI250 node."""
    rows = [[0] * 16 for _ in MI250]
    for row, text in zip(rows, MI250, strict=True):
        for other, count in (pair.split(":") for pair in text.split()):
            row[int(other)] = int(count)
    return rows


def counts(name, unit, order):
    """Return the links of a preset between its GPUs, renumbered."""
    rows = matrix(topology.load(name))
    return [[int(rows[i][j] / (unit * GB)) for j in order] for i in order]


def dump(rows):
    """Return a dump of RCCL with these xGMI links; every GPU has a slot of its own."""
    lines = ['<system version="2">', '<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">']
    for i, row in enumerate(rows):
        links = "".join(
            f'<xgmi target="0000:{j:02x}:00.0" count="{n}" tclass="0x038000"/>'
            for j, n in enumerate(row)
            if n
        )
        lines.append(
            f'<pci busid="0000:{i:02x}:00.0" class="0x038000" link_speed="16.0 GT/s PCIe" '
            f'link_width="16"><gpu dev="{i}" sm="104" gcn="910" rank="{i}">{links}</gpu></pci>'
        )
    return "\n".join([*lines, "</cpu></system>"]).encode()


def listing(rows):
    """Return what nvidia-smi topo -m prints of a DGX-1 with these NVLinks; GPUs share four NICs."""
    names = [f"GPU{i}" for i in range(8)] + [f"mlx5_{i}" for i in range(4)]
    lines = ["\t".join(["", *names, "CPU Affinity"])]
    for i, row in enumerate(rows):
        cells = [" X " if i == j else f"NV{n}" if n else "SYS" for j, n in enumerate(row)]
        ports = ["PIX" if i // 2 == k else "PHB" if i // 4 == k // 2 else "SYS" for k in range(4)]
        lines.append("\t".join([names[i], *cells, *ports, "0-19" if i < 4 else "20-39"]))
    return "\n".join(lines).encode()


def graph_of(machine):
    graph = nx.DiGraph()
    for index, node in enumerate(machine.nodes):
        graph.add_node(index, kind=node.kind, box=node.box is None)
    for link in machine.links:
        graph.add_edge(link.source, link.target, carries=(link.bandwidth, link.latency))
    return graph


def same(one, other):
    return nx.is_isomorphic(
        graph_of(one),
        graph_of(other),
        node_match=lambda a, b: a == b,
        edge_match=lambda a, b: a["carries"] == b["carries"],
    )


def test_a_dump_of_an_mi250_has_the_bound_of_the_preset():
    done = import_topology([("topo.xml", dump(real_counts()))], Request())
    preset = topology.load("mi250")
    assert same(done.topology, preset)
    bounds = [
        api.bound(api.make_problem(machine, "allgather")).algbw
        for machine in (done.topology, preset)
    ]
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize("real", [False, True])
def test_the_matrix_of_a_dgx_1_is_the_preset_with_its_nics(real):
    path = SAMPLES / "nvidia_smi" / "dgx1_v100_8gpu_4nic.txt"
    if real and not path.exists():
        pytest.skip("the samples are not here")
    # Renumbering within the pairs that share a NIC keeps who shares one.
    rows = counts("dgx-1v", 25, [0, 1, 2, 3, 4, 5, 6, 7])
    data = path.read_bytes() if real else listing(rows)
    wishes = Wishes(nic_rate=topology.load("dgx-1v", nodes=2).links[-1].bandwidth)
    request = Request(boxes=2, wishes=wishes)
    done = import_topology([("matrix.txt", data)], request)
    assert same(done.topology, topology.load("dgx-1v", nodes=2))


def test_a_renumbered_cube_mesh_is_still_the_preset():
    rows = counts("dgx-1v", 25, random.Random(3).sample(range(8), 8))
    done = import_topology([("matrix.txt", listing(rows))], Request())
    assert same(done.topology, topology.load("dgx-1v"))
