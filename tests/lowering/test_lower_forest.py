"""Trees become transfers: every rank gets every chunk once, in an order that works."""

import pytest

from colsynth import api
from colsynth.cli.compile_answer import _in_runs
from colsynth.errors import InputError, LimitError
from colsynth.lowering.coalesce_chunks import CoalesceChunks
from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.uneven import carriers


@pytest.mark.parametrize("until", [LowerForest, CoalesceChunks, OrderTransfers])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_every_edge_moves_every_chunk_of_its_tree(lowered, until, collective):
    program = lowered("mi250", collective, until=until)
    ranks = program.problem.topology.size
    phases = 2 if collective == "allreduce" else 1
    assert program.chunks == 3 * ranks
    arrivals = {}
    for number, transfer in enumerate(program.transfers):
        assert all(earlier < number for earlier in transfer.after)
        for chunk in range(transfer.chunk, transfer.chunk + transfer.count):
            key = transfer.origin.phase, transfer.target, chunk
            arrivals[key] = arrivals.get(key, 0) + 1
    moved = sum(t.count for t in program.transfers)
    assert moved == phases * program.chunks * (ranks - 1)
    if collective == "allgather":
        assert set(arrivals.values()) == {1}
        assert len(arrivals) == program.chunks * (ranks - 1)


def test_senders_hold_what_they_send(lowered):
    program = lowered("mi250", "allgather", until=OrderTransfers)
    shard = program.chunks // program.problem.topology.size
    held = {(chunk // shard, chunk) for chunk in range(program.chunks)}
    for transfer in program.transfers:
        chunks = range(transfer.chunk, transfer.chunk + transfer.count)
        assert all((transfer.source, chunk) in held for chunk in chunks)
        held.update((transfer.target, chunk) for chunk in chunks)


def test_instances_split_every_shard(lowered):
    one = lowered("dgx-a100", "allgather", until=LowerForest)
    three = lowered("dgx-a100", "allgather", until=LowerForest, instances=3)
    assert three.chunks == 3 * one.chunks
    assert len(three.transfers) == 3 * len(one.transfers)
    chunks = [{t.chunk for t in three.transfers if t.origin.instance == j} for j in range(3)]
    assert set.union(*chunks) == set(range(three.chunks))
    assert sum(map(len, chunks)) == three.chunks


def test_wide_trees_travel_in_steps_the_runtime_can_count(lowered):
    program = lowered("mi250", "allgather", boxes=2, trees="optimal", until=LowerForest)
    assert max(t.count for t in program.transfers) <= 71
    assert sum(t.count for t in program.transfers) == program.chunks * 31


def test_more_chunks_than_can_be_addressed_are_refused_before_they_are_listed(lowered):
    with pytest.raises(LimitError) as caught:
        lowered("ring:8", "allgather", trees="999999999", until=LowerForest)
    assert "chunks per buffer: 7999999992" in caught.value.diagnostic.phrase
    with pytest.raises(LimitError):
        lowered("ring:8", "allgather", instances=10**9, until=LowerForest)


def test_coalescing_moves_the_same_chunks_in_fewer_transfers(lowered):
    before = lowered("dgx-a100", "allgather", boxes=2, trees="optimal", until=LowerForest)
    after = lowered("dgx-a100", "allgather", boxes=2, trees="optimal", until=CoalesceChunks)

    def moves(program):
        return sorted(
            (t.source, t.target, chunk)
            for t in program.transfers
            for chunk in range(t.chunk, t.chunk + t.count)
        )

    assert moves(after) == moves(before)
    assert len(after.transfers) < len(before.transfers)


@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_segments_of_a_tree_hold_its_chunks_in_turn(lowered, collective):
    whole = lowered("mi250", collective, until=LowerForest)
    cut = lowered("mi250", collective, until=CoalesceChunks, segments="1-3-4")
    assert cut.chunks == 8 * whole.chunks
    sizes = {}
    for transfer in cut.transfers:
        origin = transfer.origin
        tree = origin.phase, origin.tree, transfer.source, transfer.target
        chunks = set(range(transfer.chunk, transfer.chunk + transfer.count))
        sizes.setdefault(tree, {}).setdefault(origin.segment, set()).update(chunks)
    for segments in sizes.values():
        lengths = [len(segments[number]) for number in range(3)]
        assert lengths == [lengths[0], 3 * lengths[0], 4 * lengths[0]]
        assert len(set.union(*segments.values())) == 8 * lengths[0]


@pytest.mark.parametrize("segments", ["1", "7-6-5-5", "1-1-2-2-2-1-10-10"])
def test_segments_may_be_given_as_compile_shows_them(segments):
    shown = _in_runs(segments)
    assert LowerForest(segments=shown) == LowerForest(segments=segments)
    assert LowerForest(segments=shown).segments == segments


@pytest.mark.parametrize("segments", ["", "0", "1-0", "1,2", "1-", "-1", "x", "0x1", "2x", "x2"])
def test_segments_are_numbers_of_chunks(segments):
    with pytest.raises(InputError) as caught:
        LowerForest(segments=segments)
    assert caught.value.diagnostic.code == "CS210"


@pytest.mark.parametrize("runtime", ["msccl", "rccl", "mscclpp", "torch"])
def test_roots_without_trees_carry_no_chunk_less(runtime):
    """Some GPUs are the root of no tree; others may have a chunk less, so that 2^30 is divided."""
    problem = api.make_problem(api.load_topology("mesh:2x3"), "allreduce")
    options = {"algorithm": "forest", "trees": "optimal", "level": 0, "size": 1 << 30}
    done = api.compile(problem, runtime, **options)  # verifies the file
    weights = done.schedule.weights
    assert 0 in weights
    assert len(carriers(done.schedule)) == sum(weight > 0 for weight in weights)
