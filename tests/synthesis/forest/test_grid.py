"""Grids behind switches keep the rate, with few neighbours."""

from __future__ import annotations

from collections import Counter

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.synthesis.forest.circulant import hops_by_digits
from colsynth.synthesis.forest.grid import (
    few_neighbours,
    flat_grid,
    fused_grid,
    grid_of,
    grid_rounds,
    roomy_grids,
)

BOX = """
version: 1
name: big
boxes: 1
box:
  nodes:
    - {{name: gpu, kind: gpu, count: {gpus}}}
    - {{name: sw, kind: switch}}
    - {{name: nic, kind: nic, count: {gpus}}}
  links:
    - {{from: gpu, to: sw, bandwidth: 100 GB/s}}
    - {{from: gpu, to: nic, join: blocks, bandwidth: 25 GB/s}}
fabric:
  nodes: [{{name: ib, kind: switch}}]
  links: [{{from: nic, to: ib, bandwidth: 25 GB/s}}]
"""


def packed(tmp_path, gpus, grid, boxes=1, collective="allreduce"):
    """Return the forest of a grid; the pipeline manager checks its certificate."""
    path = tmp_path / "big.yaml"
    path.write_text(BOX.format(gpus=gpus))
    problem = Problem(api.load_topology(str(path), nodes=boxes), Collective(collective))
    target = aim(problem, profile("msccl"), "Simple")
    return Pipeline.from_text(f"pack-trees{{trees=1,grid={grid}}}").run(problem, target)


@pytest.mark.parametrize("grid", ["2x2x3", "4x3", "6x2", "12"])
def test_a_grid_keeps_the_optimum_with_fewer_neighbours(tmp_path, grid):
    forest = packed(tmp_path, 12, grid)
    extents = grid_of(grid)
    assert forest.gap == 0
    assert forest.max_height == len(extents)
    for phase in forest.phases:
        pairs = {(edge.parent, edge.child) for tree in phase.trees for edge in tree.edges}
        neighbours = Counter(parent for parent, _ in pairs)
        assert set(neighbours.values()) == {sum(extent - 1 for extent in extents)}


def test_boxes_behind_a_fabric_keep_their_grids(tmp_path):
    plain, grid = (packed(tmp_path, 6, text, boxes=2) for text in ("all", "2x3"))
    assert grid.algbw == plain.algbw
    inside = {
        (edge.parent, edge.child)
        for tree in grid.phases[0].trees
        for edge in tree.edges
        if edge.parent // 6 == edge.child // 6
    }
    assert max(Counter(parent for parent, _ in inside).values()) <= 3


def test_a_grid_that_fits_no_switch_is_ignored(tmp_path):
    assert packed(tmp_path, 6, "2x2") == packed(tmp_path, 6, "all")


@pytest.mark.parametrize(("name", "boxes"), [("mi250", 2), ("dgx2", 1), ("dgx-a100", 2)])
def test_a_grid_that_is_proposed_changes_the_trees(name, boxes):
    """Two MI250 boxes have a switch of 32 ports, but it is paired box by box."""
    problem = Problem(api.load_topology(name, nodes=boxes), Collective.ALLGATHER)
    target = aim(problem, profile("msccl"), "Simple")
    grids = list(few_neighbours(problem.topology))
    assert bool(grids) == (name != "mi250")
    forests = [
        Pipeline.from_text(f"pack-trees{{trees=1,grid={grid}}}").run(problem, target)
        for grid in ("all", *grids)
    ]
    assert forests[0] not in forests[1:]


def test_rounds_send_every_shard_once():
    for grid in ((2, 2, 3), (5, 4), (7,), (2, 1, 2)):
        rounds = grid_rounds(grid)
        ports = len(rounds[0])
        assert len(rounds) == ports - 1
        for pairs in rounds:
            assert sorted(source for source, _ in pairs) == list(range(ports))
            assert sorted(sink for _, sink in pairs) == list(range(ports))
            assert all(source != sink for source, sink in pairs)


@pytest.mark.parametrize("text", ["", "0x2", "2x", "two", "2X3", "-1"])
def test_what_is_no_grid_is_refused(text):
    with pytest.raises(InputError) as caught:
        grid_of(text)
    assert caught.value.diagnostic.code == "CS210"


