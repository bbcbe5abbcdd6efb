"""Trees of bounded height: published fronts, proofs that are checked, and the commands."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.bounds.levels import height_bound
from colsynth.cli.main import run
from colsynth.errors import InputError, VerificationError
from colsynth.model import Direction
from colsynth.runtimes.target import Context
from colsynth.synthesis.bfb.bounded import bounded_forest
from colsynth.topology import load
from colsynth.verify.heights import check_heights
from tests.bounds.test_steps import random_fabric

F = Fraction

FRONTS = {  # parts over one link, by height from the diameter on; the last is the cut optimum
    "kautz:2,2": {2: F(3), 3: F(5, 2)},
    "kautz:2,3": {3: F(7), 4: F(11, 2)},
    "genkautz:2,12": {3: F(7), 4: F(11, 2)},
    "joined(debruijn:2,3)": {3: F(7, 2)},
    "debruijn:2,3": {3: F(7)},
    "torus:3x3": {2: F(2)},
}


@pytest.mark.parametrize("spec", FRONTS)
def test_fronts_between_the_lowest_trees_and_the_optimum(spec):
    problem = api.make_problem(load(spec), "allgather")
    rows = api.heights(problem)  # checks every proof
    link = problem.topology.links[0].bandwidth
    size = problem.topology.size
    assert {row.height: size * link / row.forest.algbw for row in rows} == FRONTS[spec]
    assert all(row.forest.algbw == row.bound for row in rows)
    assert all(row.forest.max_height <= row.height for row in rows)
    assert rows[-1].forest.gap == 0


def test_bounds_where_whole_trees_are_hard_to_find():
    problem = api.make_problem(load("kautz:4,2"), "allgather")
    for height, load_ in ((2, F(5)), (3, F(19, 4))):
        found = height_bound(problem, Direction.OUT, height)
        check_heights(problem, found)
        assert found.load * problem.topology.links[0].bandwidth == load_


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_random_fabrics(seed):
    topology, _ = random_fabric(seed)
    if len(topology.nodes) > topology.size:
        with pytest.raises(InputError, match="CS309"):
            api.heights(api.make_problem(topology, "allgather"))
        return
    for collective in ("allgather", "allreduce"):
        rows = api.heights(api.make_problem(topology, collective))
        assert [row.bound for row in rows] == sorted(row.bound for row in rows)
        assert all(row.forest.algbw <= row.bound for row in rows)


def test_the_checker_sees_every_change():
    problem = api.make_problem(load("kautz:2,3"), "allgather")
    found = height_bound(problem, Direction.OUT, 3)
    check_heights(problem, found)
    for wrong in (
        replace(found, load=found.load * F(1001, 1000)),
        replace(found, height=4),
        replace(found, prices=(-1, *found.prices[1:])),
        replace(found, prices=found.prices[1:]),
        replace(found, joints=()),
        replace(found, prices=(0,) * len(found.prices)),
    ):
        with pytest.raises(VerificationError, match="CS527"):
            check_heights(problem, wrong)


def test_what_cannot_be_bounded():
    for spec, height, code in (
        ("kautz:2,3", 2, "CS310"),
        ("torus:8x8", 9, "CS310"),
        ("dgx-a100", 2, "CS309"),
    ):
        with pytest.raises(InputError, match=code):
            height_bound(api.make_problem(load(spec), "allgather"), Direction.OUT, height)


def test_commands(capsys, tmp_path):
    assert run(["bound", "kautz:2,3", "-c", "allreduce", "--heights", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["heights"]
    assert [(row["height"], row["proven"]) for row in found] == [(3, True), (4, True)]
    call = ["compile", "kautz:2,3", "-c", "allgather", "-r", "msccl", "-o", str(tmp_path / "k.xml")]
    assert run([*call, "--max-height", "3", "--json", "-O", "0"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["max_height"], made["verified"]) == (3, True)
    assert run([*call, "--force", "--max-height", "1000000", "--json", "-O", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["max_height"] < 12
    assert run([*call, "--force", "--max-height", "0"]) == 2
    assert run(["bound", "kautz:2,3", "-c", "allgather", "--heights", "--steps"]) == 2
    assert run(["bound", "kautz:2,3", "-c", "allgather", "--heights", "-r", "msccl"]) == 2
    assert re.findall(r"CS\d+", capsys.readouterr().err) == ["CS210", "CS217", "CS217"]
    assert run(["bound", "kautz:2,3", "-c", "allgather", "--heights"]) == 0
    assert "no trees of this height are faster" in capsys.readouterr().out


@pytest.mark.parametrize("spec", ["hypercube:3", "ring:5", "kautz:2,2"])
def test_heights_of_a_broadcast_end_where_the_optimum_is_reached(spec):
    """Each height is no worse than one that is lower, nor than a given number of trees there."""
    problem = api.make_problem(api.load_topology(spec), "broadcast")
    rows = api.heights(problem)
    rates = [row.forest.algbw for row in rows]
    assert rates == sorted(rates)
    assert rates[-1] == rows[-1].bound == api.bound(problem).algbw
    for row in rows:
        assert row.forest.max_height <= row.height
        for trees in ("1", "2", "3"):
            with suppress(InputError):
                given = bounded_forest(problem, trees, row.height, Context())
                assert given.algbw <= row.forest.algbw <= row.bound
