"""``--model`` of the commands that decide: searches and lowering follow the user's constants."""

import json
from dataclasses import replace

from colsynth import api
from colsynth.cli.main import run
from colsynth.cost import default_model
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.runtimes import profile
from colsynth.search.case import Case
from colsynth.search.plan import Plan
from colsynth.survey import SurveyCase

SLOW = "link_efficiency: 0.5\nrate: {Simple: 6.0}\n"


def answer(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_predictions_and_programs_follow_the_model(tmp_path, capsys):
    model = tmp_path / "model.yaml"
    model.write_text(SLOW)
    made = ["compile", "dgx-a100", "-c", "allgather", "-r", "msccl", "-a", "ring", "-O0"]
    found = []
    for name, more in (("a.xml", []), ("b.xml", ["--model", str(model)])):
        file = tmp_path / name
        answer(capsys, *made, "-o", str(file), *more)
        found.append(file.read_text())
    # Slow threadblocks need more rings to fill the links.
    assert [int(text.split('nchannels="')[1].split('"')[0]) for text in found] == [16, 32]
    case = ["compare", "dgx-a100", "-c", "allgather", "--sizes", "64MiB", "--algorithms", "ring"]
    case += ["--budget", "2", "--jobs", "1"]
    default, slow = (
        answer(capsys, *case, *more)["algbw_gb_per_s"]["ring"][0]
        for more in ([], ["--model", str(model)])
    )
    assert slow < 0.9 * default


def test_bundles_surveys_and_journals_know_the_model(tmp_path, capsys):
    model = tmp_path / "model.yaml"
    model.write_text(SLOW)
    folder = tmp_path / "bundle"
    answer(
        capsys, "tune", "dgx-a100", "-c", "allgather", "-r", "msccl", "--sizes", "1MiB",
        "--algorithms", "ring", "--budget", "1", "--jobs", "1", "--model", str(model),
        "-o", str(folder),
    )  # fmt: skip
    slow = replace(
        default_model(profile("msccl")),
        link_efficiency=0.5,
        rate={**default_model(profile("msccl")).rate, "Simple": 6.0},
    )
    assert json.loads((folder / "manifest.json").read_text())["inputs"]["model"] == slow.digest
    surveyed = answer(
        capsys, "survey", "clique:3", "-c", "allgather", "-a", "ring", "--failures", "gpus:1",
        "--jobs", "1", "--model", str(model),
    )  # fmt: skip
    assert surveyed["model"] == slow.digest
    problem = api.make_problem(api.load_topology("dgx-a100"), "allgather")
    plan = Plan("ring", "Simple", ALGORITHMS["ring"])
    cases = [Case(problem, "msccl", (2**20,), model=m) for m in (None, slow)]
    assert cases[0].key(plan) == replace(cases[0], model=default_model(profile("msccl"))).key(plan)
    assert cases[0].key(plan) != cases[1].key(plan)
    surveys = [SurveyCase(problem, ("gpus",), model=m).identity() for m in (None, slow)]
    assert surveys[0] != surveys[1]
