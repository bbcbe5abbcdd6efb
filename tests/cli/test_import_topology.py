"""``colsynth topology import``: files, stdin, options, answers."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from colsynth.cli.main import run
from colsynth.topology import load

CORPUS = Path(__file__).parents[1] / "corpus" / "machines"


def brought(*arguments):
    return run(["topology", "import", *map(str, arguments)])


def test_a_matrix_from_stdin_becomes_a_topology_on_stdout(monkeypatch, capsys, tmp_path):
    data = (CORPUS / "w16-escapes.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert brought("-", "--gpu", "a100", "--boxes", 2, "--nic-bandwidth", "200 Gb/s") == 0
    shown = capsys.readouterr()
    path = tmp_path / "a.yaml"
    path.write_text(shown.out)
    topology = load(str(path))
    assert (topology.name, topology.size) == ("imported x2", 4)
    assert shown.err == ""


def test_a_cluster_from_a_dump_a_fabric_and_hosts(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hosts").write_text("two\none\n")
    words = ["--fabric", CORPUS / "good-ibnetdiscover.txt", "--hosts", "hosts"]
    dump = CORPUS / "w09-all-on-one-host-bridge.xml"
    assert brought(dump, *words, "-o", "cluster.yaml") == 0
    shown = capsys.readouterr()
    assert "warning[W09]" in shown.err
    assert "error" not in shown.err
    assert shown.out.startswith("cluster.yaml: w09-all-on-one-host-bridge x2: 4 GPUs")
    assert run(["topology", "check", "cluster.yaml"]) == 0
    assert brought(dump, *words, "-o", "cluster.yaml") == 2
    assert brought(dump, *words, "-o", "cluster.yaml", "--force") == 0
    assert brought(dump, *words, "--strict", "-o", "other.yaml") == 2
    assert not Path("other.yaml").exists()
    assert "error[W09]" in capsys.readouterr().err


@pytest.mark.parametrize("box", ["dgx-h100", str(CORPUS / "good-pair.xml")])
def test_a_box_is_a_preset_or_a_file(box, capsys):
    assert brought(CORPUS / "w23-tree.conf", "--box", box, "--oversubscription", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["boxes"], found["formats"]) == (4, ["topology.conf of Slurm"])
    assert [x["code"] for x in found["warnings"]] == ["W23"]
    assert found["warnings"][0]["place"].endswith("w23-tree.conf:1:1")
    assert "oversubscription 2" in found["yaml"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["none.xml"], "CS101"),
        (["good-pair.xml", "--gpu", "voodoo"], "CS151"),
        (["good-pair.xml", "--link-bandwidth", "guess"], "CS151"),
        (["good-pair.xml", "--oversubscription", "0.5"], "CS151"),
        (["good-pair.xml", "--nic-bandwidth", "fast"], "CS110"),
        (["good-pair.xml", "--boxes", "0"], "CS210"),
        (["good-pair.xml", "--boxes", "20000000"], "CS125"),
        (["good-pair.xml", "-o", "a.txt"], "CS219"),
        (["good-pair.xml", "good-pair.xml"], "CS155"),
        (["good-pair.xml", "good-topology.yaml"], "CS155"),
        (["good-ibnetdiscover.txt", "w23-tree.conf", "--box", "mi250"], "CS155"),
        (["good-pair.xml", "--box", "mi250"], "CS155"),
        (["good-topology.yaml", "--boxes", "2"], "CS155"),
        (["good-topology.yaml", "--gpu", "h100"], "CS155"),
        (["good-capacity.csv", "--nic-bandwidth", "1 GB/s"], "CS155"),
        (["good-pair.xml", "--oversubscription", "2"], "CS155"),
        (["w23-tree.conf"], "CS153"),
        (["w23-tree.conf", "--box", "mi251"], "CS120"),
        (["w23-tree.conf", "--box", "dgx-h100", "--boxes", "9"], "CS155"),
        (["bad-graphs.xml"], "CS150"),
        (["-", "--hosts", "-"], "CS214"),
    ],
)
def test_wrong_input_is_one_diagnostic(arguments, code, capsys, monkeypatch):
    monkeypatch.chdir(CORPUS)
    assert brought(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("error[") == 1
    assert f"error[{code}]" in shown.err
