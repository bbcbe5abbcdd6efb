"""``colsynth topology search``: wrong requests are named before any search."""

import pytest

from colsynth.cli.main import run

SEARCH = ["topology", "search", "--gpus", "16", "--tries", "0"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ports", "0"], "0 ports less 0 reserved leave 0"),
        (["--ports", "2", "--sizes", "1MB,2MB", "--weights", "1,0"], "a weight is 0"),
        (["--ports", "2", "--sizes", "1MB,2MB", "--weights", "1"], "1 weights for 2 sizes"),
        (["--ports", "2", "-o", "a.yaml", "--cables", "./a.yaml"], "two options name this file"),
    ],
)
def test_wrong_requests(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([*SEARCH, *words]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
