"""Slips in files that are imported are refused where they stand, not read as something else."""

import re
from pathlib import Path

import pytest

from colsynth.cli.main import run
from colsynth.topology.importers.rates import generation

CORPUS = Path(__file__).parents[2] / "corpus" / "machines"

CASES = [
    ("m.csv", "0,x,50\n50,0,50\n50,50,0\n", "1:3: error[CS152]: 'x' is no capacity"),
    ("m.csv", "0,50,50\n50,0,5O\n50,50,0\n", "2:6: error[CS152]: '5O' is no capacity"),
    ("m.csv", "0,x,y\n50,0,50\n50,50,0\n", "1:3: error[CS152]: 'x' is no capacity"),
    ("m.csv", "0,x\n50,0\n", "1:3: error[CS152]: 'x' is no capacity"),
    ("m.csv", ",a,b\nx,0,1\nb,1,0\n", "2:1: error[CS152]: no column is called 'x'"),
    ("t.txt", "\tGPU0\tGPU1\tGPU1\n", "1:1: error[CS152]: column GPU1 is there twice"),
    ("m.csv", ",a,b\na,0,1\na,1,0\n", "3:1: error[CS152]: the name 'a' is there twice"),
    ("topology.conf", "SwitchName=s0 Nodes=n[0-3\n", "1:21: error[CS152]: a bracket of 'n[0-3'"),
    ("topology.conf", "SwitchName=s0 Nodes=n0-3]\n", "1:21: error[CS152]: a bracket of 'n0-3]'"),
]


