"""``colsynth explain`` without a code lists every code, by the room that gives it."""

import json
from collections import Counter

from colsynth.cli.codes import explanations
from colsynth.cli.main import run


def listed(capsys):
    assert run(["explain", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["codes"]


def test_every_code_is_listed_once_with_its_title(capsys):
    found = listed(capsys)
    assert [code for code, count in Counter(x["code"] for x in found).items() if count > 1] == []
    assert {x["code"]: x["title"] for x in found} == {
        code: page["title"] for code, page in explanations().items()
    }


def test_the_table_has_a_line_for_each_and_names_every_room(capsys):
    found = listed(capsys)
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for entry in found:
        assert sum(f" {entry['code']} " in line and entry["title"] in line for line in lines) == 1
    rooms = list(dict.fromkeys(entry["room"] for entry in found))
    assert [line.split()[0] for line in lines if line[1:2].isalpha()] == ["room", *rooms]
    assert rooms[-1] == "rules"
