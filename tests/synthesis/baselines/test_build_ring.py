"""Rings visit every GPU once, spread over links and NICs, and get a channel each."""

from collections import Counter
from fractions import Fraction

import pytest

from colsynth import api, runtimes
from colsynth.errors import InputError
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.synthesis.baselines.build_ring import BuildRing
from colsynth.synthesis.baselines.channel_rate import fewest, shares
from colsynth.synthesis.baselines.rings import find_rings
from colsynth.verify import check_forest
from tests.synthesis.baselines.reading import circle, connections

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def loads(phase):
    found = Counter()
    for tree in phase.trees:
        for edge in tree.edges:
            found.update(dict.fromkeys(edge.route, tree.weight))
    return found


@pytest.mark.parametrize("size", [2, 3, 8, 17])
def test_a_ring_of_gpus_is_loaded_evenly(schedule, size):
    forest = schedule("ring", f"ring:{size}", "allgather")
    topology = forest.problem.topology
    for phase in forest.phases:
        found = loads(phase)
        assert len(found) == len(topology.links)
        assert len(set(found.values())) == 1
    assert forest.gap == 0


def test_one_ring_takes_the_time_of_the_textbook(schedule):
    forest = schedule("ring", "ring:8", "allreduce", channels=1)
    link = forest.problem.topology.links[0].bandwidth
    assert forest.algbw == link * Fraction(8, 2 * 7)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    ("name", "boxes"),
    [("dgx-a100", 1), ("dgx-a100", 2), ("mi250", 1), ("mi300x", 1), ("mi300x", 3), ("ndv2", 2)],
)
def test_rings_prove_themselves(schedule, name, boxes, collective):
    root = 5 if collective in ("broadcast", "reduce") else None
    forest = schedule("ring", name, collective, boxes, root)
    check_forest(forest)
    heights = {tree.height for phase in forest.phases for tree in phase.trees}
    assert heights == {forest.problem.topology.size - 1}


def test_rings_of_channels_use_different_nics():
    topology = api.load_topology("dgx-a100", nodes=4)
    taken = Counter(
        link for ring, _ in find_rings(topology, 8) for way in ring.routes for link in way
    )
    nics = [
        taken[number]
        for number, link in enumerate(topology.links)
        if topology.nodes[link.source].kind == "nic" and topology.nodes[link.target].kind != "gpu"
    ]
    assert nics == [1] * 32


def test_rings_of_a_cube_mesh_take_double_links_twice():
    topology = api.load_topology("ndv2")
    taken = Counter(
        link for ring, _ in find_rings(topology, 6) for way in ring.routes for link in way
    )
    for link, times in taken.items():
        assert times * 25 * 10**9 <= topology.links[link].bandwidth


@pytest.mark.parametrize(
    ("name", "boxes", "collective"),
    [
        ("dgx-a100", 1, "allgather"),
        ("dgx-a100", 2, "reduce-scatter"),
        ("mi250", 1, "allreduce"),
        ("ndv2", 2, "allgather"),
    ],
)
def test_files_of_rings_verify(compiled, name, boxes, collective):
    rings = 3
    for done in compiled("ring", name, collective, boxes, channels=rings):
        program = done.artefacts[0].program
        nexts = [{} for _ in range(rings)]
        for channel, source, target in connections(program):
            nexts[channel][source] = target
        assert [circle(ring) for ring in nexts] == [program.header.ranks] * rings
        if done.runtime != "rccl":
            # Copies of a rank's own input are shared by threadblocks without peers.
            blocks = [block for gpu in program.gpus for block in gpu.threadblocks]
            peers = [block for block in blocks if block.send is not None]
            assert len(peers) == rings * program.header.ranks
            assert all(len(block.steps) == 1 for block in blocks if block.send is None)
            assert program.max_threadblocks <= runtimes.profile(done.runtime).usable_threadblocks


@pytest.mark.parametrize(
    ("runtime", "name", "boxes", "rings"),
    [
        ("msccl", "dgx-a100", 1, 16),
        ("msccl", "dgx-a100", 2, 8),
        ("msccl", "ndv2", 2, 1),
        ("rccl", "mi300x", 1, 32),
        ("rccl", "dgx-a100", 3, 16),
    ],
)
def test_rings_are_as_many_as_fill_the_links_and_fit(runtime, name, boxes, rings):
    problem = Problem(api.load_topology(name, nodes=boxes), Collective.ALLREDUCE)
    forest = BuildRing().run(problem, Target(runtimes.profile(runtime), size=boxes << 30))
    assert forest.trees_per_root == rings


def test_powers_of_two_come_before_fewer():
    assert fewest([Fraction(x) for x in (50, 90, 96, 98, 100)]) == 4
    assert fewest([Fraction(x) for x in (50, 90, 99, 90, 100)]) == 2


@pytest.mark.parametrize("most", [2**6, 2**8, 2**15])
def test_uneven_shares_add_up_to_a_power_of_two_and_pay(most):
    for channels in range(1, 33):
        speeds = [Fraction(n) for n in range(1, channels + 1)]
        found = shares(speeds, most)
        assert sum(found) & (sum(found) - 1) == 0
        assert sum(found) <= most or set(found) == {1}
        assert max(found) - min(found) <= 1
        assert Fraction(sum(found), max(found)) >= fewest(speeds)
    assert shares([Fraction(min(n, 16)) for n in range(1, 32)], most) == (1,) * 16
    assert len(shares([Fraction(n) for n in range(1, 30)], 2**15)) == 29


