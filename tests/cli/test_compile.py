import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from colsynth.cli.main import run

CASE = ["compile", "dgx-a100", "-c", "allgather"]
KEYS = {
    "topology", "collective", "ranks", "runtime", "algorithm", "trees_per_gpu", "max_height",
    "algbw_gb_per_s", "bound_gb_per_s", "gap",
    "chunks", "channels", "threadblocks", "steps", "files", "verified", "seconds",
}  # fmt: skip


def test_json_has_what_was_promised_and_the_file_is_there(tmp_path, capsys):
    path = tmp_path / "a.xml"
    assert run([*CASE, "-r", "rccl", "-o", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= KEYS
    assert answer["files"] == [str(path)]
    assert answer["verified"] is True
    assert answer["gap"] == 0
    assert answer["algbw_gb_per_s"] == answer["bound_gb_per_s"] == pytest.approx(342.857, abs=1e-3)
    assert (answer["ranks"], answer["runtime"], answer["collective"]) == (8, "rccl", "allgather")
    assert {"pack-trees", "spell-dependencies", "verify"} <= set(answer["seconds"])
    assert path.read_bytes().startswith(b"<algo ")


def test_json_of_a_timed_schedule(tmp_path, capsys):
    options = ["-a", "ten", "--size", "8MB", "--chunks-per-gpu", "2", "--instances", "2"]
    assert run([*CASE, *options, "-r", "rccl", "-o", str(tmp_path / "a.xml"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= KEYS
    assert (answer["algorithm"], answer["verified"]) == ("ten", True)
    assert (answer["trees_per_gpu"], answer["max_height"], answer["mean_height"]) == (None,) * 3
    assert (answer["size_bytes"], answer["chunks_per_gpu"], answer["chunks"]) == (8 * 10**6, 2, 32)
    assert answer["algbw_gb_per_s"] > 8 * 10**3 / answer["time_us"]
    assert answer["gap"] == pytest.approx(answer["bound_gb_per_s"] / answer["algbw_gb_per_s"] - 1)
    assert answer["time_us"] >= answer["bound_us"] > 0
    assert {"match-chunks", "lower-timed", "verify"} <= set(answer["seconds"])


def test_the_summary_of_a_timed_schedule_shows_times_instead_of_trees(tmp_path, capsys):
    path = tmp_path / "a.xml"
    assert run([*CASE, "-c", "alltoall", "-a", "ten", "-r", "rccl", "-o", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "us are needed (1000000000 bytes, 1 chunk per GPU)" in shown
    assert "trees" not in shown
    assert path.exists()


def test_the_summary_is_the_answer_and_names_the_file(tmp_path, capsys):
    path = tmp_path / "new" / "a.xml"
    assert run([*CASE, "-r", "rccl", "-o", str(path)]) == 0
    shown = capsys.readouterr()
    assert str(path) in shown.out
    assert "proven optimal" in shown.out
    assert "2.28.3" in shown.err


def test_on_stdout_stands_the_schedule_alone(tmp_path, capfdbinary):
    assert run([*CASE, "-r", "msccl", "-o", "-"]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(b"<algo ")
    assert shown.out.endswith(b"</algo>\n")
    assert b"allgather on dgx-a100 x1" in shown.err
    path = tmp_path / "same.xml"
    assert run([*CASE, "-r", "msccl", "-o", str(path)]) == 0
    assert path.read_bytes() == shown.out


def test_a_directory_gets_a_file_per_mode_where_one_cannot_serve_both(tmp_path):
    assert run([*CASE, "-r", "msccl", "-o", str(tmp_path)]) == 0
    assert run([*CASE, "-r", "rccl", "-o", f"{tmp_path}/"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dgx-a100-x1-allgather-msccl-inplace.xml",
        "dgx-a100-x1-allgather-msccl-outofplace.xml",
        "dgx-a100-x1-allgather-rccl.xml",
    ]


def test_one_msccl_file_is_in_place_and_says_so(tmp_path, capsys):
    path = tmp_path / "a.xml"
    assert run([*CASE, "-r", "msccl", "-o", str(path)]) == 0
    assert b'inplace="1"' in path.read_bytes()
    assert "give a directory" in capsys.readouterr().err


def test_an_existing_file_is_kept_unless_forced(tmp_path, capsys):
    path = tmp_path / "a.xml"
    path.write_text("mine")
    assert run([*CASE, "-r", "msccl", "-o", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "CS207" in capsys.readouterr().err
    assert run([*CASE, "-r", "msccl", "-o", str(path), "--force"]) == 0
    assert path.read_bytes().startswith(b"<algo ")


def test_a_note_of_the_verifier_says_that_the_file_is_fine_and_where_to_read_more(capsys):
    case = ["compile", "ring:4", "-c", "allreduce", "-a", "ring", "-r", "msccl", "-o", "-"]
    assert run(case) == 0
    (note,) = (line for line in capsys.readouterr().err.splitlines() if "K02" in line)
    assert note.startswith("note: K02: the file is fine")
    assert note.endswith("(`colsynth explain K02`)")


@pytest.mark.parametrize("least", [["1000", "--max-bytes", "1023"], ["4294967200"]])
def test_a_plan_that_no_message_of_its_range_would_use_is_refused(least, tmp_path, capsys):
    path = tmp_path / "a.json"
    case = ["compile", "ring:5", "-c", "allgather", "-r", "mscclpp", "-a", "ring", "-O0"]
    assert run([*case, "--min-bytes", *least, "-o", str(path)]) == 2
    assert capsys.readouterr().err.startswith(
        "error[CS212]: no size of the range can use the file: from"
    )
    assert not path.exists()


def test_a_note_that_the_files_of_both_modes_share_is_printed_once(tmp_path, capsys):
    """The file with copies has other numbers of threadblocks, for the same reason."""
    case = ["compile", "ring:4", "-c", "allgather", "-a", "ring", "-r", "msccl"]
    assert run([*case, "-o", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == 2
    assert capsys.readouterr().err.count("note: K02") == 1


def test_no_mode_is_missed_where_the_files_of_both_are_written(tmp_path, capsys):
    """One of them alone lets ranks disagree on the mode of a rooted collective, and hang."""
    case = ["compile", "ring:4", "-c", "broadcast", "-a", "ring", "-r", "msccl", "-O0"]
    assert run([*case, "-o", str(tmp_path / "one.xml")]) == 0
    assert "note: A16: the file is for in-place calls alone" in capsys.readouterr().err
    assert run([*case, "-o", f"{tmp_path}/both/"]) == 0
    assert len(list((tmp_path / "both").iterdir())) == 2
    told = capsys.readouterr().err
    assert told.count("note: A15") == 1
    assert "A16" not in told


ONE = ["-r", "msccl"]


@pytest.mark.parametrize(
    ("options", "exit_code", "code"),
    [
        ([*ONE, "--trees", "0"], 2, "CS210"),
        ([*ONE, "--trees", "best"], 2, "CS210"),
        ([*ONE, "--instances", "0"], 2, "CS210"),
        ([*ONE, "-a", "ring", "--channels", "0"], 2, "CS210"),
        ([*ONE, "-a", "exact", "--steps", "0"], 2, "CS210"),
        ([*ONE, "--root", "3"], 2, "CS211"),
        ([*ONE, "--min-bytes", "1.5"], 2, "CS212"),
        ([*ONE, "--min-bytes", "2MiB", "--max-bytes", "1MiB"], 2, "CS212"),
        ([*ONE, "--max-bytes", "4GiB"], 2, "CS212"),
        ([*ONE, "--protocol", "LL256"], 2, "CS213"),
        ([*ONE, "--mode", "inplace"], 2, "CS213"),
        ([*ONE, "-a", "woods"], 2, "CS213"),
        ([*ONE, "--mode", "both"], 2, "CS209"),
        ([*ONE, "--passes", "pack-trees,"], 2, "CS201"),
        ([*ONE, "--passes", "pack-tree"], 2, "CS202"),
        ([*ONE, "--passes", "pack-trees"], 2, "CS205"),
        ([*ONE, "--passes", "pack-trees,lower-forest", "--trees", "2"], 2, "CS206"),
        ([*ONE, "--passes", "match-chunks,lower-timed"], 2, "CS205"),
        ([*ONE, "-O4"], 2, "CS210"),
        ([*ONE, "-a", "forest", "--chunks-per-gpu", "2"], 2, "CS217"),
        ([*ONE, "--policy", "rarest", "--trees", "1"], 2, "CS217"),
        ([*ONE, "-a", "ten", "--trees", "2"], 2, "CS217"),
        ([*ONE, "-a", "auto", "-O0"], 2, "CS217"),
        ([*ONE, "-O0", "--budget", "3"], 2, "CS217"),
        ([*ONE, "--size", "7MB", "--max-bytes", "5"], 2, "CS212"),
        ([*ONE, "--size", "4GiB"], 2, "CS212"),
        ([*ONE, "--max-bytes", "5"], 2, "CS212"),
        ([*ONE, "-O0", "--min-bytes", "65", "--max-bytes", "79"], 2, "CS212"),
        ([*ONE, "-a", "ten", "--size", "much"], 2, "CS212"),
        ([*ONE, "-a", "ten", "--chunks-per-gpu", "0"], 2, "CS210"),
        ([*ONE, "-a", "ten", "-c", "scatter"], 1, "CS220"),
        ([*ONE, "--group", "0-3", "--transit"], 1, "CS404"),
        ([*ONE, "--nodes", "2", "--groups", "0,1;7,8"], 1, "CS404"),
        ([*ONE, "--group", "0-3,9"], 2, "CS216"),
        ([*ONE, "--group", "0-3", "--groups", "4-7"], 2, "CS217"),
        ([*ONE, "--nodes", "2", "--drop-link", "gpu0.0-nic0.0", "--group", "0,8"], 1, "CS302"),
        ([*ONE, "-c", "broadcast", "--root", "0,2"], 1, "CS404"),
        ([*ONE, "-c", "broadcast", "--root", "0,two"], 2, "CS211"),
        ([*ONE, "-c", "broadcast", "--root", "2,2"], 2, "CS211"),
        ([*ONE, "-c", "alltoall", "-a", "forest"], 2, "CS303"),
        ([*ONE, "--dump-ir", "pack-tree"], 2, "CS202"),
        (["-r", "mscl"], 2, "CS501"),
        ([*ONE, "--nodes", "2", "-c", "broadcast", "--protocol", "Simple"], 1, "CS221"),
        ([*ONE, "-c", "broadcast", "--root", "8"], 2, "CS211"),
    ],
)
def test_what_does_not_fit_is_diagnosed_and_nothing_is_written(
    options, exit_code, code, tmp_path, capsys
):
    path = tmp_path / "a.xml"
    assert run([*CASE, *options, "-o", str(path)]) == exit_code
    assert f"error[{code}]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_collective_of_one_s_own_has_no_file_but_a_schedule(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text("version: 1\nchunks: [{held-by: [0], wanted-by: [1]}]\n")
    out = tmp_path / "a.xml"
    case = ["compile", "dgx-a100", "--custom", str(mine), "-a", "ten", "-r", "rccl"]
    assert run([*case, "-o", str(out)]) == 1
    shown = capsys.readouterr().err
    assert "error[CS220]" in shown
    assert "'colsynth synthesize'" in shown
    assert not out.exists()


def test_json_and_schedule_do_not_share_stdout(capsys):
    assert run([*CASE, *ONE, "-o", "-", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "CS214"


def test_the_default_pipeline_written_out_gives_the_same_bytes(tmp_path, capsys):
    first, second = tmp_path / "a.xml", tmp_path / "b.xml"
    assert run([*CASE, "-r", "rccl", "--json", "-o", str(first)]) == 0
    text = json.loads(capsys.readouterr().out)["pipeline"]
    assert run([*CASE, "-r", "rccl", "--passes", text, "-o", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()


def test_dumps_go_to_stderr_and_to_numbered_files(tmp_path, capsys):
    out, dumps = str(tmp_path / "a.xml"), tmp_path / "dumps"
    options = ["--dump-ir", "lower-forest", "--dump-dir", str(dumps), "--time-passes"]
    assert run([*CASE, "-r", "rccl", "-o", out, *options]) == 0
    shown = capsys.readouterr().err
    written = sorted(path.name for path in dumps.iterdir())
    assert written[:3] == ["00-problem.txt", "01-pack-trees.txt", "02-round-weights.txt"]
    assert (dumps / "03-lower-forest.txt").read_text() in shown
    assert "Forest(" not in shown
    assert " s  verify" in shown


def test_a_program_that_fails_verification_is_kept_from_the_user(tmp_path, capsys, monkeypatch):
    """A writer that swaps two peers makes a wrong file; nothing may be written."""
    from colsynth.runtimes import writer

    honest = writer.write

    def swapped(program, profile):
        text = honest(program, profile)
        return text.replace(b'send="1"', b'send="?"').replace(b'send="2"', b'send="1"').replace(
            b'send="?"', b'send="2"'
        )  # fmt: skip

    monkeypatch.setattr(writer, "write", swapped)
    assert run([*CASE, "-r", "rccl", "-o", str(tmp_path / "a.xml")]) == 3
    assert "error[CS904]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_leaves_no_file(tmp_path, monkeypatch):
    def interrupt(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    assert run([*CASE, "-r", "rccl", "-o", str(tmp_path / "a.xml")]) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_any_hash_seed_gives_the_same_bytes():
    cases = (
        ["dgx-a100", "-c", "allreduce", "-r", "msccl"],
        ["mi250", "-c", "reduce-scatter", "-r", "rccl", "-a", "forest", "-O", "0"],
    )
    each = "".join(f"run({['compile', *case, '-o', '-']}), " for case in cases)
    script = f"import sys; from colsynth.cli.main import run; sys.exit(any(({each})))"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    ]
    assert outputs[0].count(b"<algo ") == len(cases)
    assert outputs[0] == outputs[1]


def test_json_says_how_far_each_limit_of_the_runtime_is_used(tmp_path, capsys):
    assert run([*CASE, "-r", "rccl", "-o", str(tmp_path / "a.xml"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    limits = answer["limits"]
    assert limits["threadblocks"] == {"used": answer["threadblocks"], "limit": 64}
    assert limits["steps"] == {"used": answer["steps"], "limit": 64}
    assert limits["xml_nodes"]["limit"] == 4094
    assert all(0 <= item["used"] <= item["limit"] for item in limits.values())


def test_the_summary_shows_the_limits(tmp_path, capsys):
    assert run([*CASE, "-r", "msccl", "-o", str(tmp_path / "a.xml")]) == 0
    shown = capsys.readouterr().out
    assert " of 216, resident threadblocks " in shown
    assert " of 4094" in shown


AUTO = [*CASE, "-a", "auto", "-r", "rccl", "--budget", "4"]


def test_auto_takes_what_is_fastest_at_the_size_and_says_so(tmp_path, capsys):
    taken = {}
    for size in ("4KiB", "1GiB"):
        path = tmp_path / f"{size}.xml"
        assert run([*AUTO, "--size", size, "-o", str(path), "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["verified"] is True
        assert path.read_bytes().startswith(b"<algo ")
        (point,) = answer["predicted"]
        assert point["algbw_gb_per_s"] > 0
        taken[size] = answer["protocol"]
        assert run([*AUTO, "--size", size, "-o", str(path), "--force"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert f"algorithm {answer['algorithm']}" in told
    assert taken["1GiB"] == "Simple"


def test_auto_shows_the_passes_of_what_it_took(tmp_path, capsys):
    options = ["--size", "1MiB", "--dump-ir", "assign-threadblocks"]
    path = tmp_path / "a.xml"
    assert run([*AUTO, *options, "-o", str(path)]) == 0
    assert " assign-threadblocks\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--protocol", "L"], "CS213"),
        (["--trees", "many"], "CS210"),
        (["--size", "0"], "CS210"),
        (["--size", "x"], "CS212"),
        (["--dump-ir", "pack"], "CS202"),
    ],
    ids=str,
)
def test_auto_takes_options_that_can_be(tmp_path, capsys, options, code):
    assert run([*AUTO, *options, "-o", str(tmp_path / "a.xml")]) == 2
    assert f"error[{code}]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


GROUPS = [
    ("dgx-a100", ["-c", "allreduce", "--group", "0-3"], 4, 200, "msccl"),
    ("dgx-a100", ["-c", "allgather", "--group", "6,1,4"], 3, 450, "msccl-executor"),
    ("dgx-a100", ["-c", "alltoall", "-a", "ten", "--group", "4-7"], 4, None, "rccl"),
    ("dgx-a100", ["-c", "allreduce", "-a", "ring", "--group", "1,3,5,7"], 4, 200, "msccl-executor"),
    ("mi250", ["-c", "allgather", "--group", "0-7"], 8, 200, "rccl"),
    ("dgx-a100", ["--nodes", "2", "-c", "allgather", "--group", "0,8,1,9"], 4, None, "msccl"),
    ("dgx-a100", ["-c", "broadcast", "--group", "2-5", "--root", "3"], 4, 300, "rccl"),
]


@pytest.mark.parametrize(("machine", "options", "size", "gb_per_s", "runtime"), GROUPS)
def test_a_file_for_a_group_is_for_its_gpus_in_their_order(
    machine, options, size, gb_per_s, runtime, tmp_path, capsys
):
    place = f"{tmp_path}{os.sep}"
    assert run(["compile", machine, *options, "-r", runtime, "-o", place, "--json"]) == 0
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert (answer["ranks"], answer["verified"]) == (size, True)
    if gb_per_s is not None:
        assert answer["bound_gb_per_s"] == pytest.approx(gb_per_s)
    told = options[options.index("--group") + 1]
    assert f"group {told}" in answer["topology"]
    old = answer["group"]["old_ranks"]
    assert answer["group"]["gpus"] == [_name(machine, rank) for rank in old]
    assert f"{size} GPUs of a communicator, ranks" in shown.err
    for file in answer["files"]:
        assert f'ngpus="{size}"' in Path(file).read_text()
        assert run(["verify", file, "-r", runtime]) == 0


def _name(machine, rank):
    per_box = 16 if machine == "mi250" else 8
    return f"gpu{rank // per_box}.{rank % per_box}"


def test_ranks_of_a_group_are_told_like_those_of_a_broken_cluster(tmp_path, capsys):
    options = ["--group", "6,1-3", "-r", "rccl", "-o", str(tmp_path / "a.xml")]
    assert run([*CASE, *options]) == 0
    assert "ranks 0 was 6, 1-3 as before" in capsys.readouterr().err


def test_a_mistyped_algorithm_is_told_the_nearest(tmp_path, capsys):
    assert run([*CASE, *ONE, "-a", "fores", "-o", str(tmp_path / "a.xml")]) == 2
    shown = capsys.readouterr().err
    assert "error[CS213]" in shown
    assert "did you mean 'forest'?" in shown


def compiled(capsys, *options):
    assert run(["compile", *options, "-r", "rccl", "--json"]) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err


def test_groups_that_are_alike_share_a_file(tmp_path, capsys):
    path = str(tmp_path / "a.xml")
    halves = ["-c", "allreduce", "--groups", "0-3;4-7", "-o", path]
    found, told = compiled(capsys, "dgx-a100", *halves)
    assert [group["old_ranks"] for group in found["groups"]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert told.count("4 GPUs of a communicator") == 2
    assert "one file for 2 groups, as fast on each as on 0-3" in found["notes"]
    assert not any("at the same time" in note for note in found["notes"])


def test_a_group_with_slower_links_is_told(tmp_path, capsys):
    """Two pairs on a ring: the link between the second pair is a tenth as wide."""
    path = str(tmp_path / "a.xml")
    pairs = ["--groups", "0,1;2,3", "-c", "allgather", "--degrade", "gpu2-gpu3=10%", "-o", path]
    found, _ = compiled(capsys, "ring:4", *pairs)
    notes = " ".join(found["notes"])
    assert "made for group 0-1; on group 2-3 it is predicted to take" in notes
    assert "at the same time" not in notes  # they share no link


def test_a_file_that_a_group_cannot_run_is_refused(tmp_path, capsys):
    """In the second group there is no way from its last to its first."""
    case = ["compile", "ring:6", "-c", "allgather", "--groups", "0-2;3-5", "-r", "rccl"]
    out = ["--drop-link", "gpu4-gpu5", "-o", str(tmp_path / "a.xml")]
    assert run([*case, *out]) == 1
    told = capsys.readouterr().err
    assert "error[CS404]" in told
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_no_file_can_serve_has_the_next_one_with_its_bound(tmp_path, capsys):
    options = ["-c", "allgather", "-r", "msccl", "-o", str(tmp_path / "a.xml"), "--json"]
    assert run(["compile", "ring:4", *options, "--size", "3"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["predicted"]
    assert point["size_bytes"] > 3
    assert 0 < point["least_us"] <= point["time_us"]


def test_a_reduce_is_to_its_root(tmp_path, capsys):
    options = ["-c", "reduce", "--root", "1", "-r", "msccl", "-o", str(tmp_path / "a.xml")]
    assert run(["compile", "ring:4", *options]) == 0
    assert "reduce to rank 1 on ring:4" in capsys.readouterr().out


def test_a_size_that_ranks_cannot_share_is_that_of_the_call(tmp_path, capsys):
    made = ["compile", "ring:3", "-c", "allgather", "-r", "torch", "--size", "1000", "-O0"]
    assert run([*made, "-o", str(tmp_path / "file.json"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [point["size_bytes"] for point in answer["predicted"]] == [960]
