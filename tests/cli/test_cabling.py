"""``colsynth topology search``: wrong requests are named before any search."""

import pytest

from colsynth.cli.main import run

SEARCH = ["topology", "search", "--gpus", "16", "--tries", "0"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ports", "0"], "0 ports less 0 reserved leave 0"),
        (["--ports", "2", "--sizes", "1MB,2MB", "--weights", "1,0"], "a weight is 0"),
        (["--ports", "2", "--sizes", "1MB,2MB", "--weights", "1"], "1 weight for 2 sizes"),
        (["--ports", "2", "-o", "a.yaml", "--cables", "./a.yaml"], "two options name this file"),
        (["--ports", "2", "--box", "ring:4"], "CS126]: --box ring:4: this topology has no boxes"),
        (["--ports", "2", "-o", "a.txt"], "CS219"),
        (["--ports", "2", "--cables", "a.xml"], "CS219"),
    ],
)
def test_wrong_requests(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([*SEARCH, *words]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told", "works"),
    [
        ("--gpus 6 --ports 1 --duplex", "give --ports 2 or more", "--gpus 6 --ports 2 --duplex"),
        ("--gpus 6 --ports 1 --duplex", "leave out --duplex", "--gpus 6 --ports 1"),
        ("--gpus 5 --ports 1 --duplex", "--ports 2 or more", "--gpus 5 --ports 2 --duplex"),
        ("--gpus 6 --ports 3 --reserve 2 --duplex", "--ports 4", "--gpus 6 --ports 4 --reserve 2"),
        ("--gpus 24 --box ndv2 --duplex", "leave out --duplex: the", "--gpus 24 --box ndv2"),
        ("--gpus 8 --ports 5 --duplex --tries 0", "--tries", "--gpus 8 --ports 5 --duplex"),
        ("--gpus 14 --ports 11 --duplex", "--ports 10 or fewer", "--gpus 14 --ports 10 --duplex"),
    ],
)
def test_advice_works(words, told, works, capsys):
    assert run(["topology", "search", "--tries", "50", *words.split()]) == 2
    assert told in capsys.readouterr().err.partition("help: ")[2]
    assert run(["topology", "search", "--tries", "50", *works.split()]) == 0


def test_two_nodes_of_one_duplex_port(capsys):
    assert run(["topology", "search", "--gpus", "2", "--ports", "1", "--duplex"]) == 0
    assert "clique:2" in capsys.readouterr().out
