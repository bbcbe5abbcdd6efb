"""All-pairs: everyone sends once to everyone, or shards to their owners and sums to everyone."""

import pytest

from colsynth import api
from colsynth.errors import InputError, LimitError
from tests.synthesis.baselines.reading import connections

TWO_SHOTS = (
    "build-all-pairs{shots=2},order-transfers,place-slots{sums=joined},"
    "assign-threadblocks{strategy=spread},spell-dependencies"
)
COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall")


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_pair_is_served_once_and_waits_for_nobody(schedule, collective):
    program = schedule("allpairs", "clique:5", collective)
    pairs = [(transfer.source, transfer.target) for transfer in program.transfers]
    assert sorted(pairs) == [(a, b) for a in range(5) for b in range(5) if a != b]
    assert all(transfer.after == () for transfer in program.transfers)


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "alltoall"])
def test_nobody_is_sent_to_twice_in_a_round(schedule, collective):
    transfers = schedule("allpairs", "clique:6", collective).transfers
    for first in range(0, len(transfers), 6):
        together = transfers[first : first + 6]
        assert len({one.source for one in together}) == 6
        assert len({one.target for one in together}) == 6


def test_copies_have_their_own_chunks(schedule):
    program = schedule("allpairs", "clique:4", "alltoall", instances=3)
    assert program.chunks == 12
    moved = [(one.source, one.chunk // 3, one.origin.instance) for one in program.transfers]
    assert len(set(moved)) == len(moved) == 3 * 12
    assert all(one.chunk % 3 == one.origin.instance for one in program.transfers)


@pytest.mark.parametrize(
    ("protocol", "mode"), [("Simple", "auto"), ("LL", "in-place"), ("LL128", "out-of-place")]
)
def test_all_ranks_of_an_allreduce_get_the_same_bits(compiled, protocol, mode):
    for done in compiled("allpairs", "clique:5", "allreduce", protocol=protocol, mode=mode):
        assert not [note for note in done.notes if note.startswith("B05")]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_files_of_copies_verify(compiled, collective):
    """Those of a single copy are among all baselines (`test_all_baselines.py`)."""
    for done in compiled("allpairs", "clique:5", collective, instances=2):
        program = done.artefacts[0].program
        size = program.header.ranks
        ends = {(source, target) for _, source, target in connections(program)}
        assert len(ends) == size * (size - 1)
        assert done.summary()["gap"] >= 0
        if collective == "allreduce":
            assert program.header.chunks == 2


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_data_stops_where_connections_do_not_reach(schedule, collective):
    """On a ring of eight with connections that pass one GPU, opposite ends are two apart."""
    program = schedule("allpairs", "ring:8", collective)
    assert {(one.target - one.source) % 8 for one in program.transfers} <= {1, 2, 6, 7}
    depth = []
    for one in program.transfers:
        depth.append(1 + max((depth[number] for number in one.after), default=0))
    assert max(depth) == 2
    served = {"alltoall": 56 + 24}.get(collective, 56)  # three of seven take another connection
    assert len(program.transfers) == served


@pytest.mark.parametrize(("mode", "other"), [("in-place", "LL"), ("out-of-place", "Simple")])
def test_sums_of_passed_on_contributions_verify(compiled, mode, other):
    """What is passed on stays where it landed, in place and out of place."""
    for name, boxes, protocol in (("ndv2", 2, "Simple"), ("ring:8", None, other)):
        asked = {"protocol": protocol, "mode": mode, "level": 0}
        for done in compiled("allpairs", name, "allreduce", boxes, **asked):
            assert not [note for note in done.notes if note.startswith("B05")]


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
def test_more_arrivals_than_a_chain_holds_are_added_in_several(compiled, collective):
    """Of 33 arrivals, 15 are added in one go, then 15 to the next one, then one to the last."""
    for done in compiled("allpairs", "clique:34", collective, protocol="LL", level=0):
        assert not [note for note in done.notes if note.startswith("B05")]
        gpu = done.artefacts[0].program.gpus[0]
        sums = [step for block in gpu.threadblocks for step in block.steps if step.op == "re"]
        assert len(sums) == 33
        several = done.runtime.startswith("msccl") and not done.runtime.startswith("mscclpp")
        assert len({step.target for step in sums}) == (3 if several else 1)


@pytest.mark.parametrize("size", [1 << 10, 1 << 20, 1 << 30])
def test_what_lands_and_is_passed_on_stays_where_a_plan_adds_few(size):
    """On a mesh of 12 GPUs, 11 arrivals are added, some of which are still sent on."""
    problem = api.make_problem(api.load_topology("mesh:3x4"), "allreduce")
    given = {"algorithm": "allpairs", "level": 0, "size": size, "mode": "in-place"}
    assert api.compile(problem, "mscclpp@0.8", **given).verified


def test_relays_are_refused_where_sums_have_too_many_parts(schedule):
    """Thirty-one arrivals; the same machine has connections for all pairs of an alltoall."""
    with pytest.raises(InputError, match="31 arrivals are more than 15") as refused:
        schedule("allpairs", "dgx2", "allreduce", 2)
    assert refused.value.diagnostic.code == "CS312"
    assert "'-a allpairs2'" in refused.value.diagnostic.help
    assert schedule("allpairs", "dgx2", "alltoall", 2).transfers


@pytest.mark.parametrize(("name", "steps"), [("clique:5", 1), ("ring:8", 2)])
def test_two_shots_add_up_each_shard_at_its_owner(schedule, name, steps):
    """On a ring of eight, connections pass one GPU, so data stops once on its way."""
    program = schedule("allpairs", name, "allreduce", shots=2)
    size, whole = program.problem.topology.size, []
    for one in program.transfers:
        before = [whole[number] for number in one.after]
        holds = frozenset({one.source}).union(*(known for known, _ in before))
        whole.append((holds, 1 + max((depth for _, depth in before), default=0)))
        if not one.reduces:
            assert len(holds) == size
    arrived = [(one.chunk, one.target) for one in program.transfers if not one.reduces]
    assert sorted(arrived) == [(a, b) for a in range(size) for b in range(size) if a != b]
    assert max(depth for _, depth in whole) == 2 * steps


@pytest.mark.parametrize("name", ["clique:5", "ring:8"])
@pytest.mark.parametrize("runtime", ["msccl", "rccl", "mscclpp"])
def test_files_of_two_shots_verify(name, runtime):
    problem = api.make_problem(api.load_topology(name), "allreduce")
    for mode in ("in-place", "out-of-place"):
        done = api.compile(problem, runtime, passes=TWO_SHOTS, protocol="LL", mode=mode)
        assert done.verified
        assert not [note for note in done.notes if note.startswith("B05")]


def test_a_third_shot_is_refused(schedule):
    with pytest.raises(InputError, match="shots") as refused:
        schedule("allpairs", "clique:4", "allreduce", shots=3)
    assert refused.value.diagnostic.code == "CS210"


def test_two_shots_serve_where_one_is_refused():
    """Seventeen arrivals; another algorithm would be one that nobody asked for."""
    problem = api.make_problem(api.load_topology("ring:18"), "allreduce")
    done = api.compile(problem, "msccl", algorithm="allpairs", level=0)
    assert done.verified
    assert "shots=2" in str(done.pipeline)


def test_two_shots_are_tried_where_no_file_sends_along_rails():
    problem, size = api.make_problem(api.load_topology("torus:4x4"), "allreduce"), 1 << 16
    found = api.compile(problem, "msccl", size=size).predicted[0].seconds
    one, two = (
        api.compile(problem, "msccl", size=size, passes=passes, protocol="LL").predicted[0].seconds
        for passes in (TWO_SHOTS.replace("shots=2", "shots=1"), TWO_SHOTS)
    )
    assert found <= two < one


def test_many_ranks_do_not_fit_rccl():
    problem = api.make_problem(api.load_topology("clique:40"), "allreduce")
    with pytest.raises(LimitError) as refused:
        api.compile(problem, "rccl", algorithm="allpairs", instances=2)
    assert refused.value.diagnostic.code.startswith("CS4")


def test_roots_are_refused(schedule):
    with pytest.raises(InputError) as refused:
        schedule("allpairs", "clique:4", "broadcast", root=0)
    assert refused.value.diagnostic.code == "CS311"
