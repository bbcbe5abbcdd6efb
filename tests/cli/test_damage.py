"""The failures that every command with a topology takes."""

import json
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.cli.main import run

WITHOUT_3 = ["--drop-gpu", "3"]


def answer(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "command",
    [
        ["bound", "ring:6", "-c", "allgather"],
        ["topology", "show", "ring:6"],
        ["topology", "check", "ring:6"],
        ["synthesize", "ring:6", "-c", "alltoall"],
        ["compare", "ring:6", "-c", "allgather", "--sizes", "1MiB", "--algorithms", "forest"],
    ],
)
def test_every_command_says_what_is_left_and_who_has_which_rank(command, capsys):
    assert run([*command, *WITHOUT_3, "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["topology"] == "ring:6 without gpu3"
    assert found["failures"] == {
        "healthy": "ring:6",
        "dropped": ["gpu3"],
        "degraded": {},
        "pruned": [],
        "old_ranks": [0, 1, 2, 4, 5],
    }
    told = "note: ring:6 without gpu3: 5 GPUs left, ranks 0-2 as before, 3-4 were 4-5\n"
    assert shown.err == told


def test_schedules_are_for_the_gpus_that_are_left(tmp_path, capsys):
    file = str(tmp_path / "left.xml")
    command = ["compile", "dgx-a100", *WITHOUT_3, "-c", "allreduce", "-r", "msccl", "-o", file]
    found = answer(capsys, *command)
    assert found["ranks"] == 7
    assert found["verified"] is True
    assert found["failures"]["old_ranks"] == [0, 1, 2, 4, 5, 6, 7]
    timed = answer(capsys, "simulate", file, "-t", "dgx-a100", *WITHOUT_3, "--sizes", "1MiB")
    assert timed["ranks"] == 7
    assert timed["failures"]["dropped"] == ["gpu0.3"]
    assert run(["simulate", file, "-t", "dgx-a100", "--sizes", "1MiB"]) == 2  # of 8 GPUs


def test_a_bundle_is_for_the_links_that_are_left(tmp_path, capsys):
    place = tmp_path / "bundle"
    command = ["tune", "ring:4", "-c", "allgather", "-r", "msccl", "--sizes", "1MiB"]
    few = ["--algorithms", "forest", "--budget", "2", "--jobs", "1", "-o", str(place)]
    found = answer(capsys, *command, *few, "--degrade", "gpu0-gpu1=50%")
    assert found["failures"]["degraded"] == {"gpu0-gpu1": 50.0}
    manifest = json.loads((place / "manifest.json").read_text())
    assert manifest["inputs"]["topology"] == "ring:4 with gpu0-gpu1 at 50%"


def test_what_is_left_can_be_exported_and_read_back(tmp_path, capsys):
    assert run(["topology", "export", "dgx-a100", "--nodes", "2", "--drop-nic", "nic0.1"]) == 0
    (tmp_path / "left.yaml").write_text(capsys.readouterr().out)
    exported = api.load_topology(str(tmp_path / "left.yaml"))
    whole = api.load_topology("dgx-a100", nodes=2)
    assert exported == api.damage(whole, nics=["nic0.1"]).topology
    found = answer(capsys, "topology", "export", "ring:4", "--drop-link", "gpu0-gpu1")
    assert "failures" not in found  # the same format, which can be read back


def test_without_failures_nothing_is_said(capsys):
    assert run(["bound", "ring:4", "-c", "allgather", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert not {"failures", "healthy_algbw", "loss_percent"} & set(json.loads(shown.out))


def test_the_bound_says_what_the_failure_costs_and_where_it_is_tight_now(capsys):
    link = ["--drop-link", "gpu0.3-nic0.3"]
    found = answer(capsys, "bound", "dgx-a100", "--nodes", "2", "-c", "allgather", *link)
    healthy, left = Fraction(found["healthy_algbw"]), Fraction(found["algbw"])
    assert (healthy, left) == (Fraction(1040, 3), 320)
    assert found["loss_percent"] == pytest.approx(float(100 * (1 - left / healthy)), abs=1e-6)
    assert found["bottleneck"]["links"] == ["nvswitch0 -> gpu0.3"]
    assert run(["bound", "dgx-a100", "--nodes", "2", "-c", "allgather", *link]) == 0
    shown = capsys.readouterr().out
    assert "346.667 GB/s, exactly 1040/3 GB/s" in shown
    assert "7.69 %" in shown


def test_the_healthy_bound_is_from_the_same_gpu(tmp_path, capsys):
    """Rank 0 has the slow links before; rank 0 after is another GPU."""
    lines = ["version: 1", "name: uneven", "nodes:"]
    lines += [f"  - {{name: g{i}, kind: gpu}}" for i in range(4)]
    lines += ["links:"]
    speeds = {"01": 1, "12": 50, "13": 50, "23": 50}
    lines += [
        f"  - {{from: g{a}, to: g{b}, bandwidth: {speed} GB/s}}" for (a, b), speed in speeds.items()
    ]
    file = tmp_path / "uneven.yaml"
    file.write_text("\n".join(lines) + "\n")
    found = answer(capsys, "bound", str(file), "-c", "reduce", "--drop-gpu", "g0", "--root", "0")
    # To g1: 1 + 50 + 50 GB/s come in, but g0 sends 1 GB/s at most; without it, 100 GB/s.
    assert (found["algbw"], found["healthy_algbw"]) == ("100", "1")
    assert found["loss_percent"] == -9900


@pytest.mark.parametrize(
    ("failure", "exit_code", "code"),
    [
        (["--drop-gpu", "nowhere"], 2, "CS132"),
        (["--drop-link", "gpu0-gpu2"], 2, "CS132"),
        (["--degrade", "gpu0-gpu1=0%"], 2, "CS134"),
        (["--degrade", "gpu0-gpu1=5%", "--drop-gpu", "0"], 2, "CS135"),
        (["--drop-link", "gpu0-gpu1", "--drop-link", "gpu3-gpu4"], 1, "CS302"),
        ([x for i in range(5) for x in ("--drop-gpu", str(i))], 2, "CS117"),
    ],
)
def test_wrong_failures(failure, exit_code, code, capsys):
    assert run(["bound", "ring:6", "-c", "allgather", *failure, "--json"]) == exit_code
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"]["code"] == code
    assert code in shown.err


def test_gpus_that_are_cut_off_are_named(capsys):
    cut = ["--drop-link", "gpu0-gpu1", "--drop-link", "gpu3-gpu2"]
    assert run(["compile", "ring:6", "-c", "allgather", "-r", "msccl", "-o", "-", *cut]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the failures cut gpu1, gpu2 off from the other GPUs" in shown.err