@pytest.mark.parametrize(("name", "text", "told"), CASES)
def test_a_slip_is_named(name, text, told, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(text)
    box = ["--box", "dgx-a100"] if name == "topology.conf" else []
    assert run(["topology", "import", str(path), *box]) == 2
    assert f"{path}:{told}" in capsys.readouterr().err


def test_rows_are_found_by_their_names(tmp_path, capsys):
    path = tmp_path / "m.csv"
    made = []
    for rows in ("a,0,9,5\nb,9,0,7\nc,5,7,0\n", "c,5,7,0\na,0,9,5\nb,9,0,7\n"):
        path.write_text(f",a,b,c\n{rows}")
        assert run(["topology", "import", str(path)]) == 0
        made.append(capsys.readouterr().out)
    assert made[0] == made[1]


def test_names_above_a_matrix_are_names(tmp_path, capsys):
    path = tmp_path / "m.csv"
    for head, rows in ((",a,b", "a,0,9\nb,9,0\n"), ("a,b", "0,9\n9,0\n")):
        path.write_text(f"{head}\n{rows}")
        assert run(["topology", "import", str(path)]) == 0
        out = capsys.readouterr().out.replace("#", " ")
        assert "gpu0 is a, gpu1 is b" in " ".join(out.split())


def test_ports_without_a_cable_and_cables_of_two_speeds_are_told(tmp_path, capsys):
    text = (CORPUS / "good-ibnetdiscover.txt").read_text()
    path = tmp_path / "fabric.txt"
    words = ["topology", "import", str(CORPUS / "w09-all-on-one-host-bridge.xml")]
    line = next(x for x in text.splitlines(True) if '"two mlx5_1"' in x)
    path.write_text(text.replace(line, ""))
    assert run([*words, "--fabric", str(path)]) == 0
    assert "without a cable: mlx5_1" in capsys.readouterr().err
    made = []
    for end in ('# "leaf"', '# "spine"'):  # the slower end counts, whichever it is
        lines = [x.replace("4xNDR", "4xHDR") if end in x else x for x in text.splitlines(True)]
        path.write_text("".join(lines))
        assert run([*words, "--fabric", str(path)]) == 0
        shown = capsys.readouterr()
        assert "warning[W13]" in shown.err
        made.append(shown.out)
    assert made[0] == made[1]


def imported(capsys, path, *words):
    """Return the exit status of an import, what it wrote, and the warnings or the error."""
    status = run(["topology", "import", str(path), *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def matrix(cells, nics=()):
    """Return what nvidia-smi prints of GPUs, by the row of each, and the rows of its NICs."""
    names = [*(f"GPU{i}" for i in range(len(cells) - len(nics))), *nics]
    lines = ["\t".join(["", *names, "CPU Affinity"])]
    lines += ["\t".join([name, *row.split(), "0"]) for name, row in zip(names, cells, strict=True)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("cell", "gpu", "told"),
    [
        ("NV4", "a100", ""),
        ("NV6", "v100", ""),
        ("NV6", "a100", "GPU0 has 18 links, but sm80 (NVLink 3) has 12"),
        ("NV24", "h100", "GPU0 has 24 links, but sm90 (NVLink 4) has 18"),
    ],
)
def test_more_links_than_the_gpu_has_are_told(cell, gpu, told, tmp_path, capsys):
    path = tmp_path / "m.txt"
    path.write_text(matrix([" ".join("X" if i == j else cell for j in range(4)) for i in range(4)]))
    status, _, err = imported(capsys, path, "--gpu", gpu, "--strict")
    assert status == (2 if told else 0)
    assert f"{path}:2:1: error[W27]: {told}" in err if told else not err
    assert ("nvswitch" in imported(capsys, path, "--gpu", gpu)[1]) == (cell != "NV4")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *[(x, "sm80") for x in ("a100", "NVIDIA A100-SXM4-80GB", "A100X", "NVIDIA A100 80GB PCIe")],
        ("H100 80GB HBM3", "sm90"),
        ("NVIDIA GH200 480GB", "sm90"),
        ("Tesla V100S-PCIE-32GB", "sm70"),
        *[(x, "sm89") for x in ("l40", "NVIDIA L40S", "NVIDIA GeForce RTX 4090")],
        ("NVIDIA GeForce RTX 3090 Ti", "sm86"),
        ("rtx3090", "sm86"),
        ("NVIDIA A10G", "sm86"),
        ("AMD Instinct MI300X", "gfx942"),
        *[(x, "") for x in ("a1000", "NVIDIA RTX A1000 Laptop GPU", "RTX A3000", "Quadro P1000")],
    ],
)
def test_products_are_known_by_whole_words(name, model):
    assert generation(name) == model


def test_links_of_a_gpu_that_has_none_are_refused(tmp_path, capsys):
    path, listing = tmp_path / "m.txt", tmp_path / "gpus.txt"
    path.write_text(matrix(["X NV4", "NV4 X"]))
    listing.write_text("GPU 0: NVIDIA L40\nGPU 1: NVIDIA L40\n")
    phrase = f"{path}:2:1: error[CS153]: {path} shows NVLinks of this GPU, but sm89 has none\n"
    for words in (["--gpu", "l40"], [str(listing)]):
        status, out, err = imported(capsys, path, *words)
        assert (status, out) == (2, "")
        assert phrase in err
    path.write_text(matrix(["X SYS", "SYS X"]))
    status, out, _ = imported(capsys, path, "--gpu", "l40")
    assert status == 0
    assert "2 GPUs on PCIe" in out


def test_counts_of_one_are_told_of_the_gpu_that_is_named(capsys):
    path = CORPUS / "w21-rocm-smi.txt"
    assert "MI250" in imported(capsys, path, "--gpu", "mi250")[2]
    assert "W03" not in imported(capsys, path, "--gpu", "mi300x")[2]


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        ("50000-190000", 4),
        ("50000-160000", 3),
        ("50000-20000", 1),
        ("0-50000", 1),
        ("50000-0", 0),
        ("N/A", 1),
    ],
)
def test_a_count_of_links_that_is_rounded_is_told(cell, count, tmp_path, capsys):
    text = (CORPUS / "good-rocm-smi-with-bandwidth.txt").read_text()
    path = tmp_path / "rocm.txt"
    path.write_text(text)
    assert "W21" not in imported(capsys, path, "--gpu", "mi250")[2]
    path.write_text(text.replace("50000-100000", cell))
    row = text[: text.index("GPU0   N/A")].count("\n") + 1
    told = f"the bandwidth range of GPU0 and GPU1 is {cell}: no whole number of links, taken for"
    status, out, err = imported(capsys, path, "--gpu", "mi250")
    assert status == 0
    assert f"{path}:{row}:1: warning[W21]: {told} {count}\n" in err
    assert (err.count("W21"), err.count(f"1 more, at line {row + 1}")) == (1, 1)
    assert count < 2 or f"[0, {count}, 1]" in out
    assert imported(capsys, path, "--gpu", "mi250", "--strict")[0] == 2


ACTIVE = "GPU {}: NVIDIA {} (UUID: GPU-0)\n" + "".join(
    f"\t Link {i}: {{}} GB/s\n" for i in range(4)
)
"""What nvidia-smi nvlink -s prints of a GPU with four links."""


