"""``colsynth show``: the links, trees and steps of a file, whoever made it."""

import json

import networkx as nx
import pytest

from colsynth.cli.main import run


def made(tmp_path, capsys, *words):
    """Compile a file; return its path."""
    place = tmp_path / ("plan.json" if "mscclpp" in words else "file.xml")
    assert run(["compile", *words, "-O0", "-o", str(place)]) == 0
    capsys.readouterr()
    return str(place)


def shown(capsys, *words):
    assert run(["show", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("machine", "collective", "algorithm", "runtime", "inwards", "reaches"),
    [
        ("mesh:2x3", "allgather", "forest", "msccl", [False], 6),
        ("mesh:2x3", "allreduce", "forest", "rccl", [True, False], 6),
        ("ring:5", "reduce-scatter", "ring", "msccl-executor", [True], 5),
        ("clique:4", "allreduce", "halving-doubling", "rccl", [True, False], 4),
        ("clique:4", "allreduce", "allpairs", "msccl", [True], 4),
        ("clique:4", "alltoall", "pairwise", "rccl", [False], 2),
        ("ring:4", "allgather", "forest", "mscclpp", [False], 4),
    ],
)
def test_trees_of_all_ranks_hold_all_chunks_and_span(
    machine, collective, algorithm, runtime, inwards, reaches, tmp_path, capsys
):
    file = made(tmp_path, capsys, machine, "-c", collective, "-a", algorithm, "-r", runtime)
    found = shown(capsys, file, "-r", runtime)
    loads, ranks = found["sent_chunks"], range(found["ranks"])
    assert all(loads[rank][rank] == 0 for rank in ranks)
    counted = 0
    for root in ranks:
        for tree in shown(capsys, file, "-r", runtime, "--root", str(root))["trees"]:
            assert [phase["inwards"] for phase in tree["phases"]] == inwards
            counted += tree["chunks"]
            for phase in tree["phases"]:
                graph = nx.DiGraph(map(tuple, phase["edges"]))
                assert nx.is_arborescence(graph)
                assert (root in graph, graph.in_degree(root), len(graph)) == (True, 0, reaches)
                for upper, lower in phase["edges"]:
                    assert loads[lower][upper] if phase["inwards"] else loads[upper][lower]
    everywhere = algorithm == "allpairs"  # every chunk is complete at all ranks at once
    own = collective == "alltoall"  # chunks for oneself are not sent
    many = found["chunks"] * (len(ranks) if everywhere or own else 1)
    assert counted == many - (found["chunks"] if own else 0)


def test_what_people_see(tmp_path, capsys):
    file = made(tmp_path, capsys, "ring:4", "-c", "broadcast", "--root", "1", "-a", "ring",
                "-r", "msccl", "--channels", "1")  # fmt: skip
    assert run(["show", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{file}: broadcast of 4 ranks, 1 chunk, Simple"
    assert lines[3:8] == ["  0 1 2 3", "0 · · · ·", "1 · · █ ·", "2 · · · █", "3 █ · · ·"]
    assert "1 chunk of rank 1" in lines
    assert run(["show", file, "--root", "0"]) == 0
    assert "no chunk begins or is complete first at rank 0" in capsys.readouterr().out


def test_many_ranks_share_rows(tmp_path, capsys):
    file = made(tmp_path, capsys, "ring:40", "-c", "allgather", "-a", "ring", "-r", "msccl")
    assert run(["show", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.endswith(("·", "█", "░", "▒", "▓"))]
    assert len(rows) == 20
    assert rows[0].startswith("  0-1")
    assert lines[-2].split()[0] == "0-39"


def test_a_rank_that_is_not_there_and_a_bad_file(tmp_path, capsys):
    file = made(tmp_path, capsys, "ring:3", "-c", "allgather", "-a", "ring", "-r", "rccl")
    assert run(["show", file, "--root", "3"]) == 2
    assert "error[CS211]: --root cannot be 3" in capsys.readouterr().err
    text = (tmp_path / "file.xml").read_text()
    (tmp_path / "bad.xml").write_text(text.replace('srcoff="0"', 'srcoff="1"', 1))
    assert run(["show", str(tmp_path / "bad.xml"), "-r", "rccl"]) == 1
    assert "error[CS609]" in capsys.readouterr().err
    assert run(["show", str(tmp_path / "bad.xml"), "-r", "rccl", "--anyway"]) == 0


def test_what_is_no_schedule_file_is_said_in_one_line(tmp_path, capsys):
    place = tmp_path / "any.xml"
    for data, kind in [
        (b" \n", "empty"),
        (b"PK\x03\x04", "a timed schedule"),
        (b"<!DOCTYPE html><algo>", "an HTML page"),
        (b'{"format": "colsynth bundle"}', "the manifest of a bundle of 'colsynth tune'"),
        (b'{"format": "colsynth survey"}', "the table of a survey of 'colsynth survey'"),
        (b"version: 1\n", "neither XML nor a JSON object"),
    ]:
        place.write_bytes(data)
        for words in (
            ["show"],
            ["verify", "-r", "msccl"],
            ["env", "-r", "msccl"],
            ["simulate", "-t", "ring:4"],
            ["simulate", "-t", "ring:4", "-r", "rccl"],
        ):
            assert run([words[0], str(place), *words[1:]]) == 2
            lines = capsys.readouterr().err.splitlines()
            assert f"error[CS605]: this is no schedule file: it is {kind}" in lines[0]
            assert len(lines) == 2


def test_what_no_runtime_reads_is_said_with_its_line(tmp_path, capsys):
    (tmp_path / "cut.xml").write_text('\n<algo name="x"')
    assert run(["show", str(tmp_path / "cut.xml")]) == 2
    assert "note: msccl: line 2: X04: the file ends inside a tag" in capsys.readouterr().err


def test_rounds_are_named_where_programs_of_threadblocks_are_read(tmp_path, capsys):
    place = tmp_path / "rounds.json"
    words = ["compile", "ring:4", "-c", "allgather", "-r", "torch", "-O0", "-o", str(place)]
    assert run(words) == 0
    for command, code, answer in [
        (["show"], 2, "holds rounds of messages"),
        (["verify", "-r", "msccl"], 1, "looks like rounds for torch"),
        (["verify", "-r", "mscclpp"], 1, "the file holds rounds, for torch"),
    ]:
        capsys.readouterr()
        assert run([command[0], str(place), *command[1:]]) == code
        said = capsys.readouterr()
        assert answer in said.out + said.err
