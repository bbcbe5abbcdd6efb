"""Presets against listings of real machines, where the samples are at hand."""

import re
from pathlib import Path

import pytest

from colsynth.topology import load
from colsynth.topology.summary import matrix

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "topology"
GB = 10**9


def sample(name):
    path = SAMPLES / name
    if not path.is_file():
        pytest.skip(f"no sample {name}")
    return path.read_text(encoding="utf-8")


def test_dgx_1v_is_what_nvidia_smi_prints():
    text = sample("nvidia_smi/dgx1_v100_8gpu_4nic.txt")
    rows = [line.split()[1:9] for line in text.splitlines() if re.match(r"GPU\d\s", line)]
    links = [[int(cell[2:]) if cell.startswith("NV") else 0 for cell in row] for row in rows]
    found = [[int(cell / (25 * GB)) for cell in row] for row in matrix(load("dgx-1v"))]
    assert found == links


def test_mi300x_is_what_rccl_dumps():
    text = sample("nccl_xml/rccl_mi300x_8gpu_8x400g.xml")
    assert re.findall(r'<xgmi [^>]*count="(\d+)"', text) == ["1"] * 56
    assert re.findall(r'<net [^>]*speed="(\d+)"', text) == ["400000"] * 8
    topology = load("mi300x", nodes=2)
    rates = {link.bandwidth for link in topology.links}
    assert rates == {64 * GB, 400_000 * 10**6 // 8}
