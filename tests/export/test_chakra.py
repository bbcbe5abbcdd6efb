"""Exported traces, read back by field numbers of the public schema and played."""

import json

import numpy as np
import pytest

from colsynth.cli.main import run
from colsynth.runtimes import profile, read_file, schedules

COMP, SEND, RECV = 4, 5, 6
SIZE = 1 << 20


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """Return (field, value) of a message; texts and messages stay bytes."""
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        else:
            assert key & 7 == 0
        found.append((key >> 3, value))
    return found


def nodes_of(data):
    messages, at = [], 0
    while at < len(data):
        length, at = varint(data, at)
        messages.append(fields(data[at : at + length]))
        at += length
    assert [field for field, _ in messages[0]] == [1]  # GlobalMetadata.version
    return [node_of(message) for message in messages[1:]]


def node_of(message):
    node = {"deps": [], "id": 0}
    for field, value in message:
        if field == 5:
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                node["deps"].append(one)
        elif field == 10:
            name, number = fields(value)
            assert (name[0], number[0]) == (1, 9 if name[1] == b"comm_size" else 7)
            node[name[1].decode()] = number[1]
        else:
            node[{1: "id", 2: "name", 3: "type"}[field]] = value
    return node


def play(traces):
    """Run all nodes; return the bytes of every message by its name."""
    done, sent, moved = [set() for _ in traces], {}, True
    while moved:
        moved = False
        for rank, nodes in enumerate(traces):
            for node in nodes:
                if node["id"] in done[rank] or not done[rank].issuperset(node["deps"]):
                    continue
                if node["type"] != COMP:
                    ends = node["comm_src"], node["comm_dst"]
                    assert rank == ends[node["type"] == RECV]
                    key = (*ends, node["comm_tag"])
                if node["type"] == SEND:
                    assert key not in sent
                    sent[key] = node["comm_size"]
                elif node["type"] == RECV and sent.get(key) != node["comm_size"]:
                    continue
                done[rank].add(node["id"])
                moved = True
    assert [len(found) for found in done] == [len(nodes) for nodes in traces]
    return sent


@pytest.mark.parametrize("collective", ["allreduce", "alltoall"])
def test_traces_of_a_file_move_the_bytes_that_its_steps_move(tmp_path, capsys, collective):
    path, algorithm = tmp_path / "x.xml", "ring" if collective == "allreduce" else "pairwise"
    words = ["compile", "mesh:2x2", "-c", collective, "-r", "msccl", "-a", algorithm, "-O0"]
    assert run([*words, "-o", str(path)]) == 0
    capsys.readouterr()
    words = ["export", str(path), "--to", "chakra", "-o", str(tmp_path / "et"), "--size", "1MiB"]
    assert run([*words, "-r", "msccl", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    files = [tmp_path / "et" / f"x.{rank}.et" for rank in range(4)]
    assert answer["files"] == list(map(str, files))
    word = {"allreduce": "all-reduce", "alltoall": "all-to-all"}[collective]
    assert answer["system"] == {f"{word}-implementation-custom": [str(tmp_path / "et" / "x")]}
    sent = play([nodes_of(file.read_bytes()) for file in files])
    program = schedules.read(read_file(path), profile("msccl"), file="x.xml").program
    chunk = SIZE // program.header.chunks
    steps = [
        step.count * chunk
        for gpu in program.gpus
        for tb in gpu.threadblocks
        for step in tb.steps
        if step.op in ("s", "rcs", "rrs", "rrcs")
    ]
    assert sorted(sent.values()) == sorted(steps)
    assert run([*words, "-r", "msccl"]) == 2
    assert "CS207" in capsys.readouterr().err


def test_a_size_that_does_not_use_the_file_is_told(tmp_path, capsys):
    path = tmp_path / "x.xml"
    words = ["compile", "ring:4", "-c", "allreduce", "-r", "msccl", "-a", "ring", "-O0"]
    assert run([*words, "--min-bytes", "1MiB", "-o", str(path)]) == 0
    for size, selected in (("64KiB", False), ("1MiB", True)):
        capsys.readouterr()
        words = ["export", str(path), "-r", "msccl", "--to", "chakra", "-o", str(tmp_path / "et")]
        assert run([*words, "--force", "--size", size]) == 0
        assert ("does not use the file for this size" in capsys.readouterr().out) is not selected
        assert run([*words, "--force", "--size", size, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["selected"] is selected


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [([], 2**26 - 2**16, 2**26), (["--max-bytes", "1MB"], 5 * 2**17, 10**6),
     (["--min-bytes", "1GB"], 10**9, 2**30)],
)  # fmt: skip
def test_without_a_size_one_near_64_mib_uses_the_file(options, least, most, tmp_path, capsys):
    path = tmp_path / "x.xml"
    words = ["compile", "ring:5", "-c", "allgather", "-r", "msccl", "-a", "ring", "-O0"]
    assert run([*words, *options, "-o", str(path)]) == 0
    capsys.readouterr()
    words = ["export", str(path), "-r", "msccl", "--to", "chakra", "-o", str(tmp_path / "et")]
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["selected"]
    assert least <= found["size_bytes"] <= most


def test_traces_of_a_timed_schedule_bring_every_chunk_everywhere(tmp_path, capsys):
    words = ["synthesize", "mesh:2x3", "-c", "allreduce", "--size", "6MB"]
    assert run([*words, "--schedule", str(tmp_path / "s.npz")]) == 0
    words = ["export", str(tmp_path / "s.npz"), "--to", "chakra", "-o", str(tmp_path)]
    assert run([*words, "--size", "12MB"]) == 0
    assert '"all-reduce-implementation-custom"' in capsys.readouterr().out
    traces = [nodes_of((tmp_path / f"s.{rank}.et").read_bytes()) for rank in range(6)]
    sent = play(traces)
    # A tree per chunk: five edges inwards, five outwards, and a sum behind every edge inwards.
    assert len(sent) == 6 * 5 * 2
    assert set(sent.values()) == {2_000_000}
    assert sum(node["type"] == COMP for nodes in traces for node in nodes) == 6 * 5


def test_a_timed_schedule_has_its_own_size_and_is_checked(tmp_path, capsys):
    path, wrong = tmp_path / "s.npz", tmp_path / "wrong.npz"
    words = ["synthesize", "ring:4", "-c", "allreduce", "--size", "1MB"]
    assert run([*words, "--schedule", str(path)]) == 0
    words = ["--to", "chakra", "--json", "-o"]
    assert run(["export", str(path), *words, str(tmp_path / "et")]) == 0
    assert '"size_bytes": 1000000' in capsys.readouterr().out
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["phase0_run_start"] = -arrays["phase0_run_start"] - 1
    np.savez(wrong, **arrays)
    assert run(["export", str(wrong), *words, str(tmp_path / "no")]) == 1
    assert f"{wrong}: error[CS510]" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--to", "json"], "CS671"),
        (["--size", "1000001"], "CS672"),
        (["--size", "0"], "CS210"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, capsys, options, code):
    path = tmp_path / "x.xml"
    words = ["compile", "ring:4", "-c", "allreduce", "-r", "msccl", "-a", "ring", "-O0"]
    assert run([*words, "-o", str(path)]) == 0
    words = ["export", str(path), "-r", "msccl", "-o", str(tmp_path / "et")]
    assert run([*words, *(["--to", "chakra"] if options[0] != "--to" else []), *options]) == 2
    assert code in capsys.readouterr().err
    assert not (tmp_path / "et").exists()
