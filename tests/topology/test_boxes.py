"""Boxes of GPUs that name none."""

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.errors import InputError, LimitError
from colsynth.topology import export_flat, load
from colsynth.topology.boxes import infer_boxes

ISLANDS = """
version: 1
name: islands
nodes:
  - {name: a, kind: gpu}
  - {name: b, kind: gpu}
  - {name: c, kind: gpu}
  - {name: d, kind: gpu}
  - {name: pcie, kind: switch}
  - {name: m, kind: nic}
  - {name: n, kind: nic}
  - {name: ib, kind: switch}
links:
  - {from: a, to: pcie, bandwidth: 100 GB/s}
  - {from: b, to: pcie, bandwidth: 100 GB/s}
  - {from: pcie, to: m, bandwidth: 25 GB/s}
  - {from: c, to: d, bandwidth: 100 GB/s}
  - {from: d, to: n, bandwidth: 25 GB/s}
  - {from: m, to: ib, bandwidth: 25 GB/s}
  - {from: n, to: ib, bandwidth: 25 GB/s}
"""


def loaded(tmp_path, text):
    path = tmp_path / "islands.yaml"
    path.write_text(text)
    return load(str(path))


def unboxed(topology, kept=()):
    nodes = (x if x.name in kept else replace(x, box=None) for x in topology.nodes)
    return replace(topology, nodes=tuple(nodes))


@pytest.mark.parametrize("name", ["dgx-1v", "dgx-a100", "dgx-h100", "dgx2", "mi300x", "ndv2"])
def test_presets_without_boxes_get_theirs_back(name):
    topology = load(name, nodes=3)
    found = infer_boxes(unboxed(topology))
    assert found == topology
    assert len(found.notes) == 1
    assert infer_boxes(unboxed(load(name))) == unboxed(load(name))


@pytest.mark.parametrize("kept", ["gpu1.3", "nic2.0", "nvswitch1"])
def test_a_box_that_is_named_is_kept(kept):
    topology = load("dgx-a100", nodes=3)
    found = infer_boxes(unboxed(topology, (kept,)))
    boxes = [found.nodes[gpu].box for gpu in topology.ranks]
    assert len(set(boxes)) == 3
    named = next(x.box for x in topology.nodes if x.name == kept)
    assert boxes[8 * named : 8 * named + 8] == [named] * 8


def test_gpus_that_switches_alone_join_are_one_box():
    topology = unboxed(load("mi250", nodes=2))
    assert infer_boxes(topology) == topology
    assert infer_boxes(topology).notes == ()


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_what_hangs_between_boxes_is_refused(tmp_path, collective):
    """Rule C04 holds with and without names; LL and single boxes are served."""
    topology = loaded(tmp_path, ISLANDS)
    assert topology.boxes == (0, 1)
    problem = api.make_problem(topology, collective)
    with pytest.raises(LimitError) as caught:
        api.compile(problem, "msccl", protocol="Simple")
    assert caught.value.diagnostic.code == "CS221"
    group = api.make_problem(topology, collective, groups=[[0, 1]])
    assert api.compile(group, "msccl").artefacts[0].report.ok
    damaged = api.damage(topology, gpus=["b"]).topology
    with pytest.raises(LimitError):
        api.compile(api.make_problem(damaged, collective), "msccl", protocol="Simple")


def test_boxes_are_told_and_exported(tmp_path, capsys):
    path = tmp_path / "islands.yaml"
    path.write_text(ISLANDS)
    assert run(["topology", "check", str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.err.strip().endswith("box 0: a, b; box 1: c, d")
    assert "2 boxes" in shown.out
    again = loaded(tmp_path, export_flat(load(str(path))))
    assert again.boxes == (0, 1)
    assert again.notes == ()


def test_gpus_on_one_nic_are_not_guessed(tmp_path):
    text = ISLANDS.replace("from: c, to: d", "from: c, to: n")
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, text)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "CS140"
    assert (diagnostic.span.line, diagnostic.span.column) == (7, 12)
    named = text.replace("name: n, kind: nic", "name: n, kind: nic, box: 4")
    boxes = [loaded(tmp_path, named).nodes[gpu].box for gpu in range(4)]
    assert boxes == [0, 0, 4, 4]
