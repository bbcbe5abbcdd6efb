import json

import pytest

from colsynth import api
from colsynth.cli.codes import explanations
from colsynth.cli.main import run
from colsynth.synthesis.timed.match_chunks import MatchChunks

CASE = ["synthesize", "ring:4", "-c", "allgather"]
KEYS = [
    "topology", "collective", "ranks", "algorithm", "chunks", "transfers", "time_us", "bound_us",
    "gap", "synthesis_seconds", "peak_memory_mb", "schedule",
]  # fmt: skip


def answer(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_what_was_promised(capsys):
    options = ["--size", "4MB", "--latency", "0 s", "--policy", "rarest", "--seed", "3"]
    found = answer(capsys, *CASE, *options)
    assert list(found)[: len(KEYS)] == KEYS
    assert (found["chunks"], found["transfers"], found["schedule"]) == (4, 12, None)
    # One shard of 1 MB comes in over two links of 50 GB/s, two of three over one of them.
    assert found["time_us"] == found["bound_us"] * (found["gap"] + 1) == 40
    assert found["peak_memory_mb"] > 10
    assert (found["verified"], found["policy"], found["seed"]) == (True, "rarest", 3)


def test_the_schedule_is_written_and_can_be_read(tmp_path, capsys):
    path = tmp_path / "new" / "a.npz"
    found = answer(capsys, *CASE, "--schedule", str(path), "--chunks-per-gpu", "2")
    assert found["schedule"] == str(path)
    schedule = api.read_schedule(path)
    assert (schedule.chunks, schedule.chunks_per_gpu, schedule.transfers) == (8, 2, 24)
    rows = api.link_rows(schedule.phases[0])
    assert rows.end.max() == schedule.ticks
    assert found["time_us"] == pytest.approx(float(schedule.seconds) * 10**6)


def test_the_table_names_time_bound_and_file(tmp_path, capsys):
    path = tmp_path / "a.npz"
    options = ["--group", "0,1,2", "--transit", "-c", "broadcast", "--root", "1"]
    assert run([*CASE, *options, "--schedule", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "broadcast from rank 1 in group 0-2 with transit on ring:4" in shown
    for word in ("time", "bound by", "algbw", "verified  yes", str(path)):
        assert word in shown


def test_several_groups_and_a_collective_of_one_s_own(tmp_path, capsys):
    found = answer(capsys, *CASE, "--groups", "0-1;3,2")
    assert (found["groups"], found["chunks"]) == ([[0, 1], [3, 2]], 4)
    mine = tmp_path / "mine.yaml"
    mine.write_text("version: 1\nchunks: [{held-by: [0], wanted-by: [1-3], count: 4}]\n")
    found = answer(capsys, "synthesize", "ring:4", "--custom", str(mine))
    assert (found["collective"], found["chunks"], found["transfers"]) == ("custom", 4, 12)


def test_an_existing_file_is_kept_unless_forced(tmp_path, capsys):
    path = tmp_path / "a.npz"
    path.write_text("mine")
    assert run([*CASE, "--schedule", str(path)]) == 2
    assert "CS207" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert run([*CASE, "--schedule", str(path), "--force"]) == 0
    assert api.read_schedule(path).problem.topology.name == "ring:4"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--size", "1.5"], "CS212"),
        (["--size", "0"], "CS210"),
        (["--chunks-per-gpu", "0"], "CS210"),
        (["--tries", "0"], "CS210"),
        (["--steps", "0"], "CS210"),
        (["--budget", "-1"], "CS210"),
        (["--policy", "oldst"], "CS213"),
        (["-c", "scater"], "CS213"),
        (["-c", "custom"], "CS217"),
        (["--root", "1"], "CS211"),
        (["--group", "0-9"], "CS216"),
        (["--group", "0-x"], "CS216"),
        (["--groups", "0-1;2"], "CS216"),
        (["--group", "0-1", "--groups", "0-1;2-3"], "CS217"),
        (["--transit"], "CS217"),
        (["--pareto", "--size", "1MB"], "CS217"),
        (["--pareto", "-a", "ten"], "CS217"),
        (["--pareto", "--steps", "3"], "CS217"),
        (["--custom", "none.yaml"], "CS217"),
        (["--schedule", "."], "CS208"),
        (["--schedule", "-"], "CS219"),
        (["--chunks-per-gpu", "999999999999"], "CS125"),
    ],
    ids=" ".join,
)
def test_what_does_not_fit_is_one_diagnostic(options, code, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run([*CASE, "--schedule", "a.npz", *options]) == 2
    shown = capsys.readouterr().err
    assert shown.count("error[") == 1
    assert f"error[{code}]" in shown
    assert code in explanations()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--group", "--groups"])
def test_what_a_custom_collective_excludes_is_named_as_it_was_given(option, capsys):
    assert run(["synthesize", "ring:4", "--custom", "mine.yaml", option, "0-1"]) == 2
    assert f"CS217]: {option} does not go with --custom" in capsys.readouterr().err


def test_the_defaults_that_are_shown_are_those_of_the_pass(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["synthesize", "--help"]) == 0
    shown = capsys.readouterr().out
    assert MatchChunks().size == 10**9
    for default in ("1GB", MatchChunks().chunks_per_gpu, MatchChunks().policy):
        assert f"[default: {default}]" in shown


def test_ctrl_c_leaves_no_file_and_says_what_was_reached(tmp_path, capsys, monkeypatch):
    def stopped(_self, _value, target):
        target.progress("simulated 12.3 us", 5, 12)
        raise KeyboardInterrupt

    monkeypatch.setattr(MatchChunks, "run", stopped)
    assert run([*CASE, "--schedule", str(tmp_path / "a.npz")]) == 130
    shown = capsys.readouterr()
    said = shown.err.strip()
    assert said == "interrupted: simulated 12.3 us, 5 of 12; nothing was written"
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_writing_leaves_no_file(tmp_path, capsys, monkeypatch):
    from colsynth.store import writer

    def stopped(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "write_array", stopped)
    assert run([*CASE, "--schedule", str(tmp_path / "a.npz")]) == 130
    assert "interrupted: writing the schedule" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_schedule_is_kept_from_the_user(tmp_path, capsys, monkeypatch):
    """A matcher that claims to finish early makes a wrong schedule; nothing may be written."""
    from dataclasses import replace

    honest = MatchChunks.run

    def boastful(self, value, target):
        found = honest(self, value, target)
        return replace(found, ticks=found.ticks - 1)

    monkeypatch.setattr(MatchChunks, "run", boastful)
    assert run([*CASE, "--schedule", str(tmp_path / "a.npz")]) == 3
    assert "error[CS90" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
