"""Trees for the bandwidths that protocols leave links."""

import pytest

from colsynth import api
from colsynth.bounds.trees import bound
from colsynth.cost import default_model
from colsynth.cost.usable import usable
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import profile
from colsynth.runtimes.choice import Basis, Shape
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.synthesis.forest.usable import bandwidths

LOWERED = (
    "round-weights,lower-forest,coalesce-chunks,order-transfers,place-slots,"
    "assign-threadblocks{strategy=spread},spell-dependencies"
)


SHAPE = Shape(1, 2, steps=1, gpu_steps=1, block_steps=1, threadblocks=1, count=1)
"""Of some program: bandwidths do not depend on it."""


def forest_of(problem, bandwidth, runtime="rccl"):
    text = f"pack-trees{{trees=1,bandwidth={bandwidth}}}"
    return Pipeline.from_text(text).run(problem, Target(profile(runtime)))


def loads(forest):
    """Return the units on each link, of one phase."""
    found = {}
    for tree in forest.phases[0].trees:
        for edge in tree.edges:
            for link in edge.route:
                found[link] = found.get(link, 0) + tree.weight
    return found


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_trees_fill_what_is_left_of_links(collective):
    """On two DGX-1V, trees for wires fill NVLinks, of which a quarter is lost; these do not."""
    problem = api.make_problem(api.load_topology("dgx-1v", nodes=2), collective)
    left = usable(problem.topology, default_model(profile("rccl")))
    best = bound(api.make_problem(left, collective)).algbw / problem.topology.size
    rates = {}
    for bandwidth in ("wire", "usable"):
        units = loads(forest_of(problem, bandwidth)).items()
        rates[bandwidth] = min(left.links[link].bandwidth / number for link, number in units)
    assert rates["usable"] == best
    assert rates["wire"] < best


def test_rates_and_bound_are_those_of_the_wires():
    problem = api.make_problem(api.load_topology("dgx-1v", nodes=2), "allgather")
    forest = forest_of(problem, "usable")
    assert forest.problem == problem
    assert forest.gap == 0
    links = problem.topology.links
    rates = [links[link].bandwidth / units for link, units in loads(forest).items()]
    assert forest.phases[0].unit_bandwidth == min(rates)


def test_they_are_the_same_where_all_links_lose_alike():
    problem = api.make_problem(api.load_topology("dgx-1v"), "allgather")
    assert forest_of(problem, "usable") == forest_of(problem, "wire")


def test_large_messages_gain():
    problem = api.make_problem(api.load_topology("dgx-1v", nodes=2), "allgather")
    times = []
    for bandwidth in ("usable", "wire"):
        text = f"pack-trees{{trees=1,bandwidth={bandwidth}}},{LOWERED}"
        program = Pipeline.from_text(text).run(problem, Target(profile("rccl")))
        times.append(simulate(program, problem.topology, profile("rccl"), [1 << 30])[0].seconds)
    assert times[0] < 0.85 * times[1]


def crossings(forest):
    """Return how often each tree leads from one box to another."""
    topology = forest.problem.topology
    box = [topology.nodes[node].box for node in topology.ranks]
    trees = [tree for phase in forest.phases for tree in phase.trees]
    return [sum(box[x.parent] != box[x.child] for x in tree.edges) for tree in trees]


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_trees_enter_each_box_once_where_the_network_has_spare_bandwidth(collective):
    """On two DGX-2, NICs could carry half as much again as must cross, and trees use it."""
    problem = api.make_problem(api.load_topology("dgx2", nodes=2), collective)
    wide, needed = (forest_of(problem, bandwidth) for bandwidth in ("wire", "needed"))
    assert max(crossings(wide)) > 1
    assert set(crossings(needed)) == {1}
    assert (needed.problem, needed.gap) == (problem, 0)
    assert needed.phases[0].unit_bandwidth == wide.phases[0].unit_bandwidth
    assert needed.max_height < wide.max_height


def proposed(machine, boxes, collective="allgather", runtime="msccl"):
    """Return the bandwidths that are proposed beside that of the wires."""
    topology = api.load_topology(machine, nodes=boxes)
    values = {"pack-trees.bandwidth": "wire"}
    problem = api.make_problem(topology, collective, 0 if collective == "broadcast" else None)
    basis = Basis(problem, profile(runtime), "Simple", 1 << 30, SHAPE, values)
    return [changes["pack-trees.bandwidth"] for (changes,) in bandwidths(basis)]


def test_they_are_proposed_where_boxes_are_the_bottleneck():
    assert proposed("dgx2", 2) == ["usable", "needed"]
    assert proposed("ndv2", 2) == ["usable"]  # one NIC for eight GPUs
    assert proposed("dgx-h100", 2) == ["usable"]  # a GPU receives through its NIC too
    assert "needed" not in proposed("gb200-nvl72", 1)  # NVLinks lead out of boxes
    assert proposed("dgx2", 1) == []
