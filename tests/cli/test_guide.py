"""``colsynth guide``: every page, by name."""

import json

import pytest

from colsynth.cli.guide import guide_pages
from colsynth.cli.main import run


def test_without_a_name_it_lists_every_page_with_its_title(capsys):
    assert run(["guide"]) == 0
    shown = capsys.readouterr().out
    for name, text in guide_pages().items():
        assert f"{name} " in shown
        assert text.split("\n")[0].removeprefix("# ") in shown


@pytest.mark.parametrize("name", ["runtimes", "Runtimes.md"])
def test_a_page_that_goes_into_a_pipe_is_its_markdown(name, capsys):
    assert run(["guide", name]) == 0
    assert capsys.readouterr().out == guide_pages()["runtimes"]


def test_json_has_the_text(capsys):
    assert run(["guide", "tune", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"page": "tune", "text": guide_pages()["tune"]}


def test_an_unknown_page_is_refused_with_the_nearest(capsys):
    assert run(["guide", "runtime"]) == 2
    assert "did you mean 'runtimes'" in capsys.readouterr().err
