"""Commands verify, env, runtimes and explain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colsynth import api
from colsynth.cli.codes import explanations
from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.execute.choose import choose
from colsynth.runtimes.readers import only_reader, readers

CORPUS = Path(__file__).parents[1] / "corpus" / "xml"
GOOD, BAD = str(CORPUS / "good-allreduce.xml"), str(CORPUS / "b04-race.xml")


def test_a_right_file(capsys):
    assert run(["verify", GOOD, "-r", "rccl"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{GOOD}: ok on rccl (0 errors, 0 warnings)")
    assert "content: executed symbolically" in out


def test_what_nothing_selects_is_neither_right_nor_executed(capsys):
    assert run(["verify", str(CORPUS / "a06-no-mode.xml"), "-r", "rccl"]) == 1
    out = capsys.readouterr().out
    assert "BAD on rccl" in out
    assert "modes: none" in out
    assert "content: not executed: no call selects the file" in out


def test_a_wrong_file_beside_a_right_one(capsys):
    assert run(["verify", GOOD, BAD, "-r", "rccl"]) == 1
    out = capsys.readouterr().out
    assert f"{GOOD}: ok" in out
    assert f"{BAD}: BAD" in out
    assert "B04" in out


def test_json(capsys):
    assert run(["verify", BAD, "-r", "rccl", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    (entry,) = answer["files"]
    assert entry["facts"]["ranks"] == "2"
    race = next(f for f in entry["findings"] if f["rule"] == "B04")
    assert race["severity"] == "error"
    assert isinstance(race["line"], int)


def test_missing_file_and_unknown_runtime(capsys):
    assert run(["verify", "none.xml", "-r", "rccl"]) == 2
    assert run(["verify", GOOD, "-r", "nccl"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "CS502" in captured.err
    assert "-r rccl" in captured.err


def test_the_others_are_verified_where_some_files_cannot_be(tmp_path, capsys):
    """A wrong file is a negative finding, but the error decides the exit code."""
    other = tmp_path / "other.xml"
    other.write_bytes(b"")
    files = ["none.xml", BAD, str(other), GOOD]
    assert run(["verify", *files, "-r", "rccl"]) == 2
    shown = capsys.readouterr()
    assert f"{BAD}: BAD" in shown.out
    assert f"{GOOD}: ok" in shown.out
    assert [line.partition(" ")[0] for line in shown.err.splitlines() if "error[" in line] == [
        "none.xml:",
        f"{other}:",
    ]
    assert run(["verify", *files, "-r", "rccl", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    by_name = {entry["file"]: entry for entry in answer["files"]}
    assert set(by_name) == set(files)
    assert [by_name[name]["ok"] for name in files] == [False, False, False, True]
    assert by_name["none.xml"]["error"]["code"] == "CS502"
    assert by_name[str(other)]["error"]["code"] == "CS605"


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A plan of MSCCL++ and a file of rounds; the latter also with its keys in another order."""
    folder = tmp_path_factory.mktemp("json")
    problem = api.make_problem(api.load_topology("ring:2"), "allgather")
    for runtime in ("mscclpp", "torch"):
        done = api.compile(problem, runtime, level=0)
        (folder / f"{runtime}.json").write_bytes(done.artefacts[0].data)
    rounds = json.loads((folder / "torch.json").read_bytes())
    turned = {"note": "x" * 1000, **dict(reversed(rounds.items()))}
    (folder / "turned.json").write_text(json.dumps(turned))
    return folder


