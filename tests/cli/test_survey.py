import json
import os
import signal
import subprocess
import sys
import time

import pytest

from colsynth.cli.main import run

COMMAND = ["survey", "mesh:2x3", "-c", "allreduce"]
FAILURES = 7
"""Links of the mesh."""


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def started(place, *options):
    """Start a survey in a process, in a group of its own as a shell does.

    It heeds Ctrl-C also where the tests run in the background of a shell and do not.
    """
    command = [sys.executable, "-m", "colsynth", *COMMAND, "-o", str(place), *options]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_rows(place, process, count):
    """Wait until some failures are done; the process must still be at work then."""
    journal = place / "journal.jsonl"
    while not journal.exists() or journal.read_text().count('"failure"') < count:
        assert process.poll() is None, "it ended before"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A survey that was left alone."""
    place = tmp_path_factory.mktemp("survey") / "whole"
    assert run([*COMMAND, "-o", str(place), "--jobs", "1"]) == 0
    return place


def test_the_table_for_people_and_for_programs_is_the_same(whole, capsys):
    assert run([*COMMAND, "-o", str(whole)]) == 0
    shown = capsys.readouterr().out
    assert run([*COMMAND, "-o", str(whole), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("folder") == str(whole)
    assert found == json.loads((whole / "survey.json").read_text())
    assert len(found["rows"]) == FAILURES
    lines = [line for line in shown.splitlines() if line.startswith(" gpu")]
    assert [line.split()[0] for line in lines] == [row["failure"] for row in found["rows"]]
    worst = found["rows"][0]
    assert lines[0].split()[1:5] == [
        f"{worst['bound_gb_per_s']:.3f}",
        f"{worst['algbw_gb_per_s']:.3f}",
        f"{worst['loss_percent']:.2f}",
        "%",
    ]
    assert f"verified schedules for {FAILURES} failures, kept in {whole}" in shown


def test_json_has_what_a_monitor_needs(whole):
    found = json.loads((whole / "survey.json").read_text())
    assert {key: found[key] for key in ("topology", "ranks", "collective", "surveyed")} == {
        "topology": "mesh:2x3",
        "ranks": 6,
        "collective": "allreduce",
        "surveyed": ["links"],
    }
    assert found["healthy"]["failure"] == ""
    for row in found["rows"]:
        assert set(row["bottleneck"]) == {
            "way",
            "sets",
            "links",
            "bandwidth_gb_per_s",
            "bandwidth",
            "allows",
        }
        assert row["refusal"] is None
        assert 0 <= row["loss_percent"] <= 50
        assert row["algbw_gb_per_s"] <= row["bound_gb_per_s"]
        assert {file["path"].rpartition("-")[2] for file in row["files"]} == {
            "inplace.xml",
            "outofplace.xml",
        }


def test_kept_schedules_pass_verification(whole):
    healthy, *_, last = sorted((whole / "schedules").iterdir())
    assert healthy.name == "000-healthy"
    for folder in (healthy, last):
        files = [str(path) for path in sorted(folder.iterdir())]
        assert len(files) == 2
        assert run(["verify", *files, "-r", "msccl"]) == 0


def test_a_survey_that_is_killed_goes_on_and_ends_with_the_same_bytes(whole, tmp_path, capsys):
    place = tmp_path / "killed"
    process = started(place, "--jobs", "2")
    wait_for_rows(place, process, 2)
    process.kill()
    process.communicate()
    assert not (place / "survey.json").exists()
    known = (place / "journal.jsonl").read_text().count('"failure"')
    written = {path: path.stat().st_mtime_ns for path in place.glob("schedules/*/*.xml")}
    assert run([*COMMAND, "-o", str(place), "--jobs", "1"]) == 0
    assert contents(place) == contents(whole)
    untouched = [path for path, when in written.items() if path.stat().st_mtime_ns == when]
    assert len({path.parent for path in untouched}) >= known
    capsys.readouterr()


def test_ctrl_c_says_how_to_go_on(tmp_path):
    place = tmp_path / "stopped"
    process = started(place, "--jobs", "2")
    wait_for_rows(place, process, 3)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.startswith("interrupted: surveyed gpu")
    assert said.endswith(f" of {FAILURES + 1}; start the same command again to resume from there\n")
    assert len(said.splitlines()) == 1


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["survey", "ring:3", "-c", "broadcast", "--root", "1", "--failures", "gpus:1"]
    assert run([*command, "--jobs", "1"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "error[CS224]: there is no schedule after 1 failure",
        "  note: gpu1: CS211: the root itself is gone",
    ]
    assert "verified schedules for 2 failures; 1 without a schedule" in shown.out
    assert "CS211: the root itself is gone" in shown.out
    assert list(tmp_path.iterdir()) == []


def test_a_collective_that_trees_cannot_serve_has_another_algorithm(capsys):
    assert run(["survey", "ring:3", "-c", "alltoall", "--jobs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["refusal"] for row in found["rows"]] == [None] * 3


def test_a_broken_cluster_can_be_surveyed(capsys):
    command = ["survey", "ring:5", "-c", "allgather", "--drop-link", "gpu0-gpu1", "--jobs", "1"]
    assert run([*command, "--json"]) == 1
    shown = capsys.readouterr()
    assert shown.err.count("note: gpu") == 4
    found = json.loads(shown.out)
    assert found["failures"]["dropped"] == ["gpu0-gpu1"]
    assert found["topology"] == "ring:5 without gpu0-gpu1"
    # A path falls apart whatever link goes.
    assert [row["refusal"][:5] for row in found["rows"]] == ["CS302"] * 4
    assert [row["loss_percent"] for row in found["rows"]] == [100] * 4


@pytest.mark.parametrize(
    ("options", "exit_code", "code"),
    [
        (["-c", "allgather", "--failures", "cables:1"], 2, "CS136"),
        (["-c", "allgather", "--failures", "links:2"], 2, "CS136"),
        (["-c", "allgather", "--failures", "nics:1"], 2, "CS136"),
        (["-c", "allgather", "--jobs", "0"], 2, "CS210"),
        (["-c", "allgather", "--trees", "none"], 2, "CS210"),
        (["-c", "allgather", "-a", "rings"], 2, "CS213"),
        (["-c", "allgather", "-r", "nccl"], 2, "CS501"),
        (["-c", "alltoall", "-a", "forest"], 2, "CS303"),
        (["-c", "scatter"], 1, "CS220"),
        (["-c", "allgather", "-o", "taken"], 2, "CS207"),
    ],
)
def test_wrong_input(options, exit_code, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    assert run(["survey", "ring:4", *options, "--json"]) == exit_code
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"]["code"] == code
    assert shown.err.count("error[") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_another_survey_gives_way_to_force_alone(tmp_path, capsys):
    place = ["-o", str(tmp_path / "found"), "--jobs", "1"]
    assert run(["survey", "ring:4", "-c", "allgather", *place]) == 0
    assert run(["survey", "ring:3", "-c", "allgather", *place]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert run(["survey", "ring:3", "-c", "allgather", *place, "--force"]) == 0
    assert json.loads((tmp_path / "found" / "survey.json").read_text())["topology"] == "ring:3"
    assert len(list((tmp_path / "found" / "schedules").iterdir())) == 4
