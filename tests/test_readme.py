"""The README's console examples print what the README says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from colsynth import api, topology
from colsynth.cli.main import run

README = Path(__file__).parent.parent / "README.md"


def examples():
    """Return (command, expected text) of every console example, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append((command, expected.rstrip("\n")))
    return found


@pytest.mark.slow
def test_examples_print_what_they_show(tmp_path, monkeypatch, capsys):
    """All in one directory and in order: later examples use files of earlier ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert len(examples()) > 4
    for command, expected in examples():
        program, *arguments = shlex.split(command)
        assert program == "colsynth"
        run(arguments)
        shown = capsys.readouterr()
        text = shown.out or shown.err
        assert text.rstrip("\n") == expected


def test_the_files_of_the_readme_load(tmp_path):
    collective, cluster = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    for name, text in (("lab", cluster), ("mine", collective)):
        assert yaml.safe_load(text)["version"] == 1
        (tmp_path / f"{name}.yaml").write_text(text)
    assert topology.load(str(tmp_path / "lab.yaml")).size == 8
    problem = api.make_problem(topology.load("dgx-a100"), None, custom=tmp_path / "mine.yaml")
    assert [len(demand.wanted) for demand in problem.demands] == [3, 1]


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    done = api.synthesize(api.make_problem(topology.load("mesh:3x3"), "allgather"))
    api.write_schedule(done.schedule, "mesh.npz")
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(code, {})
    seconds = float(capsys.readouterr().out.split()[0])
    assert seconds == pytest.approx(float(done.schedule.seconds))