def test_a_big_switch_is_searched_with_grids(tmp_path):
    """One threadblock per peer, direction and phase would be more than are resident."""
    path = tmp_path / "big.yaml"
    path.write_text(BOX.format(gpus=24))
    problem = api.make_problem(api.load_topology(str(path)), "allreduce")
    options = {"algorithm": "forest", "several": False, "min_bytes": 1}
    plain = api.compile(problem, "msccl", level=0, **options)
    found = api.compile(problem, "msccl", **options)
    assert "grid" in found.summary()["settings"]
    assert found.predicted[-1].seconds < 0.5 * plain.predicted[-1].seconds
    assert found.predicted[0].seconds < plain.predicted[0].seconds


@pytest.mark.parametrize(
    ("gpus", "roomy", "flat"),
    [
        *((8, (), ()), (16, (), ()), (23, (), ()), (18, ("3x6", "6x3"), ()), (25, ("5x5",), ())),
        *((72, ("2x3x3x4", "4x3x3x2"), ("9x8",)), (360, ("2x3x3x4x5", "5x4x3x3x2"), ("9x8x5",))),
    ],
)
def test_grids_stand_where_two_threadblocks_for_each_neighbour_are_too_many(gpus, roomy, flat):
    """RCCL has 64: 60 for two in each direction of 15 neighbours; 18 GPUs would ask for 68."""
    topology = api.load_topology("gb200-nvl72", settings={"gpus": str(gpus)})
    assert roomy_grids(topology, 1, profile("rccl")) == roomy
    assert flat_grid(topology, 1, profile("rccl")) == flat


@pytest.mark.parametrize(("gpus", "grid"), [(17, "1+4"), (34, "1+4+16"), (7, "1+3"), (2, "1+1")])
def test_distances_keep_the_optimum_with_few_neighbours(tmp_path, gpus, grid):
    forest = packed(tmp_path, gpus, grid)
    assert forest.gap == 0
    for phase in forest.phases:
        ways = {(edge.child - edge.parent) % gpus for tree in phase.trees for edge in tree.edges}
        assert ways <= {way for d in grid_of(grid) for way in (d % gpus, -d % gpus)}


def test_powers_of_three_lead_to_everyone_in_at_most_two_hops_a_digit():
    for size in range(6, 400):
        powers = [3**k for k in range(6) if 2 * 3**k <= size]
        level = {0: 0}
        for start, end in hops_by_digits(size, powers):
            assert end not in level
            level[end] = level[start] + 1
        assert set(level) == set(range(size))
        assert max(level.values()) <= 2 * len(powers)


def test_distances_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(InputError, match="do not lead to all 12 GPUs"):
        packed(tmp_path, 12, "2+4")


def test_other_machines_ignore_distances(tmp_path):
    plain, other = (packed(tmp_path, 4, grid, boxes=2) for grid in ("all", "1+2"))
    assert other.phases == plain.phases


@pytest.mark.parametrize(
    ("machine", "runtime", "phases", "grid"),
    [
        *(("dgx-b200", "msccl", 1, ("2x2x2",)), ("dgx-h100", "msccl", 1, ())),
        *(
            ("dgx-h100", "msccl", 2, ("2x2x2",)),
            ("dgx-b200", "rccl", 2, ()),
            ("mi300x", "msccl", 2, ()),
        ),
    ],
)
def test_relays_save_threadblocks_where_links_want_more_than_there_are(
    machine, runtime, phases, grid
):
    """7 x 7 of 20 GB/s fill an NVLink of a B200, in each direction; 72 are resident."""
    problem = Problem(api.load_topology(machine), Collective.ALLGATHER)
    target = aim(problem, profile(runtime), "Simple")
    assert fused_grid(problem.topology, phases, target) == grid


def test_two_boxes_of_fast_links_are_searched_with_a_grid():
    problem = api.make_problem(api.load_topology("dgx-b200", nodes=2), "reduce-scatter")
    found = api.compile(problem, "msccl", several=False)
    assert "grid" in found.summary()["settings"]
    point = found.predicted[-1]
    assert point.seconds < 1.25 * point.least.seconds
