"""``colsynth tune``: the bundle, whole or not at all, and again from where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colsynth.cli.main import run
from colsynth.search.workshop import Workshop

CASE = ["tune", "mi300x", "-c", "allgather", "-r", "rccl", "--algorithms", "forest"]
FAST = [*CASE, "--sizes", "1KiB,1MiB", "--budget", "3", "--jobs", "1"]
KEYS = {
    "path", "algorithm", "protocol", "instances", "trees_per_gpu", "min_bytes", "max_bytes",
    "inplace", "predicted",
}  # fmt: skip


def contents(place):
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def test_json_has_what_was_promised_and_the_files_are_there(tmp_path, capsys):
    place = tmp_path / "bundle"
    assert run([*FAST, "-o", str(place), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"]
    for entry in answer["files"]:
        assert set(entry) >= KEYS
        assert Path(entry["path"]).is_file()
    assert isinstance(answer["left_to_library"], list)
    assert {"env.sh", "manifest.json"} <= set(contents(place))
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_the_table_says_who_serves_what(tmp_path, capsys):
    assert run([*FAST, "-o", str(tmp_path / "bundle")]) == 0
    shown = capsys.readouterr().out
    assert "0 to" in shown or "0 and more" in shown
    assert "both modes" in shown
    assert "all verified" in shown
    assert "env.sh" in shown


def test_a_size_that_no_file_divides_is_named(tmp_path, capsys):
    options = ["tune", "dgx-a100", "-c", "allreduce", "-r", "rccl", "--algorithms", "forest,ring"]
    options += ["--sizes", "25MB,64MiB", "--budget", "10"]
    assert run([*options, "-o", str(tmp_path / "one"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["unserved"] == [{"collective": "allreduce", "size_bytes": 25000000}]
    assert run([*options, "-o", str(tmp_path / "two")]) == 0
    assert "not served: allreduce of 25000000 bytes" in capsys.readouterr().out


def test_a_bundle_without_files_says_why(tmp_path, capsys):
    case = ["tune", "ring:4", "-c", "allreduce", "-r", "msccl", "--algorithms", "ring"]
    options = ["--sizes", "1MiB", "--budget", "1", "--jobs", "1"]
    assert run([*case, *options, "-o", str(tmp_path / "bundle")]) == 0
    shown = capsys.readouterr().out
    assert "no file after 1 evaluation: nothing that serves these sizes is faster" in shown
    assert "verified" not in shown


def test_a_size_that_nothing_serves_is_left_to_the_library_for_that_reason(tmp_path, capsys):
    """Of 44 bytes, nccl-tests sends none among six ranks."""
    case = ["tune", "ring:6", "-c", "allgather", "-r", "rccl", "--algorithms", "forest"]
    options = ["--sizes", "44", "--budget", "1", "--jobs", "1"]
    assert run([*case, *options, "-o", str(tmp_path / "bundle")]) == 0
    shown = capsys.readouterr().out
    assert "no file after 1 evaluation: nothing that was tried serves these sizes\n" in shown


def test_what_stands_in_the_place_is_kept(tmp_path, capsys):
    place = tmp_path / "bundle"
    assert run([*FAST, "-o", str(place)]) == 0
    before = contents(place)
    assert run([*FAST, "-o", str(place)]) == 2
    assert "CS207" in capsys.readouterr().err
    assert contents(place) == before
    assert run([*FAST, "-o", str(place), "--force"]) == 0
    assert contents(place) == before


def test_an_interrupt_leaves_no_bundle_and_what_was_measured(tmp_path, monkeypatch, capsys):
    measure, done = Workshop.measure, []

    def stopping(workshop, asked):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(asked)
        return measure(workshop, asked)

    place = tmp_path / "bundle"
    monkeypatch.setattr(Workshop, "measure", stopping)
    assert run([*FAST, "-o", str(place)]) == 130
    assert capsys.readouterr().err.endswith("; start the same command again to resume from there\n")
    assert not place.exists()
    assert [path.name for path in tmp_path.iterdir()] == [".bundle.partial"]
    monkeypatch.setattr(Workshop, "measure", measure)
    assert run([*FAST, "-o", str(place)]) == 0
    assert run([*FAST, "-o", str(tmp_path / "fresh")]) == 0
    assert contents(place) == contents(tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "fresh"]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_bundle(tmp_path):
    place, journal = tmp_path / "bundle", tmp_path / ".bundle.partial" / "journal.jsonl"
    case = [*CASE, "--sizes", "1KiB..64MiB", "--budget", "12", "--jobs", "1", "-o"]
    command = [sys.executable, "-m", "colsynth", *case, str(place)]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and killed.poll() is None:
        if journal.exists() and len(journal.read_text().splitlines()) > 3:
            killed.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    assert killed.wait() == -signal.SIGKILL
    assert not place.exists()
    kept = len(journal.read_text().splitlines())
    assert kept > 3
    assert run([*case, str(place)]) == 0
    assert run([*case, str(tmp_path / "fresh")]) == 0
    assert contents(place) == contents(tmp_path / "fresh")


@pytest.mark.slow
def test_jobs_and_hash_seeds_change_no_byte(tmp_path):
    for seed, jobs in (("0", "1"), ("4242", "2")):
        subprocess.run(
            [sys.executable, "-m", "colsynth", *FAST[:-1], jobs, "-o", str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
    assert contents(tmp_path / "0") == contents(tmp_path / "4242")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-c", "allgather,allgathr"], "CS213"),
        (["-c", ","], "CS217"),
        (["-c", "allreduce,custom"], "CS217"),
        (["--algorithms", ","], "CS213"),
        (["--root", "1"], "CS211"),
        (["-c", "allgather,broadcast", "--root", "8"], "CS211"),
        (["--sizes", "4XB"], "CS212"),
        (["--budget", "0"], "CS210"),
        (["-c", "allgather,allreduce", "--budget", "1"], "CS210"),
        (["--jobs", "0"], "CS210"),
    ],
    ids=str,
)
def test_wrong_input_is_told_and_nothing_is_written(tmp_path, capsys, options, code):
    assert run([*FAST, "-o", str(tmp_path / "bundle"), *options]) == 2
    assert f"error[{code}]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_a_list_of_files_cannot_hold_is_refused_before_work(tmp_path, capsys):
    assert run([*FAST, "-r", "msccl", "-o", str(tmp_path / "a:b")]) == 2
    assert "error[CS504]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert run([*FAST, "-o", str(tmp_path / "a:b")]) == 0


def test_the_use_of_a_bundle_is_told_in_the_words_of_a_shell(tmp_path, capsys):
    place = tmp_path / "my [red]bundle $HOME"
    assert run([*FAST, "-o", str(place)]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("use: ")]
    command = f'{told.removeprefix("use: ")} && printf %s "$MSCCL_ALGO_DIR"'
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert shown.stdout == str(place / "schedules")


def test_an_answer_of_no_leaves_nothing_to_go_on_with(tmp_path, capsys):
    case = ["tune", "mesh:3x3", "-c", "alltoall", "-r", "msccl", "--algorithms", "ring,forest"]
    place = tmp_path / "bundle"
    assert run([*case, "--sizes", "1KiB", "--jobs", "1", "-o", str(place)]) == 1
    assert "error[CS611]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_nowhere_is_refused_before_work(tmp_path, capsys):
    place = tmp_path / "bundle"
    place.symlink_to("nowhere")
    assert run([*FAST, "-o", str(place), "--force"]) == 2
    assert "error[CS207]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [place]


def test_a_log_of_the_machine_decides(tmp_path, capsys):
    """A log of a machine with slow messages: predictions are its, and another program is best."""
    pytest.importorskip("scipy")
    lines = ["NCCL_ALGO=Ring NCCL_PROTO=Simple ./all_reduce_perf", "8 coll channels"]
    lines.append("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong")
    for size in (4**power for power in range(6, 15)):
        cells = f"{900 + size / 70_000:.2f} 0 0 0 "
        lines.append(f"{size} {size // 4} float sum -1 {cells * 2}")
    log = tmp_path / "log.txt"
    log.write_text("\n".join(lines) + "\n")
    case = ["tune", "dgx-1v", "-c", "alltoall", "-r", "msccl", "--algorithms", "ten,allpairs"]
    case += ["--sizes", "4MiB", "--budget", "24", "--jobs", "1", "--json"]
    found = []
    for name, more in (("plain", []), ("told", ["--log", str(log)])):
        assert run([*case, *more, "-o", str(tmp_path / name)]) == 0
        out, err = capsys.readouterr()
        assert ("constants of the logs: link_efficiency" in err) == bool(more)
        found.append(json.loads(out)["files"][0])
    plain, told = found
    assert told["settings"] != plain["settings"]
    assert told["predicted"] != plain["predicted"]
    both = [*case, "--log", str(log), "--model", __file__, "-o", str(tmp_path / "both")]
    assert run(both) == 2
