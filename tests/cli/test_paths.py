"""Places that commands write to, and what they read from stdin: one rule for all commands."""

import io
import json
import sys
from pathlib import Path

import pytest

from colsynth.cli.main import run

SCHEDULE = Path(__file__).parents[1] / "corpus" / "xml" / "good-allreduce.xml"
SIMULATE = ["simulate", str(SCHEDULE), "-t", "ring:2", "-r", "rccl", "--sizes", "1KB"]
COMPILE = ["compile", "ring:4", "-c", "allgather", "-r", "rccl"]
FEW = ["--sizes", "1MB", "--algorithms", "ring", "--budget", "1", "--jobs", "1"]

FILES = [
    ([*COMPILE, "-o"], ".xml"),
    (["synthesize", "ring:4", "-c", "allgather", "--schedule"], ".npz"),
    (["compare", "ring:4", "-c", "allgather", *FEW, "--plot"], ".svg"),
    ([*SIMULATE, "--timeline"], ".json"),
]
FOLDERS = [
    ["tune", "ring:4", "-c", "allgather", "-r", "rccl", *FEW, "-o"],
    ["survey", "ring:3", "-c", "allgather", "--failures", "gpus:1", "--jobs", "1", "-o"],
    [*COMPILE, "-o", "fine.xml", "--dump-dir"],
]
NAMES = ["--output", "--schedule", "--plot", "--timeline", "--output", "--output", "--dump-dir"]


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "suffix"), FILES, ids=NAMES[:4])
def test_a_file_has_the_suffix_of_its_kind(command, suffix, tmp_path, capsys):
    for name in ("x", "x.txt", "a.xml/../x.7z", f"x{suffix}.gz"):
        assert run([*command, name, "--force"]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert f"error[CS219]: {NAMES[FILES.index((command, suffix))]} " in shown.err
        assert f"ends in {suffix}\n" in shown.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", FOLDERS, ids=NAMES[4:])
def test_a_directory_is_not_called_like_a_file_and_replaces_none(command, tmp_path, capsys):
    for name, code in (("x.xml", "CS219"), ("x.JSON", "CS219"), ("taken", "CS207")):
        (tmp_path / "taken").write_text("a file")
        assert run([*command, name]) == 2
        assert f"error[{code}]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("command", "suffix"), [*FILES, *((command, "") for command in FOLDERS)], ids=NAMES
)
def test_missing_parents_are_made_and_those_that_cannot_be_are_refused(
    command, suffix, tmp_path, capsys
):
    (tmp_path / "file").write_text("in the way")
    assert run([*command, f"file/b/x{suffix}"]) == 2
    assert "error[CS208]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert run([*command, f"a/b/x{suffix}"]) == 0
    assert (tmp_path / "a" / "b" / f"x{suffix}").exists()


@pytest.mark.parametrize("command", [command for command, _ in FILES[1:]], ids=NAMES[1:4])
def test_a_directory_in_the_place_of_a_file_is_refused_before_work(command, capsys):
    Path("x").mkdir()
    assert run([*command, "x"]) == 2
    assert "error[CS208]: cannot write x\n  note: it is a directory" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a null device")
@pytest.mark.parametrize("command", [FILES[0][0], FILES[2][0], FILES[3][0]])
def test_a_device_needs_no_suffix(command):
    assert run([*command, "/dev/null"]) == 0


def typed(monkeypatch, data):
    """Let stdin hold some bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_schedule_is_read_from_stdin(monkeypatch, capsys):
    asked = (["verify", "-", "-r", "rccl"], ["simulate", "-", *SIMULATE[2:]])
    for command in asked:
        answers = []
        for name in ("-", str(SCHEDULE)):
            typed(monkeypatch, SCHEDULE.read_bytes())
            assert run([name if word == "-" else word for word in command]) == 0
            answers.append(capsys.readouterr().out)
        assert answers[0].startswith("<stdin>: ")
        assert answers[0] == answers[1].replace(str(SCHEDULE), "<stdin>")


def test_a_topology_is_read_from_stdin(monkeypatch, capsys):
    assert run(["topology", "export", "ring:4"]) == 0
    text = capsys.readouterr().out.encode()
    typed(monkeypatch, text)
    assert run(["topology", "check", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["topology"] == "ring:4"
    typed(monkeypatch, text.replace(b"gpu1", b"gpu9", 1) + b"links: []\n")
    assert run(["topology", "check", "-"]) == 2
    assert capsys.readouterr().err.startswith("<stdin>:")
    typed(monkeypatch, b"version: 1\nname: x\nbox: {gpu: 2, colour: red}\n")
    assert run(["topology", "check", "-"]) == 2
    assert capsys.readouterr().err.startswith("<stdin>:3:")


def test_hosts_are_read_from_stdin(monkeypatch, capsys):
    typed(monkeypatch, b"node7\nnode3\n")
    case = ["ranks", "dgx-a100", "--nodes", "2", "--hosts", "-", "--for", "openmpi"]
    assert run(case) == 0
    assert "--host node7:8,node3:8" in capsys.readouterr().out
    typed(monkeypatch, b"node7\nnode7\n")
    assert run(case) == 2
    assert capsys.readouterr().err.startswith("<stdin>:2:")


@pytest.mark.parametrize(
    "command",
    [
        ["verify", "-", "-", "-r", "rccl"],
        ["simulate", "-", "-t", "-", "-r", "rccl"],
        ["ranks", "-", "--hosts", "-", "--for", "slurm"],
    ],
)
def test_stdin_can_be_read_once(command, monkeypatch, capsys):
    typed(monkeypatch, SCHEDULE.read_bytes())
    assert run(command) == 2
    assert "error[CS214]" in capsys.readouterr().err


def test_a_closed_stdin_is_no_defect(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["verify", "-", "-r", "rccl"]) == 2
    assert "error[CS215]" in capsys.readouterr().err
