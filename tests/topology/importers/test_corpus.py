"""Small files of every format and for every trap; their names say what must come of them.

``good-*`` is imported without a warning, ``wNN-*`` with that one, ``bad-*`` is refused.
"""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from colsynth import api
from colsynth.cli.codes import explanations
from colsynth.errors import InputError
from colsynth.topology import export_flat, importers, load, presets
from colsynth.topology.importers import Request, Wishes, import_topology
from colsynth.topology.importers.existing import box_of
from tests.each import each

CORPUS = Path(__file__).parents[2] / "corpus" / "machines"
FILES = sorted(CORPUS.iterdir())


BOXES = {"w23": "dgx-h100", "w24": "dgx-h100", "w25": "dgx-h100", "good-ibnet": "dgx-h100"}
"""What hosts of fabrics are, by the beginning of the name."""


def brought(path, **options):
    box = next((box for begin, box in BOXES.items() if path.name.startswith(begin)), None)
    given = {"box": box, **options}
    return import_topology([(path.name, path.read_bytes())], Request(**given))


@each("path", FILES)
def test_a_file_of_the_corpus_is_what_its_name_says(path):
    if path.name.startswith("bad-"):
        with pytest.raises(InputError) as caught:
            brought(path)
        found = caught.value.diagnostic
        assert found.code in ("CS150", "CS152", "CS153")
        assert found.span is not None
        assert found.span.line >= 1
        return
    done = brought(path)
    assert load("again", data=done.text.encode()) == done.topology
    assert "\x1b" not in done.text
    codes = {warning.code for warning in done.warnings}
    if path.name.startswith("good-"):
        assert codes <= {"W16", "W22", "W25"}
    else:
        code = path.name[:3].upper()
        assert code in codes
        with pytest.raises(InputError) as caught:
            brought(path, strict=True)
        assert caught.value.diagnostic.code in codes


def test_every_warning_is_explained_and_has_a_file():
    folder = Path(importers.__file__).parent
    used = {
        code
        for path in folder.glob("*.py")
        for code in re.findall(r'"(W[0-9]{2})"', path.read_text("utf-8"))
    }
    assert sorted(used - set(explanations())) == []
    known = {code for code in explanations() if re.fullmatch(r"W[0-9]{2}", code)}
    assert sorted(known - used) == []
    assert sorted(used - {path.name[:3].upper() for path in FILES}) == []


def text(name, **options):
    return brought(CORPUS / name, **options).text


def test_the_basis_of_bandwidths_is_the_users_choice():
    found = {basis: text("good-pair.xml", wishes=Wishes(basis)) for basis in ("spec", "library")}
    assert "nvlink: 25 GB/s" in found["spec"]
    assert "nvlink: 20 GB/s" in found["library"]
    assert "topo.h" in found["library"]


def test_the_name_of_the_gpu_decides_its_links():
    assert "nvlink: 50 GB/s" in text("w16-escapes.txt", wishes=Wishes(gpu="sm100"))
    assert "NVLink 4" in text("good-with-names.txt")


def test_a_listing_names_the_gpus_of_a_matrix():
    matrix = CORPUS / "w16-escapes.txt"
    links = "".join(f"\t Link {i}: 53.125 GB/s\n" for i in range(12))
    listing = "".join(f"GPU {i}: NVIDIA B200 (UUID: GPU-{i})\n{links}" for i in range(2))
    files = [(matrix.name, matrix.read_bytes()), ("nvlink.txt", listing.encode())]
    done = import_topology(files, Request())
    assert "nvlink: 50 GB/s" in done.text
    assert {x.code for x in done.warnings} == {"W22"}
    files[1] = ("nvlink.txt", listing.replace("Link 3: 53.125 GB/s", "Link 3: <inactive>").encode())
    assert "W12" in {x.code for x in import_topology(files, Request()).warnings}
    with pytest.raises(InputError) as caught:
        import_topology([*files, files[0]], Request())
    assert caught.value.diagnostic.code == "CS155"


