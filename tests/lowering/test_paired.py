"""Threadblocks of a connection in each direction: who pairs with whom, and in which order."""

from collections import Counter

import pytest

from colsynth import runtimes, topology
from colsynth.errors import LimitError
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.paired import paired_threadblocks, partners
from colsynth.lowering.paired_order import places, sends_before_sums
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.verify import verify_program

RCCL = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=False)
SEGMENTS = "1-2-2-1"


@pytest.fixture
def ordered(lowered):
    """Return a function that orders four boxes round-robin and places their chunks."""

    def made(collective, segments=SEGMENTS):
        value = lowered(
            "dgx-a100", collective, boxes=4, runtime="rccl", until=OrderTransfers,
            segments=segments, order="round-robin",
        )  # fmt: skip
        return PlaceSlots().run(value, RCCL)

    return made


def allocated(value, strategy="paired", **options):
    assign = AssignThreadblocks(strategy, nic_window=2, **options)
    return SpellDependencies().run(assign.run(value, RCCL), RCCL)


def test_partners_are_as_far_away_in_the_other_direction():
    pairs = partners(topology.load("dgx-a100", nodes=2))
    assert len(pairs) == 16 * 7
    assert pairs[3, 4] == 2
    assert pairs[8, 9] == 15
    assert (3, 11) not in pairs
    assert all(pairs[rank, before] == peer for (rank, peer), before in pairs.items())


def test_threadblocks_are_as_many_as_there_may_be():
    """Two GPUs of a box and one far away: 8 threadblocks."""
    pairs = {(0, 1): 1, (1, 0): 0}
    loads = {(0, 0, 1): 12, (0, 1, 0): 12, (0, 0, 2): 2, (0, 2, 0): 2}
    assert paired_threadblocks(loads, pairs, 8) == {
        (0, 0, 1): 6, (0, 1, 0): 6, (0, 0, 2): 1, (0, 2, 0): 1,
    }  # fmt: skip
    assert set(paired_threadblocks(loads, pairs, 2).values()) == {1}


def test_one_way_connections_have_threadblocks_of_their_own():
    assert paired_threadblocks({(0, 0, 1): 4}, {(0, 1): 1, (1, 0): 0}, 4) == {(0, 0, 1): 4}


@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce", "allgather"])
def test_programs_in_rounds_are_right(ordered, collective):
    program = allocated(ordered(collective))
    report = verify_program(program, runtimes.profile("rccl"), subject="test")
    assert report.ok, report.findings


def test_a_box_is_served_in_pairs_and_the_rest_alone(ordered):
    program = allocated(ordered("reduce-scatter"))
    pairs = partners(topology.load("dgx-a100", nodes=4))
    seen = Counter()
    for gpu in program.gpus:
        assert len(gpu.threadblocks) > 56
        for block in gpu.threadblocks:
            if block.send is not None and block.recv is not None:
                assert pairs[gpu.rank, block.send] == block.recv
                seen["pairs"] += 1
            elif block.send is not None:
                assert block.send // 8 != gpu.rank // 8
                seen["alone"] += 1
    assert seen["alone"] in (32 * 3, 32 * 6)
    assert seen["pairs"] == 32 * 49


def test_pairs_serve_rails_too_where_threadblocks_run_out(ordered):
    """7 peers in the box and 3 on the rail: 13 threadblocks, or 10."""
    pairs = partners(topology.load("dgx-a100", nodes=4), between=True)
    assert (pairs[0, 8], pairs[0, 16], pairs[5, 13]) == (24, 16, 29)
    program = allocated(ordered("reduce-scatter"), max_threadblocks=12)
    assert verify_program(program, runtimes.profile("rccl"), subject="test").ok
    rails = Counter()
    for gpu in program.gpus:
        assert len(gpu.threadblocks) <= 12
        for block in gpu.threadblocks:
            if block.send is not None and block.recv is not None:
                assert pairs[gpu.rank, block.send] == block.recv
                rails[gpu.rank] += block.send // 8 != gpu.rank // 8
    assert set(rails.values()) == {3}


