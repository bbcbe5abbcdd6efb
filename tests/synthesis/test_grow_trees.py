"""Shortest-path trees: certificates, heights, whole chunks, and what the search makes of them."""

from fractions import Fraction
from itertools import product

import pytest

from colsynth import api
from colsynth.bounds.steps import step_bound
from colsynth.errors import InputError
from colsynth.model import Kind, Link, Node
from colsynth.runtimes.target import Context
from colsynth.synthesis.grow_trees import GrowTrees
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.topology import load
from colsynth.topology.builder import Builder
from colsynth.topology.damage import Failures
from colsynth.topology.failures import apply_failures
from colsynth.verify import check_forest
from tests.bounds.test_steps import random_fabric

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


def grown(problem, chunks=1, balance="all"):
    forest = GrowTrees(chunks, balance).run(problem, Context())
    check_forest(forest)
    return forest


@pytest.mark.parametrize("spec", ["torus:4x4", "kautz:2,3", "genkautz:4,36", "line(bipartite:3)"])
def test_enough_chunks_reach_the_congestion_of_shortest_paths(spec):
    for collective in COLLECTIVES:
        problem = api.make_problem(load(spec), collective)
        bound = step_bound(problem)
        forest = grown(problem, 12)
        assert forest.algbw == bound.algbw
        assert forest.max_height == max(len(phase.steps) for phase in bound.phases)
        assert grown(problem, 12, "step").algbw >= 1 / bound.seconds_per_byte


@pytest.mark.parametrize("seed", range(8))
def test_whole_chunks_lose_less_than_one_chunk_of_the_worst_links(seed):
    topology, _ = random_fabric(seed)
    collective = ("allgather", "reduce-scatter", "broadcast")[seed % 3]
    root = 0 if collective == "broadcast" else None
    problem = api.make_problem(topology, collective, root)
    exact = 1 / step_bound(problem).algbw
    narrowest = min(link.bandwidth for link in topology.links)
    for chunks in (1, 2, 5):
        for balance in ("all", "step"):
            forest = grown(problem, chunks, balance)
            assert 1 / forest.algbw >= exact
            if balance == "all":
                assert 1 / forest.algbw <= exact + 1 / (narrowest * forest.chunks)


def test_every_step_has_the_least_load_of_whole_chunks():
    problem = api.make_problem(load("torus:4x4"), "allgather")
    (phase,) = grown(problem, 1, "step").phases
    loads = {}
    for tree in phase.trees:
        depth = tree.depths()
        for edge in tree.edges:
            key = depth[edge.child], edge.route
            loads[key] = loads.get(key, 0) + tree.weight
    worst = [max(n for (step, _), n in loads.items() if step == t) for t in (1, 2, 3, 4)]
    assert worst == [1, 2, 1, 1]  # loads 1 3/2 1 1/4, rounded up


def test_large_fabrics_take_shortest_paths_instead_of_packing():
    problem = api.make_problem(load("torus:12x12"), "allreduce")
    forest = PackTrees("4").run(problem, Context())
    check_forest(forest)
    assert (forest.gap, forest.max_height) == (0, 12)
    # Where shortest paths congest, trees are packed.
    congested = api.make_problem(load("kautz:2,6"), "allgather")
    packed = PackTrees("2").run(congested, Context())
    assert packed.algbw > grown(congested, 2).algbw


def test_what_is_too_large_for_shortest_paths_is_packed():
    many_links = api.make_problem(load("clique:65"), "allgather")
    with pytest.raises(InputError, match="CS309"):
        grown(many_links)
    check_forest(PackTrees("1").run(many_links, Context()))
    with pytest.raises(InputError, match="too many for shortest-path trees"):
        grown(api.make_problem(load("ring:64"), "allgather"), 100_000)
    with pytest.raises(InputError, match="too many for shortest paths"):
        grown(api.make_problem(load("uniring:8193"), "broadcast", 0))


def test_files_are_verified_on_every_runtime():
    for runtime, collective in zip(("msccl", "msccl-executor", "rccl"), COLLECTIVES, strict=True):
        problem = api.make_problem(load("kautz:2,3"), collective)
        done = api.compile(problem, runtime, algorithm="bfb", level=0)
        assert done.artefacts
        assert all(api.verify(x.data, runtime).ok for x in done.artefacts)


def test_switches_and_groups_are_refused():
    with pytest.raises(InputError, match="CS309"):
        grown(api.make_problem(load("dgx-a100"), "allgather"))
    with pytest.raises(InputError, match="CS303"):
        grown(api.make_problem(load("torus:4x4"), "alltoall"))
    with pytest.raises(InputError, match="CS210"):
        GrowTrees(1, "none")


@pytest.mark.parametrize("boxes", [2, 3])
def test_boxes_of_direct_links_have_a_neighbour_in_each_other_box(boxes):
    """Trees are a hop higher than those of a box."""
    for collective in COLLECTIVES:
        problem = api.make_problem(api.load_topology("mi250", nodes=boxes), collective)
        forest = grown(problem)
        box = api.make_problem(api.load_topology("mi250"), collective)
        assert forest.max_height == grown(box).max_height + 1
        for phase in forest.phases:
            for tree in phase.trees:
                far = [x for x in tree.edges if x.parent // 16 != x.child // 16]
                assert len({x.child // 16 for x in far}) == boxes - 1
                assert all((x.parent - x.child) % 16 == 0 for x in far)


def test_boxes_with_switches_or_of_different_sizes_are_no_fabric():
    whole = api.load_topology("mi250", nodes=2)
    smaller = apply_failures(whole, Failures(gpus=(whole.ranks[19],))).topology
    for topology in (api.load_topology("dgx-a100", nodes=2), smaller):
        with pytest.raises(InputError, match="CS309"):
            grown(api.make_problem(topology, "allgather"))


def test_boxes_that_cables_join_keep_all_of_them():
    """Two boxes of two GPUs, where NIC to NIC every GPU has a cable to each of the other box."""
    build = Builder()
    gpus = [build.add_node(Node(f"g{i}", Kind.GPU, i // 2)) for i in range(4)]
    ways = [gpus[:2], gpus[2:]]
    for i, j in product(range(2), range(2, 4)):
        nics = [build.add_node(Node(f"n{i}{j}-{end}", Kind.NIC, end // 2)) for end in (i, j)]
        ways += [(gpus[i], nics[0]), nics, (nics[1], gpus[j])]
    for source, target in ways:
        build.add_link(Link(source, target, Fraction(25 * 10**9)))
    problem = api.make_problem(build.finish("cabled"), "allgather")
    assert grown(problem).max_height == 1


def test_shards_of_different_sizes():
    topology = load("circulant:7,1,2")
    problem = api.make_problem(topology, "allgather", shards=(3, 1, 2, 1, 1, 1, 0))
    forest = grown(problem, 2)
    assert forest.weights == (6, 2, 4, 2, 2, 2, 0)
    assert forest.gap < Fraction(1, 2)


def test_the_search_tries_shortest_paths_and_single_trees_on_fabrics():
    problem = api.make_problem(load("torus:3x3"), "allgather")
    options = {"size": 2**20, "mode": "in-place"}
    found = api.compile(problem, "msccl", **options).predicted[0].seconds
    cut = api.compile(problem, "msccl", **options, chunks_per_gpu=2)
    assert cut.verified  # an option that forests do not have
    for other in ({"algorithm": "bfb"}, {"algorithm": "forest"}, {"trees": "1"}):
        assert found <= api.compile(problem, "msccl", **options, **other).predicted[0].seconds
