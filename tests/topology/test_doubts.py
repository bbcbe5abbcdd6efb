"""Bandwidths and latencies that nobody can mean are noted, and no others."""

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.topology import presets


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("bandwidth", "9e12 GB/s", "more than the memory of any GPU"),
        ("bandwidth", "1e-9 GB/s", "less than any network"),
        ("latency", "2 s", "longer than a signal takes around the Earth"),
    ],
)
def test_a_wrong_unit_is_noted_once_with_a_link(option, value, said, capsys):
    (note,) = api.load_topology("ring:4", **{option: value}).notes
    assert note.startswith("gpu0 -> gpu1 (like 7 other links) has a ")
    assert said in note
    assert run(["topology", "check", "ring:4", f"--{option}", value]) == 0
    assert f"note: {note}" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1.25 MB/s", "20 TB/s"])
def test_what_there_is_is_not_doubted(value):
    assert not api.load_topology("ring:4", bandwidth=value).notes


def test_no_preset_is_doubted():
    for preset in presets():
        notes = api.load_topology(preset.name).notes
        assert not any("is the unit right" in note for note in notes)


def test_trunks_between_switches_may_have_the_bandwidth_of_many_links(tmp_path):
    path = tmp_path / "trunk.yaml"
    path.write_text("""version: 1
name: trunk
nodes:
  - {name: a, kind: gpu, box: 0}
  - {name: b, kind: gpu, box: 0}
  - {name: left, kind: switch, box: 0}
  - {name: right, kind: switch, box: 0}
links:
  - {from: a, to: left, bandwidth: 50 GB/s}
  - {from: left, to: right, bandwidth: 200 TB/s}
  - {from: right, to: b, bandwidth: 5 kB/s}
""")
    (note,) = api.load_topology(path).notes
    assert note.startswith("b -> right (like 1 other link) has a bandwidth of 5e-06 GB/s")
