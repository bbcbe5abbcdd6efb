"""Numbers that no machine has are refused before any work is made of them."""

import pytest

from colsynth.cli.main import run
from tests.watchdog import at_most

HUGE = ("1000000", "2147483648", "9223372036854775808", "9" * 60)
COMPILE = ["compile", "clique:4", "-c", "allreduce", "-r", "msccl", "-o", "out.xml"]
PASSES = "{},order-transfers,place-slots,assign-threadblocks,spell-dependencies"
LINES = [
    [*COMPILE, "-a", "ring", "--channels", "{}"],
    [*COMPILE, "-a", "tree", "--channels", "{}"],
    [*COMPILE, "-a", "all-pairs", "--instances", "{}"],
    [*COMPILE, "--passes", PASSES.format("build-tree{chunks={}}")],
    [*COMPILE, "--passes", PASSES.format("build-all-pairs{instances={}}")],
    ["survey", "ring:3", "-c", "allgather", "--jobs", "{}"],
    ["compare", "ring:3", "-c", "allgather", "--jobs", "{}"],
    ["tune", "ring:3", "-c", "allgather", "-r", "msccl", "-o", "bundle", "--jobs", "{}"],
    ["topology", "check", "dgx-a100", "--nodes", "{}"],
]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line)[:60])
def test_absurd_numbers_are_told_at_once(line, number, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with at_most(20):
        code = run([word.replace("{}", number) for word in line])
    captured = capsys.readouterr()
    assert code in (1, 2)
    assert captured.err.count("error[") == 1
    assert list(tmp_path.iterdir()) == []


def test_ranks_of_a_root_end_where_machines_do(capsys):
    assert run(["bound", "ring:3", "-c", "broadcast", "--root", ",".join(["0-131071"] * 9000)]) == 2
    assert "more than 131072 ranks" in capsys.readouterr().err


def test_a_link_of_a_hundred_thousand_dashes_is_none(capsys):
    with at_most(20):
        assert run(["bound", "ring:3", "-c", "allgather", "--drop-link", "-" * 100_000]) == 2
    assert "error[CS132]" in capsys.readouterr().err