def test_links_between_gpus_of_amd_are_counted_by_their_bandwidths():
    done = brought(CORPUS / "good-amd-smi.txt", wishes=Wishes(gpu="gfx90a"))
    assert done.topology.links[0].bandwidth == 4 * 50 * 10**9
    assert {x.code for x in done.warnings} == set()


@pytest.mark.parametrize("name", ["good-amd-smi.json", "good-amd-smi-old.json"])
def test_all_schemas_of_amd_smi_say_the_same(name):
    wishes = Wishes(gpu="gfx90a")
    tables = brought(CORPUS / "good-amd-smi.txt", wishes=wishes).topology
    assert brought(CORPUS / name, wishes=wishes).topology.links == tables.links


def test_bandwidths_alone_tell_the_links():
    done = brought(CORPUS / "good-bandwidths-alone.txt", wishes=Wishes(gpu="gfx90a"))
    assert "[0, 4, 0]" in done.text


def test_the_summary_of_nvidia_smi_names_the_gpus():
    assert not [x for x in brought(CORPUS / "good-with-summary.txt").warnings if x.code == "W16"]


def test_rails_of_the_file_are_planes_of_the_fabric():
    done = brought(CORPUS / "good-rails.xml", boxes=2)
    assert "{name: ib, kind: switch, count: 2}" in done.text


def test_a_fabric_needs_the_rate_of_the_nics():
    with pytest.raises(InputError) as caught:
        brought(CORPUS / "w22-no-rate.txt", boxes=2)
    assert caught.value.diagnostic.code == "CS153"
    assert "--nic-bandwidth" in caught.value.diagnostic.help


def test_a_node_on_a_fabric_is_attached_by_the_names_of_its_nics():
    fabric = CORPUS / "good-ibnetdiscover.txt"
    hosts = ("hosts", b"two slots=2\none  # the first\n")
    request = {"fabric": (fabric.name, fabric.read_bytes()), "hosts": hosts}
    node = CORPUS / "w09-all-on-one-host-bridge.xml"
    done = brought(node, **request)
    assert "# Boxes, in order: two, one." in done.text
    names = [x.name for x in done.topology.nodes]
    for box in (0, 1):
        ends = [names.index(f"nic{box}.0"), names.index("leaf0")]
        assert tuple(ends) in done.topology.link_between
    cable = done.topology.link_between[names.index("leaf0"), names.index("spine")]
    assert done.topology.links[cable].bandwidth == 2 * 50 * 10**9
    with pytest.raises(InputError) as caught:
        brought(node, **{**request, "hosts": ("hosts", b"three\n")})
    assert caught.value.diagnostic.code == "CS155"


def test_uplinks_of_slurm_carry_what_is_below_over_the_oversubscription():
    done = brought(CORPUS / "w23-tree.conf", oversubscription=Fraction(4))
    names = [x.name for x in done.topology.nodes]
    cable = done.topology.link_between[names.index("leaf0"), names.index("spine")]
    assert done.topology.links[cable].bandwidth == 2 * 400 * 10**9 / 4


@pytest.mark.parametrize("kind", ["tree", "blocks"])
def test_both_files_of_slurm_say_the_same(kind):
    one, other = (brought(CORPUS / f"w23-{kind}.{end}").topology for end in ("conf", "yaml"))
    assert one.links == other.links


def test_a_box_may_have_a_leaf_of_its_own():
    text = export_flat(load("dgx-a100", nodes=2)).replace("nvswitch", "leaf")
    box = ("lab.yaml", text.encode())
    done = brought(CORPUS / "w23-tree.conf", box=box)
    assert {"leaf0", "leaf-x0"} <= {node.name for node in done.topology.nodes}


def test_an_nvlink_domain_is_one_box():
    topology = brought(CORPUS / "w23-blocks.conf").topology
    assert (topology.boxes, topology.size) == ((0, 1), 32)