@pytest.mark.parametrize("size", [*range(3, 12), 24])
def test_no_ring_fills_all_its_fifos(size):
    """A connection holds two calls; with two chunks from each GPU nobody could receive first."""
    target = Target(runtimes.profile("msccl"), size=1 << 30)
    problem = Problem(api.load_topology(f"clique:{size}"), Collective.ALLREDUCE)
    trees = BuildRing().run(problem, target).phases[0].trees
    by_root = [[t.weight for t in trees if t.root == root] for root in range(size)]
    totals = [sum(weights) for weights in zip(*by_root, strict=True)]
    assert all(size <= total < 2 * size for total in totals)


def test_rings_of_a_damaged_torus_finish():
    topology = api.damage(api.load_topology("torus:3x3"), links=["gpu0-gpu1"]).topology
    problem = Problem(topology, Collective.ALLREDUCE)
    done = api.compile(problem, "msccl", algorithm="ring", level=0)
    assert sum(tree.weight for tree in done.schedule.phases[0].trees) == 128


def test_rings_of_many_gpus_fit_the_nodes_of_a_file():
    """16 or 32 equal rings of 68 GPUs would fill half of the links, or not fit."""
    topology = api.load_topology("gb200-nvl72", settings={"gpus": "68"})
    profile = runtimes.profile("msccl")
    target = Target(profile, size=17 << 25)
    forest = BuildRing().run(Problem(topology, Collective.ALLREDUCE), target)
    rings = len(forest.phases[0].trees) // 68
    assert 16 < rings < 32
    assert rings * 2 * 67 <= profile.max_xml_nodes
    assert forest.trees_per_root == 256


def predicted(algorithm, boxes, size, **options):
    """Return the busbw in GB/s that the simulator predicts for an allreduce."""
    topology = api.load_topology("dgx-a100", nodes=boxes)
    problem = Problem(topology, Collective.ALLREDUCE)
    done = api.compile(problem, "msccl", algorithm=algorithm, mode="in-place", **options)
    (point,) = simulate(done.artefacts[0].program, topology, runtimes.profile("msccl"), (size,))
    return point.busbw / 1e9


def test_a_ring_in_a_box_reaches_what_was_measured():
    """nccl-tests shows 230 to 240 GB/s on a DGX A100; ten percent either way."""
    assert 207 <= predicted("ring", 1, 2**30) <= 264


def test_rings_between_boxes_fill_the_nics():
    assert 0.9 * 200 <= predicted("ring", 2, 2**30) <= 200


def test_small_messages_are_for_all_pairs():
    for protocol in ("Simple", "LL"):
        small = {
            name: predicted(name, 1, 2**13, protocol=protocol)
            for name in ("ring", "tree", "halving-doubling")
        }
        assert predicted("allpairs2", 1, 2**13, protocol=protocol) > 1.2 * max(small.values())
    assert predicted("allpairs", 1, 2**30) < predicted("ring", 1, 2**30)


@pytest.mark.parametrize("name", ["mesh:3x3", "mesh:1x4"])
def test_where_no_ring_is_there_is_none(schedule, name):
    """A walk on a chessboard changes colour, so no circle has an odd number of fields."""
    with pytest.raises(InputError) as refused:
        schedule("ring", name, "allreduce")
    assert refused.value.diagnostic.code == "CS312"


def test_rings_serve_no_alltoall(schedule):
    with pytest.raises(InputError) as refused:
        schedule("ring", "ring:4", "alltoall")
    assert refused.value.diagnostic.code == "CS311"


@pytest.mark.parametrize(("gpus", "runtime"), [(6, "msccl"), (11, "msccl"), (6, "rccl")])
@pytest.mark.parametrize("size", [2**30, 10**9])
def test_ranks_need_not_divide_the_message_of_an_allreduce(size, gpus, runtime):
    """GPUs have one chunk or two on each ring, and all rings about as many."""
    topology = api.load_topology("gb200-nvl72", settings={"gpus": str(gpus)})
    problem = Problem(topology, Collective.ALLREDUCE)
    forest = BuildRing().run(problem, Target(runtimes.profile(runtime), size=size))
    found = forest.phases[0].trees
    rings = len(found) // gpus
    each = [sum(tree.weight for tree in found[ring::rings]) for ring in range(rings)]
    assert {tree.weight for tree in found} == {1, 2}
    assert max(each) - min(each) <= 1
    assert size // 4 % forest.chunks == 0
    done = api.compile(problem, runtime, algorithm="ring", level=0, size=size, several=False)
    assert done.verified
    assert done.artefacts[0].program.header.chunks == forest.chunks


@pytest.mark.parametrize("size", [3, 5])
def test_unequal_shares_may_beat_equal_roots(size):
    """Who has more chunks than others may be whose sums do not pass a slow link."""
    beaten = []
    for gpu in range(size):
        slow = f"gpu{gpu}->gpu{(gpu + 1) % size}=40%"
        topology = api.damage(api.load_topology(f"uniring:{size}"), degraded=[slow]).topology
        problem = Problem(topology, Collective.ALLREDUCE)
        forest = BuildRing().run(problem, Target(runtimes.profile("msccl")))
        check_forest(forest)
        beaten.append(forest.algbw > api.bound(problem).algbw)
    assert any(beaten)
