"""A NIC has so many sends in flight; threadblocks of a connection share its load."""

from collections import Counter, defaultdict

import pytest

from colsynth import runtimes
from colsynth.errors import InputError
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import operations
from colsynth.lowering.nic_window import with_nic_window
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.verify import verify_program


def target_of(runtime):
    return Target(runtimes.profile(runtime), "Simple", in_place=True, out_of_place=False)


@pytest.fixture
def allocated(lowered):
    """Return a function that allocates threadblocks of four boxes in round-robin order."""

    def made(collective, runtime="msccl", segments="1", **options):
        value = lowered(
            "dgx-a100", collective, boxes=4, runtime=runtime, until=OrderTransfers,
            segments=segments, order="round-robin",
        )  # fmt: skip
        assign = AssignThreadblocks("balanced", **options)
        for step in (PlaceSlots(), assign, SpellDependencies()):
            value = step.run(value, target_of(runtime))
        return value

    return made


@pytest.mark.parametrize("nic_window", [1, 2])
def test_a_send_waits_for_one_before_it(lowered, nic_window):
    """A threadblock fills the NIC of a DGX A100, so the window is the number of sends."""
    program = lowered("dgx-a100", "allgather", boxes=4, until=OrderTransfers, order="round-robin")
    columns = Columns.of(program.transfers)
    ops = operations(columns)
    found = with_nic_window(program, columns, ((),) * len(ops), nic_window, target_of("msccl"))
    leaving = defaultdict(list)
    for number, op in enumerate(ops):
        transfer = program.transfers[op.transfer]
        if op.sends and transfer.source // 8 != transfer.target // 8:
            leaving[transfer.source].append(number)
        else:
            assert found[number] == ()
    assert len(leaving) == 32
    for sends in leaving.values():
        assert [found[send] for send in sends] == [
            (sends[at - nic_window],) if at >= nic_window else () for at in range(len(sends))
        ]


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_programs_with_segments_and_a_nic_window_are_right(allocated, collective, runtime):
    program = allocated(collective, runtime, segments="1-2-1", nic_window=2)
    report = verify_program(program, runtimes.profile(runtime), subject="test")
    assert report.ok, report.findings


def test_segments_and_a_nic_window_shorten_the_beginning(allocated):
    """Sums reach the NIC sooner, and it carries them one by one."""
    plain = allocated("reduce-scatter")
    better = allocated("reduce-scatter", segments="1-1-2-4-4-4", nic_window=1)
    from colsynth import topology

    seconds = [
        simulate(program, topology.load("dgx-a100", nodes=4), runtimes.profile("msccl"), [10**8])
        for program in (plain, better)
    ]
    assert seconds[1][0].seconds < 0.9 * seconds[0][0].seconds


def test_threadblocks_of_a_connection_share_its_chunks(allocated):
    """In a box, 4 chunks go to each peer: more than one threadblock moves in time."""
    program = allocated("allgather")
    chunks = defaultdict(list)
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            if block.send is not None:
                moved = sum(step.count for step in block.steps if step.op != "nop")
                chunks[gpu.rank, block.send].append(moved)
    inside = [sorted(v) for (a, b), v in sorted(chunks.items()) if a // 8 == b // 8]
    between = [v for (a, b), v in sorted(chunks.items()) if a // 8 != b // 8]
    assert Counter(map(tuple, inside)) == {(2, 2): 32 * 7}
    assert Counter(map(tuple, between)) == {(1,): 32 * 3}


def test_threadblocks_have_room_for_all_steps(lowered):
    """Of few steps per threadblock, more threadblocks serve a connection."""
    value = lowered("dgx-a100", "allgather", boxes=4, until=PlaceSlots, order="round-robin")
    program = AssignThreadblocks("balanced", max_steps=1).run(value, target_of("msccl"))
    assert program.max_steps == 1


def test_a_negative_window_is_refused():
    with pytest.raises(InputError) as caught:
        AssignThreadblocks(nic_window=-1)
    assert caught.value.diagnostic.code == "CS210"