@pytest.mark.parametrize("preset", [x.name for x in presets()])
def test_import_of_an_export_is_the_identity(preset):
    text = export_flat(load(preset, nodes=2))
    done = import_topology([("a.yaml", text.encode())], Request())
    assert done.text == text
    assert done.topology == load(preset, nodes=2)


@pytest.mark.parametrize("preset", [x.name for x in presets()])
def test_a_preset_on_a_fabric_of_one_switch_is_the_preset(preset):
    conf = b"SwitchName=s Nodes=n[1-2]\n"
    done = import_topology([("topology.conf", conf)], Request(box=preset))
    one, other = (
        x.links for x in (done.topology, load(preset, nodes=2, settings=PLAIN.get(preset)))
    )
    assert sorted(map(carried, one)) == sorted(map(carried, other))


def carried(link):
    return link.bandwidth, link.latency


PLAIN = {name: {"planes": "1"} for name in ("dgx-a100", "dgx-h100", "mi300x")}


def speeds(name, **options):
    """Return the distinct bandwidths in GB/s of a file of the corpus."""
    links = brought(CORPUS / name, **options).topology.links
    return {float(link.bandwidth / 10**9) for link in links}


@pytest.mark.parametrize("name", ["good-taccl-1MB", "w26-taccl-32KB", "w26-taccl-1KB"])
def test_times_of_taccl_are_divided_by_their_scale(name):
    done = brought(CORPUS / f"{name}.json", boxes=2)
    assert {x.bandwidth for x in done.topology.links} == {x * 10**9 for x in (10, 25, 50)}
    assert {float(x.latency * 10**6) for x in done.topology.links} == {0.5}


def test_matrices_of_taccl_lead_from_the_column_to_the_row():
    topology = brought(CORPUS / "w26-taccl-custom.json").topology
    ends = {(x.source, x.target): float(x.bandwidth / 10**9) for x in topology.links}
    assert ends == {(1, 0): 100, (2, 1): 50, (0, 2): 25}


def test_teccl_means_a_preset():
    done = brought(CORPUS / "good-teccl.json")
    assert done.topology.links == load("dgx2", nodes=2).links


def test_dimensions_of_astra_sim_are_in_gib_and_the_first_is_the_box():
    topology = brought(CORPUS / "good-astra-sim.yml").topology
    assert (topology.size, topology.boxes) == (24, tuple(range(6)))
    assert speeds("good-astra-sim.yml") == {x * 2**30 / 10**9 for x in (50, 12.5, 25)}
    names = [node.name for node in topology.nodes]
    peers = {names[x.target] for x in topology.links if names[x.source] == "gpu0"}
    assert peers == {"gpu1", "gpu2", "gpu3", "gpu4", "gpu8", "switch-x-x0"}


def test_capacities_are_multiples_of_a_link():
    done = brought(CORPUS / "good-capacity.csv")
    assert "link: 50 GB/s" in done.text
    assert "[0, 4, 1]" in done.text
    assert "{from: gpu, to: switch, count: 6," in done.text


def matrix(nics, near, affinity, between=None):
    """Return what nvidia-smi prints of four GPUs, usually on NVSwitches; only their own rows."""
    names = [f"GPU{i}" for i in range(4)] + nics
    linked = between or (lambda *_: "NV18")
    rows = [
        [
            *(" X " if i == j else linked(i, j) for j in range(4)),
            *(near(i, k) for k in range(len(nics))),
        ]
        for i in range(4)
    ]
    lines = [[f"GPU{i}", *row, affinity(i)] for i, row in enumerate(rows)]
    return "\n".join("\t".join(line) for line in [["", *names, "CPU Affinity"], *lines]).encode()