def test_inactive_links_are_not_counted_and_odd_ones_are_told(tmp_path, capsys):
    file, listing = tmp_path / "m.txt", tmp_path / "links.txt"
    file.write_text(matrix(["X NV4", "NV4 X"]))
    one, two, h100 = (
        ACTIVE.format(i, name, *[25] * 4) for i, name in ((0, "A100"), (1, "A100"), (1, "H100"))
    )
    cases = [
        (one + two, [], 4, ""),
        (
            one + two.replace("Link 2: 25 GB/s", "Link 2: <inactive>"),
            [],
            3,
            "m.txt:3:1: warning[W12]",
        ),
        (one + two.replace("Link 2: 25", "Link 2: 250"), [], 4, "links.txt:9:11: warning[W28]"),
        (one + h100, [], 4, "m.txt:3:1: warning[W28]"),
        (one + two, ["--gpu", "h100"], 4, "m.txt:2:1: warning[W28]"),
    ]
    for text, words, count, told in cases:
        listing.write_text(text)
        status, out, err = imported(capsys, file, str(listing), *words)
        assert (status, f"count: {count}, bandwidth" in out) == (0, True)
        assert told in err if told else not err


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["X NV4 NV4 NV4", "NV4 X NV3 NV4", "NV4 NV3 X NV4", "NV4 NV4 NV4 X"], "3 links"),
        (["X NV4 NV4 NV4", "NV4 X SYS NV4", "NV4 SYS X NV4", "NV4 NV4 NV4 X"], "0 links"),
        (["X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4", "NV4 NV4 NV4 X"], None),
        (["X NV2 NV1 NV1", "NV2 X NV1 NV1", "NV1 NV1 X NV2", "NV1 NV1 NV2 X"], None),
        (["X NV2 NV2 SYS", "NV2 X SYS NV2", "NV2 SYS X NV2", "SYS NV2 NV2 X"], None),
    ],
)
def test_a_pair_of_four_gpus_with_a_dead_link_is_told(tmp_path, capsys, rows, told):
    """Half of the GPUs have fewer links then, so none is the exception; rings are as they are."""
    path = tmp_path / "m.txt"
    path.write_text(matrix(rows))
    status, _, err = imported(capsys, path, "--gpu", "a100")
    assert status == 0
    phrase = f"m.txt:3:1: warning[W12]: {told} between GPU1 and GPU2, all others have 4"
    assert phrase in err if told else "W12" not in err


FOUR = ["X NV4 NV4 NV4 PXB", "NV4 X NV4 NV4 PXB", "NV4 NV4 X NV4 SYS", "NV4 NV4 NV4 X SYS"]
LAST = ["PXB PXB SYS SYS X"]
FOUR4 = [row.rpartition(" ")[0] for row in FOUR]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            matrix(["NV4 NV4 NV4 NV4 PXB", *FOUR[1:], *LAST], ["mlx5_0"]),
            "2:1: GPU0 is NV4 to itself",
        ),
        (matrix(["X NV4 X", "NV4 X NV4", "X NV4 X"]), "2:1: GPU0 is X to GPU2"),
        (matrix([*FOUR, "SYS PXB SYS SYS X"], ["mlx5_0"]), "6:1: GPU0 and mlx5_0 are PXB, but SYS"),
        (matrix(FOUR4) + matrix(["X NV8", "NV8 X"]), "6:1: a second matrix begins here"),
        (matrix(FOUR4).replace("\nGPU2", "\nGPU5"), "4:1: GPU5 has a row, but no column"),
        (
            matrix(FOUR4).replace("GPU1\tNV4", "GPU 1\tNV4") + "GPU0\nGPU1\tNV4\tX\tNV4\tNV4\n",
            "6:1: a second matrix begins here",
        ),
        (matrix([*FOUR, *LAST], ["NIC0"]) + "\nNIC0: a\nNIC1: a\n", "9:1: two NICs are called a"),
    ],
)
def test_a_matrix_that_contradicts_itself_is_refused(text, told, tmp_path, capsys):
    path = tmp_path / "m.txt"
    path.write_text(text)
    status, _, err = imported(capsys, path, "--gpu", "a100")
    assert status == 2
    assert told.replace(": ", ": error[CS152]: ", 1) in err


def test_ranges_that_are_all_empty_tell_nothing(tmp_path, capsys):
    text = (CORPUS / "good-rocm-smi-with-bandwidth.txt").read_text()
    path = tmp_path / "rocm.txt"
    path.write_text(re.sub(r"[0-9]+-[0-9]+(?=\s)", "0-0", text))
    status, out, err = imported(capsys, path, "--gpu", "mi250")
    assert status == 0
    assert "W21]: the tables do not tell how many links join two GPUs" in err
    assert "xgmi" in out.lower()
    assert "W15" not in err


@pytest.mark.parametrize("more", [matrix(FOUR4), matrix(["X OK", "OK X"])])
def test_a_second_matrix_that_says_nothing_else_is_let_be(more, tmp_path, capsys):
    path = tmp_path / "m.txt"
    path.write_text(matrix(FOUR4) + more)
    assert imported(capsys, path, "--gpu", "a100")[0] == 0


