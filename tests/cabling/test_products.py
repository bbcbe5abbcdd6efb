"""From a search to a file: rankings, cables, boxes, and the command."""

import csv
import json
from collections import Counter
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.bounds.trees import bound
from colsynth.cabling.figures import figures
from colsynth.cabling.panels import cables
from colsynth.cabling.ranking import Job, rank
from colsynth.cli.main import run
from colsynth.topology import load
from colsynth.topology.graphs.grammar import build, read_term

F = Fraction


@pytest.mark.parametrize(
    ("spec", "panels", "both_ways"),
    [
        ("kautz:2,3", 2, False),
        ("genkautz:4,36", 4, False),
        ("torus:4x5", 2, True),
        ("distance-regular:petersen", 3, False),
        ("duplex(kautz:2,2)", 2, True),
    ],
)
def test_panels_hold_permutations_that_make_up_the_graph(spec, panels, both_ways):
    graph = build(read_term(spec))
    found = cables(graph)
    assert {cable.both_ways for cable in found} == {both_ways}
    assert {cable.panel for cable in found} == set(range(panels))
    for panel in range(panels):
        own = [cable for cable in found if cable.panel == panel]
        assert sorted(x.source for x in own) == sorted(x.target for x in own)
        assert len(own) == graph.size
    arcs = Counter((cable.source, cable.target) for cable in found)
    if both_ways:
        arcs += Counter((cable.target, cable.source) for cable in found)
    assert arcs == Counter(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))


def test_small_messages_want_few_steps_and_large_ones_bandwidth():
    fabrics = [figures(text, 4) for text in ("genkautz:4,64", "circulant:64,5,6")]
    job = Job("allgather", (1024, 2**30), (F(1), F(1)), F(25 * 10**9), F(1, 10**6))
    ranking = rank(job, fabrics)
    assert ranking.winners == (0, 1)
    seconds = job.seconds(fabrics[1], 2**30)
    assert seconds == 6 * job.latency + F(63, 64) * 2**30 / (4 * job.bandwidth)
    heavy = Job("allgather", job.sizes, (F(1), F(100)), job.bandwidth, job.latency)
    assert (rank(heavy, fabrics).overall, rank(heavy, fabrics).losses[1] < 0.01) == (1, True)


def test_the_command_writes_the_fabric_and_its_cables(capsys, tmp_path):
    fabric, wires = tmp_path / "best.yaml", tmp_path / "cables.csv"
    call = ["topology", "search", "--gpus", "24", "--ports", "4", "--duplex", "--tries", "500"]
    call += ["--bandwidth", "25 GB/s", "-o", str(fabric), "--cables", str(wires), "--json"]
    call += ["--plot", str(tmp_path / "front.svg")]
    assert run(call) == 0
    found = json.loads(capsys.readouterr().out)
    best = found["fabrics"][found["best"]]
    topology = load(str(fabric))
    assert (topology.name, topology.size, topology.is_symmetric) == (best["fabric"], 24, True)
    steps = api.steps(api.make_problem(topology, "allreduce"))
    assert (steps.steps, str(steps.bandwidth_time)) == (best["steps"], best["bandwidth_time"])
    assert fabric.read_text().startswith("# colsynth topology search: ")
    rows = [*csv.DictReader(wires.read_text().splitlines())]
    assert len(rows) == 48
    ports = [(row[end], row[f"{end}_port"]) for row in rows for end in ("from", "to")]
    assert len(set(ports)) == 96
    assert "known constructions" in (tmp_path / "front.svg").read_text()
    assert run(call) == 2
    assert "exists" in capsys.readouterr().err


def test_boxes_are_cabled_by_their_nics(capsys, tmp_path):
    fabric = tmp_path / "boxes.yaml"
    call = ["topology", "search", "--gpus", "48", "--box", "dgx-a100", "--reserve", "4"]
    assert run([*call, "--tries", "200", "--pick", "1", "-o", str(fabric)]) == 0
    assert "6 boxes of dgx-a100, 4 simplex ports" in capsys.readouterr().out
    topology = load(str(fabric))
    assert (topology.size, len(topology.boxes)) == (48, 6)
    # Four NICs of 25 GB/s let the shards of five other boxes in.
    assert bound(api.make_problem(topology, "allgather")).algbw == F(100 * 10**9 * 6, 5)


@pytest.mark.parametrize(
    "arguments",
    [
        "--gpus 4 --ports 4",
        "--gpus 1 --ports 1",
        "--gpus 8",
        "--gpus 5000 --ports 4",
        "--gpus 20 --box dgx-a100",
        "--gpus 16 --box dgx-1v --reserve 4",
        "--gpus 16 --box ring:4",
        "--gpus 8 --ports 2 -c alltoall",
        "--gpus 8 --ports 2 --weights 1,2",
        "--gpus 8 --ports 2 --weights a,b,c",
        "--gpus 8 --ports 2 --sizes 0",
        "--gpus 8 --ports 2 --tries -1",
        "--gpus 8 --ports 2 --pick 99 --tries 0",
        "--gpus 9 --ports 3 --duplex --tries 10",
        "--gpus 8 --ports 2 --bandwidth 25",
    ],
)
def test_wrong_requests(arguments, capsys):
    assert run(["topology", "search", *arguments.split()]) == 2
    assert capsys.readouterr().err.count("error[CS") == 1
