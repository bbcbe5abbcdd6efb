"""``colsynth topology`` list, show, export, schema and check."""

import json

import pytest

from colsynth.cli.main import run
from colsynth.topology import json_schema, load, presets


def answer(capsys, *arguments):
    """Return what a command prints as JSON."""
    assert run(["topology", *arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def text(capsys, *arguments):
    assert run(["topology", *arguments]) == 0
    return capsys.readouterr().out


def test_list(capsys):
    found = answer(capsys, "list")
    assert [entry["name"] for entry in found["presets"]] == [x.name for x in presets()]
    assert found["presets"][1]["parameters"]["planes"] == "2"
    assert all(load(spec).size for spec in found["generators"])


def test_list_for_people(capsys):
    out = text(capsys, "list")
    assert "dgx-a100" in out
    assert "ndv4" in out
    assert "torus:4x4x4" in out


def test_show(capsys):
    found = answer(capsys, "show", "mi250", "--nodes", "2")
    assert (found["topology"], found["gpus"], found["boxes"]) == ("mi250 x2", 32, 2)
    assert found["matrix_gb_per_s"][0][1] == 200
    assert found["matrix_gb_per_s"][0][16] == 0
    first = found["totals"][0]
    assert first["name"] == "gpu0.0"
    assert (first["egress_gb_per_s"], first["ingress_gb_per_s"]) == (366, 366)
    assert first["egress_by_kind_gb_per_s"] == {"gpu": 350, "switch": 16}
    assert found["totals"][-1]["rank"] is None


def test_show_for_people_is_the_matrix_and_the_totals(capsys):
    out = text(capsys, "show", "dgx-a100", "--nodes", "2")
    assert "dgx-a100 x2: 16 GPUs, 4 switches, 16 NICs, 2 boxes, 96 links" in out
    row = next(line for line in out.splitlines() if "gpu1.0" in line)
    assert row.split() == ["8", "gpu1.0", ".", "300", "25"]
    totals = next(line for line in out.splitlines() if "gpu0.0 .. gpu1.7" in line)
    assert totals.split()[-4:] == ["325", "325", "300/300", "25/25"]


def test_titles_of_narrow_tables_are_not_wrapped(capsys):
    assert "links, GB/s from row to column" in text(capsys, "show", "ring:3")


def test_show_abbreviates_large_machines(capsys):
    short = text(capsys, "show", "clique:64")
    assert "(48 more GPUs: --all)" in short
    assert "others" in short
    assert "gpu63" not in [line.split()[1] for line in short.splitlines() if line.split()[1:]]
    whole = text(capsys, "show", "clique:64", "--all")
    assert len([line for line in whole.splitlines() if " gpu" in line]) >= 64
    assert "others" not in whole


def test_markup_in_names_is_text(capsys, tmp_path):
    path = tmp_path / "odd.yaml"
    path.write_text(
        "version: 1\nname: '[red]'\n"
        "nodes: [{name: '[bold]a', kind: gpu}, {name: ':b:', kind: gpu}]\n"
        "links: [{from: '[bold]a', to: ':b:', bandwidth: 1 GB/s}]\n"
    )
    out = text(capsys, "show", str(path))
    assert "[red]" in out
    assert "[bold]a" in out
    assert ":b:" in out


@pytest.mark.parametrize("name", ["dgx2", "ring:4"])
def test_an_export_is_written_to_a_file_whole_and_replaces_none(name, capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    printed = text(capsys, "export", name)
    assert text(capsys, "export", name, "-o", "-") == printed
    assert text(capsys, "export", name, "-o", str(path)).startswith(f"{path}: {name}")
    assert path.read_text(encoding="utf-8") == printed
    path.write_text("mine", encoding="utf-8")
    assert run(["topology", "export", name, "-o", str(path)]) == 2
    assert "CS207" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine"
    found = text(capsys, "export", name, "-o", str(path), "--force", "--json")
    assert json.loads(found)["version"] == 1
    assert path.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_export_reads_back(capsys, tmp_path, flags):
    path = tmp_path / "flat.yaml"
    path.write_text(text(capsys, "export", "dgx2", "--nodes", "2", *flags), encoding="utf-8")
    assert load(str(path)) == load("dgx2", nodes=2)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_schema(capsys, flags):
    assert json.loads(text(capsys, "schema", *flags)) == json_schema()


def test_check(capsys):
    assert answer(capsys, "check", "ring:8", "--bandwidth", "10 GB/s") == {
        "ok": True,
        "topology": "ring:8",
        "gpus": 8,
        "boxes": 1,
        "nodes": 8,
        "links": 16,
        "symmetric": True,
    }
    assert text(capsys, "check", "ring:8") == "ok: ring:8: 8 GPUs, 1 box, 16 links\n"


def test_settings(capsys):
    found = answer(capsys, "check", "dgx-a100", "--nodes", "2", "--set", "planes = 1")
    assert found["nodes"] == 35
    assert found["topology"] == "dgx-a100 x2 planes=1"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "dgx-a10"], "CS120"),
        (["show", "dgx-a100", "--set", "nic"], "CS128"),
        (["show", "dgx-a100", "--set", "=3"], "CS128"),
        (["show", "dgx-a100", "--nodes", "0"], "CS126"),
        (["export", "none.yaml"], "CS101"),
    ],
)
def test_wrong_input_prints_one_diagnostic_and_no_answer(arguments, code, capsys):
    assert run(["topology", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"error[{code}]" in shown.err


def test_a_mistyped_group_of_thousands_is_one_short_message(tmp_path, capsys):
    path = tmp_path / "many.yaml"
    groups = "".join(f"    - {{name: g{'x' * i}, kind: switch}}\n" for i in range(1, 900))
    rule = "  links:\n    - {from: nothing, to: gx, bandwidth: 1 GB/s}\n"
    path.write_text(f"version: 1\nname: m\nboxes: 1\nbox:\n  nodes:\n{groups}{rule}")
    assert run(["topology", "check", str(path)]) == 2
    shown = capsys.readouterr().err
    assert "error[CS112]" in shown
    assert shown.rstrip().endswith("and 887 more")
    assert len(shown) < 1000