def test_of_two_numbers_for_links_the_smaller_counts(tmp_path, capsys):
    path = tmp_path / "m.txt"
    path.write_text(matrix(["X NV4", "NV3 X"]))
    _, out, err = imported(capsys, path, "--gpu", "a100")
    assert "warning[W13]: 4 links from GPU0 to GPU1, but 3 back" in err
    assert "count: 3, bandwidth" in out
    assert "on PCIe" in imported(capsys, CORPUS / "w13-one-way.xml")[1]
    even = matrix([" ".join("X" if i == j else "NV12" for j in range(8)) for i in range(8)])
    path.write_text(even.replace("X\tNV12", "X\tNV6", 1))
    _, out, err = imported(capsys, path, "--gpu", "a100")
    assert f"{path}:2:1: warning[W13]: GPU0 has 6 links to GPU1, but 12 to others" in err
    path.write_text(even)
    assert imported(capsys, path, "--gpu", "a100") == (0, out, "")


def test_devices_of_a_dump_are_one_each_and_speeds_in_mb(tmp_path, capsys):
    path = tmp_path / "topo.xml"
    text = (CORPUS / "w09-all-on-one-host-bridge.xml").read_text()
    path.write_text(text.replace('<pci busid="0000:10:00.0"', '<pci busid="0000:00:00.0"'))
    status, _, err = imported(capsys, path)
    assert status == 2
    assert f"{path}:6:17: error[CS152]: two GPUs have the bus id 0000:00:00.0" in err
    path.write_text(text.replace("mlx5_1", "mlx5_0"))
    assert "warning[W29]: two NICs are called 'mlx5_0'" in imported(capsys, path)[2]
    for speed, told in (
        ("400", "NIC mlx5_0 has 400 Mb/s"),
        ("-1", "the speed of NIC mlx5_0 is unknown (-1)"),
    ):
        path.write_text(re.sub('speed="[0-9]+"', f'speed="{speed}"', text))
        assert f"warning[W05]: {told}" in imported(capsys, path)[2]
        assert "W05" not in imported(capsys, path, "--nic-bandwidth", "50 GB/s")[2]


def test_cables_and_adapters_that_contradict_each_other_are_told(tmp_path, capsys):
    text = (CORPUS / "good-ibnetdiscover.txt").read_text()
    node = CORPUS / "w09-all-on-one-host-bridge.xml"
    path = tmp_path / "fabric.txt"
    path.write_text(text)
    whole = imported(capsys, node, "--fabric", str(path))
    assert "W13" not in whole[2]
    adapter = (
        '\nCa\t1 "H-0000000000000001"\t\t# "one mlx5_0"\n[1](1) "S-00000000000000b0"[9] # 4xNDR\n'
    )
    path.write_text(text + adapter)
    status, out, err = imported(capsys, node, "--fabric", str(path))
    assert (status, "fabric.txt:7:1: warning[W13]: port 1 of MF0;leaf-1" in err) == (0, True)
    assert out == whole[1]
    path.write_text(text.replace('[2]\t"H-0000000000000002"', '[1]\t"H-0000000000000002"'))
    status, _, err = imported(capsys, node, "--fabric", str(path))
    assert (status, "fabric.txt:8:1: error[CS152]: port 1 of MF0;leaf-1 is there" in err) == (
        2,
        True,
    )
    path.write_text(text.replace('"one mlx5_1"', '"one mlx5_0"'))
    err = imported(capsys, node, "--fabric", str(path))[2]
    assert "fabric.txt:16:1: warning[W29]: two adapters of one are called mlx5_0" in err


@pytest.mark.parametrize(("numbers", "rank"), [("023", 1), ("134", 0), ("102", 0)])
def test_a_host_without_one_of_its_gpus_is_imported_in_order(numbers, rank, tmp_path, capsys):
    path, listing = tmp_path / "m.txt", tmp_path / "links.txt"
    names = [f"GPU{n}" for n in numbers]
    text = matrix(["X NV4 NV2", "NV4 X NV1", "NV2 NV1 X"])
    path.write_text(text)
    links = imported(capsys, path, "--gpu", "a100")[1].partition("  links:")[2]
    path.write_text(re.sub("GPU([0-2])", lambda found: names[int(found[1])], text))
    status, out, err = imported(capsys, path, "--gpu", "a100")
    assert (status, out.partition("  links:")[2]) == (0, links)
    told = f"{path}:{rank + 2}:1: warning[W04]: rank {rank} is {names[rank]}: ranks and devices"
    assert told in err
    assert f"gpu0 is {names[0]} (line 2), gpu1 is {names[1]} (line" in " ".join(
        out.replace("#", " ").split()
    )
    line = "GPU {}: NVIDIA A100 (UUID: GPU-0)\n"
    listing.write_text("".join(map(line.format, numbers)))
    assert imported(capsys, path, str(listing))[0] == 0
    listing.write_text("".join(map(line.format, range(3))))
    status, _, err = imported(capsys, path, str(listing))
    told = f"{listing}:{rank + 1}:1: error[CS155]: {listing} lists GPU {rank} where {path} has"
    assert (status, f"{told} {names[rank]}" in err) == (2, True)
