"""README and guide: what they show is what one gets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from colsynth import api, topology
from tests.examples import PAGES, ROOT, filled

GUIDE = ROOT / "colsynth" / "guide"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (GUIDE / page).read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_console_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert filled(page.read_text()) == page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_readme_names_every_guide_page_and_stays_short():
    text = (ROOT / "README.md").read_text()
    assert [page.name for page in GUIDE.glob("*.md") if f"guide/{page.name}" not in text] == []
    assert text.count("\n") <= 200


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
def test_the_numbers_that_matter_are_those_of_today(place):
    """All but the seconds: no test looks at a clock."""
    rows = re.findall(
        r"^\| (\S+) x(\d) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert len(rows) == 4
    machine, boxes, rest = rows[place]
    gpus, collective, runtime, algorithm, *rates, _ = rest.split(" | ")
    problem = api.make_problem(api.load_topology(machine, nodes=int(boxes)), collective)
    done = api.compile(problem, runtime, several=False)
    (large,) = (p for p in done.predicted if p.size_bytes == 2**30)
    summary = done.summary()
    found = summary["algbw_gb_per_s"], summary["bound_gb_per_s"], large.algbw / 1e9
    assert [f"{rate:.1f}" for rate in found] == rates
    assert (problem.topology.size, summary["algorithm"]) == (int(gpus), algorithm)


def test_the_files_of_the_guide_load(tmp_path):
    clusters, (collective,) = blocks("topologies.md", "yaml"), blocks("timed.md", "yaml")
    assert len(clusters) > 1
    for place, cluster in enumerate(clusters):
        assert yaml.safe_load(cluster)["version"] == 1
        (tmp_path / f"{place}.yaml").write_text(cluster)
        assert topology.load(str(tmp_path / f"{place}.yaml")).size > 1
    (tmp_path / "mine.yaml").write_text(collective)
    problem = api.make_problem(topology.load("dgx-a100"), None, custom=tmp_path / "mine.yaml")
    assert [len(demand.wanted) for demand in problem.demands] == [3, 1]


def test_the_python_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    *examples, script = blocks("python.md", "python")
    for code in examples:
        exec(code, {})
    bound, *predicted, last = capsys.readouterr().out.splitlines()
    assert all(0 < float(line.split()[2]) < float(bound.split()[1]) for line in predicted)
    assert len(predicted) > 1
    assert list(Path().glob("*.xml"))
    assert last.endswith("seconds")
    Path("script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=True)
    assert float(done.stdout.strip("(),\n")) > 0


def test_the_pass_of_the_guide_runs_and_the_search_varies_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (script,) = blocks("extending.md", "python bruck.py")
    Path("bruck.py").write_text(script)
    done = subprocess.run([sys.executable, "bruck.py"], capture_output=True, text=True, check=True)
    chosen, verified, *speeds = done.stdout.splitlines()
    assert "build-bruck{radix=8}" in chosen
    assert verified == "True"
    bruck, ring = (float(line.split()[1]) for line in speeds)
    assert bruck > ring
