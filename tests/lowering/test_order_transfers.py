"""The global order: prerequisites first, relays right behind their arrivals."""

from itertools import pairwise

import pytest

from colsynth import api, topology
from colsynth.errors import InputError
from colsynth.lowering.coalesce_chunks import CoalesceChunks
from colsynth.lowering.order_transfers import OrderTransfers, is_relay
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target


def relays(program):
    pairs = zip(program.transfers, program.transfers[1:], strict=False)
    return sum(is_relay(first, second) for first, second in pairs)


def test_runtimes_that_fuse_get_chains(lowered):
    for collective in ("allgather", "reduce-scatter", "allreduce"):
        assert relays(lowered("mi250", collective, until=OrderTransfers)) > 100


def test_each_arrival_has_at_most_one_relay_behind_it(lowered):
    program = lowered("mi250", "allreduce", until=OrderTransfers)
    for number, (first, second) in enumerate(
        zip(program.transfers, program.transfers[1:], strict=False)
    ):
        if is_relay(first, second):
            assert number in second.after
            assert max(second.after) == number


def test_placed_programs_cannot_be_reordered(lowered):
    program = lowered("ring:4", "allreduce", until=PlaceSlots)
    with pytest.raises(InputError) as caught:
        OrderTransfers().run(program, Target(profile("msccl")))
    assert caught.value.diagnostic.code == "CS403"


def test_sums_begin_with_what_no_other_gpu_passes_on(lowered):
    """So no GPU of one box waits for another box while its neighbours could be served."""
    program = lowered("dgx-a100", "allreduce", boxes=2, until=OrderTransfers)
    passed = {}
    for transfer in program.transfers:
        if transfer.reduces:
            relayed = any(program.transfers[t].reduces for t in transfer.after)
            passed.setdefault((transfer.target, transfer.chunk), []).append(relayed)
    assert {len(flags) for flags in passed.values()} == {7, 8}
    assert all(flags == sorted(flags) for flags in passed.values())


def test_sums_can_be_left_out_of_chains(lowered):
    program = lowered("mi250", "allreduce", until=CoalesceChunks)
    target = Target(profile("msccl"))

    def counted(program, reduces):
        chosen = tuple(t for t in program.transfers if t.reduces == reduces)
        return sum(is_relay(first, second) for first, second in pairwise(chosen))

    both = OrderTransfers().run(program, target)
    copies = OrderTransfers(order="copy-chains").run(program, target)
    assert counted(copies, reduces=True) < counted(both, reduces=True) / 4
    assert counted(copies, reduces=False) > 100


def test_programs_without_chains_of_sums_are_right():
    problem = api.make_problem(topology.load("mi250"), "allreduce")
    passes = (
        "pack-trees,lower-forest,coalesce-chunks,order-transfers{order=copy-chains},place-slots,"
        "assign-threadblocks{strategy=spread},spell-dependencies"
    )
    done = api.compile(problem, "msccl", passes=passes)
    assert done.verified
    assert str(done.pipeline).count("order=copy-chains") == 1


@pytest.mark.parametrize("machine", ["mi250", "dgx-a100", "torus:4x4"])
def test_list_schedules_keep_what_each_transfer_needs(lowered, machine):
    program = lowered(machine, "allreduce", until=CoalesceChunks)
    listed = OrderTransfers(order="list-schedule").run(program, Target(profile("msccl")))
    assert listed.ordered
    assert all(max(t.after, default=-1) < n for n, t in enumerate(listed.transfers))

    def what(program):
        named = [(t.source, t.target, t.chunk, t.count, t.reduces) for t in program.transfers]
        after = (sorted(named[p] for p in t.after) for t in program.transfers)
        return sorted(zip(named, after, strict=True))

    assert what(listed) == what(program)


def test_an_unknown_order_is_refused():
    with pytest.raises(InputError, match="there is no order 'list-shedule'") as caught:
        OrderTransfers(order="list-shedule")
    assert "did you mean 'list-schedule'?" in caught.value.diagnostic.help