def test_json_is_verified_for_the_only_runtime_that_reads_it(documents, capsys):
    for name, runtime in (("mscclpp", "mscclpp"), ("torch", "torch"), ("turned", "torch")):
        path = str(documents / f"{name}.json")
        assert run(["verify", path]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"{path}: ok on {runtime} (0 errors")
        assert run(["verify", path, "-r", runtime]) == 0
        assert capsys.readouterr().out == told
    paths = [str(documents / f"{name}.json") for name in ("mscclpp", "torch")]
    assert run(["verify", *paths, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["runtime"] is None
    assert [entry["runtime"] for entry in answer["files"]] == ["mscclpp", "torch"]
    assert run(["verify", paths[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runtime"] == "mscclpp"
    assert run(["verify", paths[0], "-r", "rccl"]) == 1


def test_xml_needs_a_runtime_and_other_files_are_named(documents, tmp_path, capsys):
    assert run(["verify", str(documents / "torch.json"), GOOD]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("error[")) == ("", 1)
    assert shown.err.startswith(f"{GOOD}: error[CS608]")
    assert "help: give -r msccl or -r msccl-executor or -r rccl" in shown.err
    (tmp_path / "none").write_bytes(b"hello")
    assert run(["verify", str(tmp_path / "none")]) == 2
    assert "error[CS605]: this is no schedule file" in capsys.readouterr().err
    (tmp_path / "cut").write_bytes(b'{"name": "x"')
    assert run(["verify", str(tmp_path / "cut")]) == 1
    assert "BAD on mscclpp" in capsys.readouterr().out


def test_run_and_verify_agree_on_who_reads_a_file(documents):
    for name, runtimes in (("mscclpp", {"mscclpp"}), ("torch", {"torch"}), ("turned", {"torch"})):
        data = (documents / f"{name}.json").read_bytes()
        assert {profile.name for profile in readers(data)} == runtimes
        assert choose(data, name, None).profile.name in runtimes
    data = Path(GOOD).read_bytes()
    assert choose(data, GOOD, None).profile in readers(data)
    for read in (choose, only_reader):
        with pytest.raises(InputError, match=r"CS605.*it is empty"):
            read(b"", "empty.xml", None)


@pytest.mark.parametrize("command", ["verify", "env"])
def test_a_folder_is_not_a_file(command, tmp_path, capsys):
    folder = tmp_path / "for now"
    folder.mkdir()
    assert run([command, str(folder), "-r", "rccl"]) == 2
    assert f"name the files in it, such as '{folder}'/*.xml" in capsys.readouterr().err
    (tmp_path / "plan.json").touch()
    assert run([command, str(tmp_path), "-r", "mscclpp"]) == 2
    assert f"name the files in it, such as {tmp_path}/*.json" in capsys.readouterr().err


def test_files_that_are_no_schedules(tmp_path, capsys):
    path = tmp_path / "file"
    for data in (b"", bytes(range(256))):
        path.write_bytes(data)
        assert run(["verify", str(path), "-r", "msccl"]) == 2
        assert "error[CS605]: this is no schedule file" in capsys.readouterr().err
    path.write_bytes(b"<a>" * 5000)
    assert run(["verify", str(path), "-r", "msccl"]) == 1
    assert "X02" in capsys.readouterr().out


def test_multi_node_turns_a_warning_into_an_error():
    path = str(CORPUS / "c04-simple-broadcast.xml")
    assert run(["verify", path, "-r", "rccl"]) == 0
    assert run(["verify", path, "-r", "rccl", "--multi-node"]) == 1
    assert run(["verify", path, "-r", "rccl", "--single-node"]) == 0


def test_runtimes(capsys):
    assert run(["runtimes"]) == 0
    assert "2.28.3" in capsys.readouterr().out
    assert run(["runtimes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runtimes"]
    assert {r["name"]: r["max_steps"] for r in found} == {
        "msccl": 256,
        "msccl-executor": 64,
        "rccl": 64,
        "mscclpp": 10,
        "torch": 4096,
    }
    assert all("max_steps" in r["sources"] for r in found)


def test_explain(capsys):
    assert run(["explain", "b04"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("B04: ")
    assert "How to fix" in out
    assert run(["explain", "B99"]) == 2
    assert "B01, B02" in capsys.readouterr().err
    assert run(["explain", "B0"]) == 2
    assert "did you mean B0" in capsys.readouterr().err


def test_every_page_is_whole():
    parts = ("title", "meaning", "why", "fix")
    for code, page in explanations().items():
        assert all(str(page.get(part, "")).strip() for part in parts), code


def test_a_file_for_another_runtime_is_told_apart(tmp_path, capsys):
    xml, plan = tmp_path / "a.xml", tmp_path / "a.json"
    xml.write_text('<algo name="a"></algo>')
    plan.write_text('{"name": "a"}')
    assert run(["verify", str(xml), "-r", "mscclpp"]) == 1
    assert "XML, for another runtime" in capsys.readouterr().out
    assert run(["verify", str(plan), "-r", "msccl"]) == 1
    assert "plan for mscclpp" in " ".join(capsys.readouterr().out.split())