def test_nics_of_a_socket_are_paired_with_its_gpus_and_no_others():
    near = lambda i, k: "NODE" if i // 2 == k // 2 else "SYS"  # noqa: E731
    data = matrix([f"mlx5_{k}" for k in range(4)], near, lambda i: str(i // 2))
    done = import_topology([("m", data)], Request(wishes=Wishes(nic_rate=Fraction(10**9))))
    (doubt,) = (x for x in done.warnings if x.code == "W09")
    assert doubt.phrase == "2 GPUs equally far from 2 NICs"
    assert "{from: gpu, to: nic, join: blocks," in done.text


def test_ports_of_a_card_share_its_slot():
    text = (CORPUS / "good-rails.xml").read_text()
    port = '<net name="mlx5_9" dev="1" speed="200000" port="2" guid="0x1" maxconn="1" gdr="1"/>'
    data = (
        text.replace("</nic>", f"{port}</nic>", 1).replace('rail="0"', "").replace('rail="1"', "")
    )
    done = import_topology([("topo.xml", data.encode())], Request(boxes=2))
    names = [node.name for node in done.topology.nodes]
    card = done.topology.link_between[names.index("cpu0"), names.index("pcie0")]
    assert done.topology.links[card].bandwidth == Fraction("31.5") * 10**9
    assert "W09" not in {x.code for x in done.warnings}


def test_doubtful_pairs_follow_the_bus_ids():
    """Whatever the order of the file and of the ranks."""
    text = (CORPUS / "w09-all-on-one-host-bridge.xml").read_text()
    swapped = text.replace("0000:20:00.0", "0000:40:00.0")  # mlx5_0 now comes behind mlx5_1
    wishes = Wishes(nic_rate=Fraction(10**9))
    for data, in_order in ((text, True), (swapped, False)):
        done = import_topology([("topo.xml", data.encode())], Request(wishes=wishes))
        assert ("{from: gpu, to: nic, join: blocks," in done.text) == in_order
        assert ("counts:\n        - [0, 1]\n        - [1, 0]" in done.text) == (not in_order)


def test_gpus_that_share_a_switch_and_its_nics_share_its_links():
    """As on DGX A100, where storage NICs are far from all GPUs."""
    near = lambda i, k: "SYS" if k == 4 else "PXB" if i // 2 == k // 2 else "SYS"  # noqa: E731
    data = matrix([f"mlx5_{k}" for k in range(5)], near, lambda i: str(i // 2))
    request = Request(boxes=2, wishes=Wishes(gpu="sm80", nic_rate=Fraction(25 * 10**9)))
    done = import_topology([("m", data)], request)
    assert "W08" in {x.code for x in done.warnings}
    assert "{from: gpu, to: pcie, join: blocks, bandwidth: $pcie," in done.text
    assert "{from: pcie, to: nic, join: blocks, bandwidth: $nic," in done.text
    assert "pcie: 31.5 GB/s" in done.text
    assert "assumed, not in the file" in done.text


def test_assumed_nics_share_the_pcie_link_of_their_gpus():
    """A GPU on PCIe takes no more from a NIC that a file leaves out than from a listed one."""
    near = lambda i, k: "PHB" if i // 2 == k // 2 else "SYS"  # noqa: E731
    rates = []
    for names in ([f"mlx5_{k}" for k in range(4)], []):
        data = matrix(names, near, lambda i: str(i // 2), near)
        request = Request(boxes=2, wishes=Wishes(gpu="sm80", nic_rate=Fraction(25 * 10**9)))
        done = import_topology([("m", data)], request)
        assert ("W22" in {x.code for x in done.warnings}) is not bool(names)
        rates.append(api.bound(api.make_problem(done.topology, "allgather")).algbw)
    assert rates[0] == rates[1]


def test_a_generator_is_no_box():
    with pytest.raises(InputError, match="--box ring:4: a generator makes no box"):
        box_of("ring:4")


def test_a_topology_that_cannot_be_is_refused_by_the_name_of_its_file():
    """Its text is shown to nobody, so no line of it is named."""
    data = b"SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\n"
    with pytest.raises(InputError, match="cannot be reached") as caught:
        import_topology([("t.conf", data)], Request(box="dgx-a100"))
    assert caught.value.diagnostic.span is None
    assert any(note.startswith("t.conf says so") for note in caught.value.diagnostic.notes)
