"""Commands that know process groups as machines of their own."""

import json

import pytest

from colsynth.cli.main import run


@pytest.fixture
def file(tmp_path, capsys):
    """An allgather for ranks 6, 1, 2 and 3 of a DGX A100."""
    path = tmp_path / "group.xml"
    options = ["-c", "allgather", "--group", "6,1-3", "-r", "rccl", "-o", str(path)]
    assert run(["compile", "dgx-a100", *options]) == 0
    capsys.readouterr()
    return str(path)


def test_the_file_of_a_group_is_simulated_on_its_gpus(file, capsys):
    command = ["simulate", file, "-t", "dgx-a100", "--sizes", "1MiB", "-r", "rccl", "--json"]
    assert run([*command, "--group", "6,1-3"]) == 0
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert (answer["ranks"], answer["group"]["old_ranks"]) == (4, [6, 1, 2, 3])
    assert "ranks 0 was 6, 1-3 as before" in shown.err
    for other in ([], ["--group", "0-2"]):
        assert run([*command, *other]) == 2
        assert "error[CS600]" in capsys.readouterr().err
    assert run([*command, "--group", "0-8"]) == 2
    assert "error[CS216]" in capsys.readouterr().err


@pytest.mark.parametrize(("group", "collective"), [("0-3", "reduce-scatter"), ("0,8", "allreduce")])
def test_a_runtime_has_the_same_bound_for_a_group_as_for_its_file(
    group, collective, tmp_path, capsys
):
    options = ["dgx-a100", "--nodes", "2", "--group", group, "-c", collective, "-r", "rccl"]
    assert run(["bound", *options, "--sizes", "64MiB", "--json"]) == 0
    (least,) = json.loads(capsys.readouterr().out)["by_size"]
    path = str(tmp_path / "group.xml")
    assert run(["compile", *options, "--size", "64MiB", "-O0", "-o", path, "--json"]) == 0
    (predicted,) = json.loads(capsys.readouterr().out)["predicted"]
    assert predicted["least_us"] == least["least_us"]
    assert least["threadblocks_us"] > 50  # a file moves 64 MiB in some threadblocks


def test_algorithms_are_compared_on_a_group(capsys):
    options = [
        "-c",
        "allgather",
        "--group",
        "0,2",
        "--sizes",
        "1MiB",
        "--algorithms",
        "forest,ring",
        "--jobs",
        "1",
    ]
    assert run(["compare", "dgx-a100", *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["group"]["gpus"] == ["gpu0.0", "gpu0.2"]
    # Half of the message enters each of two GPUs, over one link of 300 GB/s.
    assert answer["bound_gb_per_s"] == 600


def test_a_group_is_tuned(tmp_path, capsys):
    bundle = tmp_path / "bundle"
    options = ["-c", "allgather", "--group", "0-2", "--sizes", "64MiB", "--algorithms", "forest"]
    command = [
        "tune",
        "dgx-a100",
        *options,
        "--jobs",
        "1",
        "-r",
        "rccl",
        "-o",
        str(bundle),
        "--json",
    ]
    assert run(command) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["group"]["old_ranks"] == [0, 1, 2]
    manifest = (bundle / "manifest.json").read_text()
    assert "group 0-2" in manifest


def test_a_group_is_surveyed(capsys):
    """Ranks 4 to 6 of a ring are a chain; whatever link goes, it falls apart."""
    options = ["-c", "broadcast", "--group", "4-6", "--jobs", "1", "--json"]
    assert run(["survey", "ring:8", *options]) == 1
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["group"]["old_ranks"] == [4, 5, 6]
    assert [row["failure"] for row in answer["rows"]] == ["gpu4-gpu5", "gpu5-gpu6"]
    assert "ranks 0-2 were 4-6" in shown.err


def test_one_group_is_one(capsys):
    case = ["survey", "ring:4", "-c", "allgather"]
    assert run([*case, "--group", "0-1;2-3"]) == 2
    shown = capsys.readouterr().err
    assert "error[CS216]: --group takes one group" in shown
    assert "bound, compile and synthesize" in shown
