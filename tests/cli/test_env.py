"""``colsynth env``: exports of files that are right, and of no others unless they are wanted."""

import json
import shutil
from pathlib import Path

from colsynth.cli.main import run

XML = Path(__file__).parents[1] / "corpus" / "xml"


def test_a_file_with_wrong_results_is_refused_unless_it_is_wanted(tmp_path, capsys):
    text = (XML / "good-allreduce.xml").read_text()
    path = tmp_path / "wrong.xml"
    path.write_text(text.replace('type="re"', 'type="cpy"'))
    assert text != path.read_text()
    asked = ["env", str(path), "-r", "rccl"]
    assert run(asked) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error[CS609]" in shown.err
    assert run([*asked, "--anyway"]) == 0
    assert f"MSCCL_ALGO_DIR={tmp_path}" in capsys.readouterr().out


def test_a_file_that_is_named_twice_is_listed_once(tmp_path, capsys):
    path = shutil.copy(XML / "good-allreduce.xml", tmp_path / "a.xml")
    (tmp_path / "b").mkdir()
    again = str(tmp_path / "b" / ".." / "a.xml")
    assert run(["env", str(path), str(path), again, "-r", "msccl"]) == 0
    assert capsys.readouterr().out.count(str(path)) == 2  # one variable for each reader


def test_exports_are_for_a_shell_or_in_json(tmp_path, capsys):
    path = tmp_path / "a.xml"
    path.write_bytes((XML / "good-allreduce.xml").read_bytes())
    assert run(["env", str(path), "-r", "rccl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"export MSCCL_ALGO_DIR={tmp_path}" in lines
    assert run(["env", str(path), "-r", "rccl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["RCCL_MSCCL_FORCE_ENABLE"] == "1"
    (tmp_path / "README").write_text("no schedule")
    assert run(["env", str(path), "-r", "rccl"]) == 2
    assert capsys.readouterr().out == ""
