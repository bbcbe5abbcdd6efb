import json
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.errors import InputError

GIGA = 10**9


@pytest.fixture
def file(tmp_path):
    """Three quarters of the data in the first half of the GPUs."""
    path = tmp_path / "shards.yaml"
    lines = ("gpus: [0-7], bytes: 96MB", "gpus: [8-15], bytes: 32MB")
    path.write_text("version: 1\nshards:\n" + "".join(f"  - {{{line}}}\n" for line in lines))
    return str(path)


def test_the_bound_of_unequal_shards(file, capsys):
    command = ["bound", "dgx-a100", "--nodes", "2", "-c", "allgather", "--shards", file]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shards"] == [3] * 8 + [1] * 8
    # 24 of 32 parts leave the first box over eight NICs of 25 GB/s.
    assert Fraction(found["algbw"]) == Fraction(200 * 32, 24)
    assert found["bottleneck"]["gpus"] == [f"gpu0.{i}" for i in range(8)]
    assert found["trees_per_gpu"] is None
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "32 parts: 3 for 8 GPUs, 1 for 8 GPUs" in shown
    assert "trees per part  1" in shown


def test_healthy_shards_are_those_of_the_same_gpus(tmp_path, capsys):
    """The GPU that is lost held nothing of the message that is compared."""
    left = tmp_path / "left.yaml"
    entries = "  - {gpus: [0-6], weight: 3}\n  - {gpus: [7-14], weight: 1}\n"
    left.write_text(f"version: 1\nshards:\n{entries}")
    command = ["bound", "dgx-a100", "--nodes", "2", "-c", "allgather", "--drop-gpu", "3"]
    assert run([*command, "--shards", str(left), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = api.make_problem(api.load_topology("dgx-a100", nodes=2), "allgather")
    held = (3, 3, 3, 0, 3, 3, 3, 3, *[1] * 8)
    healthy = api.bound(replace(whole, shards=held)).algbw
    assert Fraction(found["healthy_algbw"]) * GIGA == healthy


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_timed_schedules_of_unequal_shards(collective, file, capsys):
    command = ["synthesize", "dgx-a100", "--nodes", "2", "-c", collective, "--shards", file]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["collective"], found["chunks"], found["verified"]) == (collective, 32, True)
    assert found["shards"] == [3] * 8 + [1] * 8


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_shards_of_a_message_with_several_roots(collective, tmp_path, capsys):
    """A message of which rank 0 has three quarters, within a group."""
    path = tmp_path / "roots.yaml"
    path.write_text(
        "version: 1\nshards:\n  - {gpus: [0], weight: 3}\n  - {gpus: [2], weight: 1}\n"
        "  - {gpus: [1, 3], weight: 0}\n"
    )
    options = ["dgx-a100", "-c", collective, "--group", "0-3", "--shards", str(path), "--json"]
    assert run(["bound", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["roots"], found["root"]) == ([0, 2], None)
    # Three quarters of the message take the one link of rank 0; all of it enters rank 1.
    assert found["algbw_gb_per_s"] == 300
    assert run(["synthesize", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["collective"], found["chunks"], found["verified"]) == (collective, 4, True)
    assert (found["groups"], found["root"]) == ([[0, 1, 2, 3]], None)


def test_shards_in_bytes_state_the_size_of_the_message(tmp_path, capsys):
    path = tmp_path / "shards.yaml"
    path.write_text("version: 1\nshards: [{gpus: [0], bytes: 6MB}, {gpus: [1-3], bytes: 3MB}]\n")
    options = ["synthesize", "ring:4", "-c", "allgather", "--shards", str(path), "--json"]
    assert run(options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["size_bytes"] == 15 * 10**6
    assert run([*options, "--size", "15MB"]) == 0
    assert json.loads(capsys.readouterr().out)["time_us"] == found["time_us"]
    assert run([*options, "--size", "1GB"]) == 2
    assert "CS217" in capsys.readouterr().err


def test_timed_schedules_are_called_what_was_asked_for(tmp_path, capsys):
    options = ["ring:4", "-c", "reduce", "--root", "0,2"]
    assert run(["synthesize", *options]) == 0
    assert "reduce to ranks 0,2 on ring:4" in capsys.readouterr().out
    path = tmp_path / "shards.yaml"
    path.write_text("version: 1\nshards: [{gpus: [0], weight: 2}, {gpus: [1-3], weight: 1}]\n")
    assert run(["synthesize", "ring:4", "-c", "allgather", "--shards", str(path)]) == 0
    assert "allgather of unequal shards on ring:4" in capsys.readouterr().out


def test_a_shard_outside_the_group_is_shown_in_its_entry(file, capsys):
    options = ["bound", "dgx-a100", "--nodes", "2", "-c", "allgather", "--group", "0-7"]
    assert run([*options, "--shards", file]) == 2
    assert f"{file}:4:12: error[CS137]: rank 8 " in capsys.readouterr().err


def test_one_shard_makes_one_root():
    topology = api.load_topology("ring:4")
    problem = api.make_problem(topology, "broadcast", shards=[0, 0, 5, 0])
    assert problem == api.make_problem(topology, "broadcast", 2)


def test_trees_from_python(file):
    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "allgather", shards=file)
    assert problem == api.make_problem(topology, "allgather", shards=[6] * 8 + [2] * 8)
    forest = api.pack(problem, "optimal")
    assert forest.gap == 0
    assert forest.shares == (3,) * 8 + (1,) * 8


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-c", "allreduce"], "CS217"),
        (["-c", "scatter"], "CS217"),
        (["-c", "broadcast", "--root", "1"], "CS217"),
        (["-c", "allgather", "--groups", "0-3;4-7"], "CS217"),
        (["-c", "allgather", "--group", "0-3"], "CS137"),
        (["-c", "allgather", "--shards", "nowhere.yaml"], "CS101"),
    ],
)
def test_wrong_input(options, code, file, capsys):
    shards = [] if "--shards" in options else ["--shards", file]
    assert run(["synthesize", "dgx-a100", "--nodes", "2", *options, *shards]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", [[1, 2, 3], [1, 1, 1, -1], [0, 0, 0, 0]])
def test_wrong_sizes_from_python(sizes):
    with pytest.raises(InputError, match="CS137"):
        api.make_problem(api.load_topology("ring:4"), "allgather", shards=sizes)
