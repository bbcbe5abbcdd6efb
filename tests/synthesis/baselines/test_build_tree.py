"""A double binary tree of boxes with a chain of GPUs in each, half of the message on each."""

from collections import Counter
from fractions import Fraction

import pytest

from colsynth import api, runtimes
from colsynth.errors import InputError
from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.build_tree import BuildTree

COLLECTIVES = ("allreduce", "broadcast", "reduce")


def single_gpus(size):
    """Return a cluster of boxes of one GPU on a switch."""
    nodes = [Node("switch", Kind.SWITCH), *(Node(f"gpu{i}", Kind.GPU, i) for i in range(size))]
    pairs = sorted([(0, i) for i in range(1, size + 1)] + [(i, 0) for i in range(1, size + 1)])
    links = tuple(Link(a, b, Fraction(10**10)) for a, b in pairs)
    return Topology(f"singles x{size}", tuple(nodes), links, tuple(range(1, size + 1)))


def trees(program, phase=0):
    """Return the edges of each tree as data takes them in a phase."""
    found = {}
    for transfer in program.transfers:
        if transfer.origin.phase == phase:
            found.setdefault(transfer.origin.tree, set()).add((transfer.source, transfer.target))
    return [found[tree] for tree in sorted(found)]


def build(topology, collective="allreduce", root=None, **options):
    problem = Problem(topology, Collective(collective), root)
    return BuildTree(**options).run(problem, Target(runtimes.profile("msccl")))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 11, 16])
def test_every_gpu_passes_data_on_in_one_tree_at_most(size):
    first, second = trees(build(single_gpus(size), channels=1))
    inwards = [{target for _, target in tree} for tree in (first, second)]
    assert not inwards[0] & inwards[1]


@pytest.mark.parametrize("boxes", [2, 3, 5])
def test_every_box_passes_data_on_to_others_in_one_tree_at_most(boxes):
    topology = api.load_topology("dgx-a100", nodes=boxes)
    edges = trees(build(topology, channels=1))
    between = [{b // 8 for a, b in tree if a // 8 != b // 8} for tree in edges]
    assert not between[0] & between[1]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("name", "boxes"), [("dgx-a100", 3), ("mi250", 2), ("ndv2", 2)])
def test_trees_span_all_gpus_with_a_chain_in_each_box(name, boxes, collective):
    topology = api.load_topology(name, nodes=boxes)
    root = None if collective == "allreduce" else 3
    program = build(topology, collective, root, channels=2)
    size, per_box = topology.size, topology.size // boxes
    assert len(trees(program)) == 4
    for tree in trees(program):
        assert len(tree) == size - 1
        inside = [(a, b) for a, b in tree if a // per_box == b // per_box]
        assert len(inside) == boxes * (per_box - 1)
        for end in (0, 1):
            assert max(Counter(edge[end] for edge in inside).values()) == 1


def test_an_allreduce_copies_along_the_edges_on_which_it_added_up():
    program = build(api.load_topology("dgx-a100", nodes=3), channels=2)
    for inwards, outwards in zip(trees(program, 0), trees(program, 1), strict=True):
        assert {(b, a) for a, b in inwards} == outwards


def test_the_two_trees_carry_half_of_the_message_each():
    program = build(api.load_topology("dgx-a100", nodes=2), channels=1, chunks=3)
    carried = {}
    for transfer in program.transfers:
        carried.setdefault(transfer.origin.tree, set()).add(transfer.chunk)
    assert carried == {0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}}
    assert program.chunks == 8


def test_trees_take_different_rails():
    topology = api.load_topology("dgx-a100", nodes=2)
    edges = trees(build(topology, channels=4))
    crossing = [edge for tree in edges for edge in tree if edge[0] // 8 != edge[1] // 8]
    assert sorted(a % 8 for a, _ in crossing) == sorted(b % 8 for _, b in crossing)
    assert Counter(a % 8 for a, _ in crossing) == dict.fromkeys(range(8), 1)


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize(("name", "boxes"), [("dgx-a100", 1), ("dgx-a100", 2), ("mi300x", 1)])
def test_as_many_trees_as_fit_are_taken_by_themselves(name, boxes, runtime):
    problem = api.make_problem(api.load_topology(name, nodes=boxes), "allreduce")
    done = api.compile(problem, runtime, algorithm="tree")
    assert done.artefacts[0].program.header.channels >= 8


def test_boxes_without_ways_to_each_other_are_refused():
    islands = single_gpus(4)
    cut = tuple(link for link in islands.links if (link.source, link.target) != (2, 0))
    topology = Topology("cut", islands.nodes, cut, islands.ranks)
    with pytest.raises(InputError) as refused:
        build(topology)
    assert refused.value.diagnostic.code == "CS312"
