import json

from colsynth.cli.main import run
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT


def test_json_lists_every_pass_with_options_that_build_it(capsys):
    assert run(["passes", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in answer["passes"]] == list(DEFAULT.names())
    for entry in answer["passes"]:
        assert entry["summary"].endswith(".")
        given = ",".join(f"{x['name']}={x['default']}" for x in entry["options"])
        assert str(Pipeline.from_text(f"{entry['name']}{{{given}}}")) == entry["name"]
    assert answer["algorithms"] == ALGORITHMS


def test_people_see_names_types_and_options(capsys):
    assert run(["passes"]) == 0
    shown = capsys.readouterr().out
    assert "trees=auto (str)" in shown
    assert "ThreadblockProgram" in shown
