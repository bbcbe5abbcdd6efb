"""Alltoall of libraries: pairwise in rounds, or inside boxes and then between them."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest

from colsynth import api, runtimes
from colsynth.errors import InputError, LimitError
from colsynth.model import Collective, Kind, Node, Problem, Topology
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import pipeline_of
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.alltoall_grid import fitting_grid
from colsynth.synthesis.baselines.build_pairwise import rounds
from colsynth.synthesis.baselines.build_two_level import BuildTwoLevel
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes


@pytest.mark.parametrize("size", [2, 3, 6, 8, 16])
def test_all_pairs_meet_once_and_nobody_twice_in_a_round(size):
    pairs = list(rounds(size))
    assert sorted(pairs) == [(a, b) for a in range(size) for b in range(size) if a != b]
    for first in range(0, len(pairs), size):
        together = pairs[first : first + size]
        assert len({a for a, _ in together}) == len({b for _, b in together}) == size


def test_of_a_power_of_two_the_two_of_a_pair_send_to_each_other():
    pairs = list(rounds(8))
    for first in range(0, len(pairs), 8):
        together = set(pairs[first : first + 8])
        assert {(b, a) for a, b in together} == together


def test_pairwise_sends_every_chunk_straight(schedule):
    program = schedule("pairwise", "clique:6", "alltoall", instances=2)
    assert program.chunks == 12
    for transfer in program.transfers:
        assert divmod(transfer.chunk // 2, 6) == (transfer.source, transfer.target)
    assert len(program.transfers) == 2 * 30


@pytest.mark.parametrize(
    ("name", "boxes"), [("ring:8", None), ("dgx-a100", 2), ("mi250", 1), ("ndv2", 2)]
)
def test_pairwise_sends_only_where_ways_lead_and_by_the_fewest(schedule, name, boxes):
    """Distances are those of networkx; what is passed on has arrived before."""
    program = schedule("pairwise", name, "alltoall", boxes)
    topology, size = program.problem.topology, program.problem.topology.size
    ways = LoadedRoutes(topology)
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b and ways.joins(a, b)]
    distances = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(pairs)))
    at = {a * size + b: [a] for a in range(size) for b in range(size) if a != b}
    for transfer in program.transfers:
        assert ways.joins(transfer.source, transfer.target)
        path = at[transfer.chunk]
        assert path[-1] == transfer.source
        came = [program.transfers[number] for number in transfer.after]
        assert [(t.chunk, t.target) for t in came] == [(transfer.chunk, path[-1])] * (len(path) > 1)
        path.append(transfer.target)
    for chunk, path in at.items():
        source, sink = divmod(chunk, size)
        assert path[-1] == sink
        assert len(path) - 1 == distances[source][sink]


@pytest.mark.parametrize("boxes", [2, 3])
def test_two_levels_talk_to_the_box_and_to_the_rail(schedule, boxes):
    program = schedule("two-level", "dgx-a100", "alltoall", boxes)
    peers = Counter(source for source, _ in {(t.source, t.target) for t in program.transfers})
    assert set(peers.values()) == {7 + boxes - 1}
    for transfer in program.transfers:
        inside = transfer.source // 8 == transfer.target // 8
        assert inside or transfer.source % 8 == transfer.target % 8


@pytest.mark.parametrize("boxes", [2, 3])
def test_every_chunk_crosses_between_boxes_once(schedule, boxes):
    program = schedule("two-level", "dgx-a100", "alltoall", boxes)
    size = 8 * boxes
    crossed = Counter(t.chunk for t in program.transfers if t.source // 8 != t.target // 8)
    wanted = {a * size + b for a in range(size) for b in range(size) if a // 8 != b // 8}
    assert crossed == dict.fromkeys(sorted(wanted), 1)


def test_boxes_of_several_sizes_are_refused(schedule):
    topology = schedule("two-level", "dgx-a100", "alltoall", 2).problem.topology
    nodes = tuple(
        Node(node.name, node.kind, 0 if place == topology.ranks[-1] else node.box)
        for place, node in enumerate(topology.nodes)
    )
    assert nodes[topology.ranks[-1]].kind is Kind.GPU
    uneven = Topology("uneven", nodes, topology.links, topology.ranks)
    problem = Problem(uneven, Collective.ALLTOALL)
    with pytest.raises(InputError) as refused:
        BuildTwoLevel().run(problem, Target(runtimes.profile("msccl")))
    assert refused.value.diagnostic.code == "CS312"


@pytest.mark.parametrize(
    ("grid", "extents"),
    [("all", (8, 2)), ("2x4", (2, 4, 2)), ("2x2x2", (2, 2, 2, 2)), ("4x2x2", (4, 2, 2))],
)
def test_in_a_grid_a_chunk_changes_one_coordinate_after_the_other(schedule, grid, extents):
    """Each GPU has as many partners as coordinates have others, and no chunk makes a detour."""
    program = schedule("two-level", "dgx-a100", "alltoall", 2, grid=grid)
    at = {a * 16 + b: a for a in range(16) for b in range(16)}
    for transfer in program.transfers:
        assert at[transfer.chunk] == transfer.source
        differs = differing(transfer.source, transfer.target, extents)
        assert len(differs) == 1
        assert differs[0] == differing(transfer.source, transfer.chunk % 16, extents)[0]
        at[transfer.chunk] = transfer.target
    assert all(rank == chunk % 16 for chunk, rank in at.items())
    peers = Counter(source for source, _ in {(t.source, t.target) for t in program.transfers})
    assert set(peers.values()) == {sum(extent - 1 for extent in extents)}


def differing(one, other, extents):
    """Return the coordinates in which two places of a grid differ."""
    found = []
    for place, extent in enumerate(extents):
        if one % extent != other % extent:
            found.append(place)
        one, other = one // extent, other // extent
    return found


@pytest.mark.parametrize("runtime", ["msccl", "rccl", "mscclpp"])
def test_more_peers_than_threadblocks_are_served_along_a_grid(runtime):
    """With fewer threadblocks than peers, direct exchange is refused and the grid verified."""
    problem = api.make_problem(api.load_topology("dgx2"), "alltoall")
    few = replace(runtimes.profile(runtime), max_threadblocks=14, resident_threadblocks=14)
    once = {"in_place": runtime != "msccl", "out_of_place": runtime != "mscclpp"}
    target = Target(few, max_bytes=1 << 30, **once)
    with pytest.raises(LimitError, match="does not fit the threadblocks"):
        Pipeline.from_text(pipeline_of("pairwise")).run(problem, target)
    program = Pipeline.from_text(pipeline_of("two-level")).run(problem, target)
    assert program.max_threadblocks <= 14
    assert api.verify(runtimes.write(program, few), runtime).ok


def test_a_grid_has_no_more_coordinates_than_threadblocks_ask_for():
    found = {}
    for resident in (200, 72, 20):
        profile = replace(runtimes.profile("rccl"), max_threadblocks=200)
        profile = replace(profile, resident_threadblocks=resident)
        found[resident] = fitting_grid(72, 2, 1, profile)
    assert found[200] == (72, 2)
    assert found[72] == (8, 9, 2)
    assert len(found[20]) > 3


def test_what_is_no_grid_is_refused(schedule):
    with pytest.raises(InputError, match="needs extents"):
        BuildTwoLevel(grid="1+3")
    with pytest.raises(InputError, match="are no grid of 3x3"):
        schedule("two-level", "dgx-a100", "alltoall", 2, grid="3x3")