def test_threadblocks_send_before_they_receive(ordered):
    """In a reduce-scatter nothing that stays in a box waits for arrivals."""
    program = allocated(ordered("reduce-scatter"))
    blocks = [b for gpu in program.gpus for b in gpu.threadblocks if b.send and b.recv]
    assert blocks
    for block in blocks:
        kinds = [step.op for step in block.steps if step.op in ("s", "r")]
        assert kinds == ["s", "r"] * (len(kinds) // 2)


def test_every_other_channel_sends_before_it_adds(ordered):
    """So not all send at a time; with one chunk per step a FIFO holds what is sent ahead."""
    program = allocated(ordered("reduce-scatter", "1-1-1-1-1-1-1-1"))
    seen = set()
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            kinds = [step.op for step in block.steps if step.op != "nop"]
            if block.send is not None and block.recv is not None and kinds.count("s") > 1:
                ahead = kinds[:4] == ["s", "r", "s", "re"]
                assert ahead or kinds[:3] == ["s", "r", "re"]
                seen.add((block.channel % 2, ahead))
    assert seen == {(0, False), (1, True)}


@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
def test_rounds_are_an_order_for_fifos_of_one_step(ordered, collective):
    """Each operation comes after all it needs, each send after what was sent before arrived."""
    value = ordered(collective)
    columns = Columns.of(value.transfers)
    layout = Layout(value.problem, value.chunks)
    ops = operations(columns)
    needed = waits(columns, ChunkRanges(value.transfers, layout.grain), layout, True)
    order = places(value.transfers, ops, needed)
    waiting = Counter()
    assert all(order[p] < order[number] for number, found in enumerate(needed) for p in found)
    for number in sorted(range(len(ops)), key=order.__getitem__):
        transfer = value.transfers[ops[number].transfer]
        way = transfer.source, transfer.target
        if ops[number].sends:
            waiting[way] += 1
            assert waiting[way] == 1
        elif ops[number].receives:
            waiting[way] -= 1
            assert waiting[way] == 0


def test_sums_are_shared_by_all_threadblocks(ordered):
    """Of 1 GB a reduce-scatter takes less than three quarters of what one way each takes."""
    machine = topology.load("dgx-a100", nodes=4)
    alone, paired = (
        simulate(allocated(value, strategy), machine, RCCL.profile, [10**9])[0].seconds
        for value, strategy in (
            (ordered("reduce-scatter", "1"), "balanced"),
            (ordered("reduce-scatter", "1-1-2-2-2-2-2-2-1-1"), "paired"),
        )
    )
    assert paired < 0.75 * alone


def test_pairs_between_boxes_leave_more_threadblocks_for_boxes(ordered):
    """Of 1 GB on four boxes that takes less time, for sends to other boxes have little to do."""
    value = ordered("reduce-scatter", "-".join("1" * 32))
    machine = topology.load("dgx-a100", nodes=4)
    within, everywhere = (allocated(value, name) for name in ("paired", "paired-all"))
    for program, pairs in ((within, False), (everywhere, True)):
        leaving = [
            block
            for gpu in program.gpus
            for block in gpu.threadblocks
            if block.send is not None and block.send // 8 != gpu.rank // 8
        ]
        assert all((block.recv is not None) == pairs for block in leaving)
        assert verify_program(program, RCCL.profile, subject="program").ok
    times = [simulate(p, machine, RCCL.profile, [10**9])[0].seconds for p in (within, everywhere)]
    assert times[1] < times[0]


def test_what_does_not_fit_is_refused(ordered):
    with pytest.raises(LimitError) as caught:
        allocated(ordered("reduce-scatter"), max_steps=3)
    assert caught.value.diagnostic.code == "CS401"


def test_sends_of_one_round_go_before_the_sums_of_the_one_before():
    """Of two rounds they might wait for a peer, and it for what the sums give."""
    where = [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 3), (2, 0, 4), (2, 1, 5)]
    steps = [(op,) for op in range(6)]
    free: list[tuple[int, ...]] = [()] * 6
    assert sends_before_sums(steps, where, free) == [(0,), (1,), (3,), (2,), (4,), (5,)]
    waiting = [*free[:3], (2,), *free[4:]]
    assert sends_before_sums(steps, where, waiting) == steps
