"""``colsynth compare``: the table, the plot and the JSON that was promised."""

import json
from xml.etree import ElementTree as ET

import pytest

from colsynth.cli.main import run

CASE = ["compare", "dgx-a100", "-c", "allreduce", "--jobs", "1", "--budget", "6"]
SIZES = ["--sizes", "1KiB,1MiB,1GiB"]
ONLY = ["--algorithms", "forest,ring"]


def test_json_and_plot(tmp_path, capsys):
    plot = tmp_path / "a.svg"
    assert run([*CASE, *SIZES, *ONLY, "--plot", str(plot), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["topology"], answer["collective"]) == ("dgx-a100 x1", "allreduce")
    assert answer["sizes_bytes"] == [2**10, 2**20, 2**30]
    assert list(answer["algbw_gb_per_s"]) == ["forest", "ring"]
    for row in answer["algbw_gb_per_s"].values():
        assert len(row) == 3
        assert all(0 < x < answer["bound_gb_per_s"] for x in row)
    fastest = [
        max(answer["algbw_gb_per_s"], key=lambda name: answer["algbw_gb_per_s"][name][i])
        for i in range(3)
    ]
    assert answer["best"] == fastest
    for i, gain in enumerate(answer["over_library"]):
        rates = {name: answer["algbw_gb_per_s"][name][i] for name in ("forest", "ring")}
        assert gain == pytest.approx(max(rates.values()) / rates["ring"] - 1, rel=1e-3)
    root = ET.parse(plot).getroot()
    texts = {element.text for element in root.iter() if element.text}
    assert {"bound", "forest", "ring", "allreduce on dgx-a100 x1"} <= texts
    assert run([*CASE, *SIZES, *ONLY, "--plot", str(plot)]) == 2
    assert "CS207" in capsys.readouterr().err


def test_the_table_says_by_how_much_the_best_beats_the_library(capsys):
    assert run([*CASE, *SIZES, *ONLY]) == 0
    shown = capsys.readouterr().out
    assert "the bound is 171.429 GB/s" in shown
    assert "1 GiB" in shown
    assert shown.count(" %") >= 3
    assert "gain: of the best over the library's own algorithms (ring)" in shown


def test_without_algorithms_of_the_library_the_gain_is_unknown(capsys):
    case = ["compare", "ring:4", "-c", "allgather", "--sizes", "1MiB", "--budget", "1"]
    assert run([*case, "--algorithms", "forest"]) == 0
    assert "gain: unknown, since no algorithm of the library is among" in capsys.readouterr().out


def test_equal_runs_show_equal_answers(capsys):
    answers = []
    for jobs in ("1", "2"):
        assert run([*CASE[:-4], "--budget", "4", *SIZES, *ONLY, "--jobs", jobs, "--json"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_no_search_is_made_for_a_size_that_no_file_can_serve(capsys):
    small = ["compare", "ring:4", *CASE[2:], *ONLY, "--json"]
    answers = []
    for sizes in ("1KiB", "1KiB,99TiB"):
        assert run([*small, "--sizes", sizes]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    one, both = answers
    assert both["budget_spent"] == [*one["budget_spent"], False]
    assert {name: row[:1] for name, row in both["settings"].items()} == one["settings"]
    assert both["not_selected"] == {name: [False, True] for name in both["settings"]}
    assert both["best"][1] is None


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--sizes", "1XB"], "CS212"),
        (["--sizes", "0"], "CS212"),
        (["--sizes", "1GB..1KB"], "CS212"),
        (["--sizes", "4GiB,99TiB"], "CS212"),
        ([*SIZES, "--algorithms", "rings"], "CS213"),
        ([*SIZES, "--algorithms", ","], "CS213"),
        ([*SIZES, "-c", "custom"], "CS217"),
        ([*SIZES, "--budget", "0"], "CS210"),
        ([*SIZES, "--jobs", "0"], "CS210"),
        ([*SIZES, "-r", "nccl"], "CS501"),
        ([*SIZES, "--plot", "p.pdf"], "CS219"),
        ([*SIZES, "--plot", "p"], "CS219"),
    ],
    ids=str,
)
def test_wrong_input_is_told(capsys, options, code):
    assert run([*CASE, *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"error[{code}]" in shown.err
