"""Timed schedules become programs: the order is kept, and every mode of the call is right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from colsynth import runtimes, topology
from colsynth.compile.modes import Mode, plan_modes
from colsynth.errors import InputError, LimitError
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.coalesce_chunks import CoalesceChunks
from colsynth.lowering.lower_timed import LowerTimed
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.runtimes.writer import write
from colsynth.verify import verify_bytes
from colsynth.verify.timed import check_timed
from tests.lowering.timed import OUT, as_phase, schedule

RUNTIMES = ("msccl", "msccl-executor", "rccl")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")
ROOTED = ("broadcast", "reduce")
SMALL = ("ring:5", "clique:4", "mesh:2x3")
MACHINES = (
    *(("dgx-a100", 1), ("dgx-a100", 2), ("ndv2", 1), ("ndv2", 2)),
    *(("mi250", 1), ("torus:4x4", None)),
)


def timed(name, collective, each=1, boxes=None):
    """Return a checked schedule."""
    root = 3 if collective in ROOTED else None
    found = schedule(Problem(topology.load(name, nodes=boxes), Collective(collective), root), each)
    check_timed(found)
    return found


def target_of(runtime, mode=Mode.IN_PLACE, protocol="Simple"):
    profile = runtimes.profile(runtime)
    least, most = profile.least_min_bytes, profile.default_max_bytes
    return Target(profile, protocol, mode.in_place, mode.out_of_place, least, most)


def lowered(value, target, *, instances=1, until=SpellDependencies, most=0):
    """Walk a schedule up to and including a pass."""
    for item in (
        LowerTimed(instances),
        CoalesceChunks(most),
        OrderTransfers(),
        PlaceSlots(),
        AssignThreadblocks(),
        SpellDependencies(),
    ):
        value = item.run(value, target)
        if isinstance(item, until):
            break
    return value


def verified(value, target, **options):
    """Return the program of a schedule; its bytes must be right."""
    program = lowered(value, target, **options)
    inside = len(value.problem.topology.boxes) <= 1
    data = write(program, target.profile)
    report = verify_bytes(data, target.profile, subject="timed", single_node=inside)
    assert report.errors == ()
    assert dict(report.facts)["content"] == "executed symbolically"
    assert report.findings == () or {f.rule for f in report.findings} <= {"A15", "A16", "R01"}
    return program


def modes(runtime, collective):
    """Return every mode that one file of the runtime can have."""
    profile = runtimes.profile(runtime)
    for mode in (Mode.IN_PLACE, Mode.OUT_OF_PLACE, Mode.BOTH):
        try:
            yield from plan_modes(profile, mode, False, Collective(collective))
        except (InputError, LimitError):
            assert runtime == "msccl"


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("name", "boxes"), MACHINES)
def test_every_machine_on_every_runtime_in_every_mode(name, boxes, collective):
    """Each runtime meets each machine and each collective, in all modes that its files have."""
    value = timed(name, collective, boxes=boxes)
    runtime = RUNTIMES[(MACHINES.index((name, boxes)) + COLLECTIVES.index(collective)) % 3]
    for mode in modes(runtime, collective):
        program = verified(value, target_of(runtime, mode))
        assert program.header.chunks == value.problem.topology.size
        assert program.header.in_place == mode.in_place


@pytest.mark.parametrize("collective", [*COLLECTIVES, *ROOTED])
@pytest.mark.parametrize("name", SMALL)
def test_several_chunks_and_copies(name, collective):
    value = timed(name, collective, each=3)
    shards = len(value.problem.roots)
    runtime = RUNTIMES[(SMALL.index(name) + [*COLLECTIVES, *ROOTED].index(collective)) % 3]
    for mode in modes(runtime, collective):
        program = verified(value, target_of(runtime, mode), instances=2)
        assert program.header.chunks == 2 * 3 * shards


@pytest.mark.parametrize("protocol", ["LL", "LL128"])
@pytest.mark.parametrize("collective", [*COLLECTIVES, *ROOTED])
def test_every_protocol(collective, protocol):
    value = timed("ring:5", collective, each=2)
    for runtime in ("msccl-executor", "rccl"):
        verified(value, target_of(runtime, Mode.BOTH, protocol))


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_connection_keeps_the_order_of_the_schedule(runtime, collective):
    value = timed("torus:3x3", collective, each=2)
    wanted = {}
    for number, phase in enumerate(value.phases):
        columns = phase.starts(), phase.hop_of(), phase.chunk
        for start, hop, chunk in zip(*(column.tolist() for column in columns), strict=True):
            ends = int(phase.hops.source[hop]), int(phase.hops.target[hop])
            wanted.setdefault(ends, []).append((start, number, chunk))
    found = {}
    for transfer in lowered(value, target_of(runtime), until=OrderTransfers).transfers:
        chunks = range(transfer.chunk, transfer.chunk + transfer.count)
        found.setdefault((transfer.source, transfer.target), []).extend(
            (transfer.origin.phase, chunk) for chunk in chunks
        )
    assert found == {
        ends: [(number, chunk) for _, number, chunk in sorted(moves)]
        for ends, moves in wanted.items()
    }


def test_relays_share_no_threadblock_with_their_arrivals():
    program = lowered(timed("torus:3x3", "allgather", each=2), target_of("msccl"))
    blocks = [block for gpu in program.gpus for block in gpu.threadblocks]
    assert all(block.send is None or block.recv is None for block in blocks)
    assert {step.op for block in blocks for step in block.steps} == {"s", "r"}


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "reduce"])
def test_chunks_leave_after_what_brought_them(collective):
    value = timed("ring:6", collective, each=2)
    program = lowered(value, target_of("msccl"), until=LowerTimed)
    into = {}
    for number, transfer in enumerate(program.transfers):
        chunks = range(transfer.chunk, transfer.chunk + transfer.count)
        brought = set()
        for chunk in chunks:
            sums = into.get((0, transfer.source, chunk), [])
            brought.update(into.get((transfer.origin.phase, transfer.source, chunk), sums))
        assert set(transfer.after) == brought
        for chunk in chunks:
            key = transfer.origin.phase, transfer.target, chunk
            into.setdefault(key, []).append(number)
    summed = max(len(arrivals) for arrivals in into.values())
    assert summed == (1 if collective == "allgather" else 2)


def test_an_origin_names_phase_direction_and_chunk():
    value = timed("ring:4", "allreduce", each=2)
    for transfer in lowered(value, target_of("msccl"), until=LowerTimed, instances=3).transfers:
        origin = transfer.origin
        assert value.phases[origin.phase].direction is origin.direction
        shard, place = divmod(origin.tree, 2)
        assert transfer.chunk == (shard * 3 + origin.instance) * 2 + place


def relayed(wait):
    """A broadcast of two chunks over a relay, which passes the first on after `wait` of them."""
    made = schedule(Problem(topology.load("clique:3"), Collective.BROADCAST, 0), 2)
    hops = made.phases[0].hops
    hop = {
        (int(s), int(t)): h for h, (s, t) in enumerate(zip(hops.source, hops.target, strict=True))
    }
    span = int(hops.duration[0])
    first, second = hop[0, 1], hop[1, 2]
    moves = [(first, 0, 0), (first, span, 1)]
    moves += [(second, wait * span, 0), (second, (wait + 1) * span, 1)]
    ticks = (wait + 2) * span
    value = replace(made, ticks=ticks, phases=(as_phase(OUT, hops, moves),))
    check_timed(value)
    return value


def test_chunks_travel_together_where_nobody_is_held_up():
    target = target_of("msccl")
    late = lowered(relayed(2), target, until=LowerTimed).transfers
    assert [(t.source, t.target, t.chunk, t.count) for t in late] == [(0, 1, 0, 2), (1, 2, 0, 2)]
    assert late[1].after == (0,)
    at_once = lowered(relayed(1), target, until=LowerTimed).transfers
    assert sorted((t.source, t.chunk, t.count) for t in at_once) == [
        (0, 0, 1),
        (0, 1, 1),
        (1, 0, 1),
        (1, 1, 1),
    ]
    for value in (relayed(1), relayed(2)):
        verified(value, target)


def test_direct_exchanges_take_one_step_per_pair():
    program = lowered(timed("clique:5", "alltoall", each=4), target_of("msccl", Mode.OUT_OF_PLACE))
    assert program.max_steps == 1
    sizes = Counter(s.count for g in program.gpus for tb in g.threadblocks for s in tb.steps)
    assert set(sizes) == {4}


def test_steps_are_saved_only_by_request():
    value, target = timed("torus:4x4", "allgather", each=4), target_of("rccl")
    plain = lowered(value, target, until=LowerTimed)
    assert CoalesceChunks().run(plain, target) == plain
    merged = CoalesceChunks(merge=4).run(plain, target)
    assert len(merged.transfers) < len(plain.transfers)
    verified(value, target_of("rccl", Mode.BOTH), most=4)


def test_out_of_place_exchanges_keep_only_what_passes_through():
    target = target_of("msccl", Mode.OUT_OF_PLACE)
    direct = lowered(timed("clique:5", "alltoall", each=2), target, until=PlaceSlots)
    assert set(direct.scratch) == {0}
    own = [t for t in direct.transfers if t.is_local]
    assert [(t.source, t.read, t.write, t.count) for t in own] == [
        (rank, ("i", 2 * rank), ("o", 2 * rank), 2) for rank in range(5)
    ]
    value = timed("ring:5", "alltoall", each=2)
    passing = lowered(value, target, until=PlaceSlots)
    arrivals = Counter(int(value.phases[0].hops.target[h]) for h in value.phases[0].hop_of())
    assert passing.scratch == tuple(arrivals[rank] - 2 * 4 for rank in range(5))


def test_in_place_exchanges_save_one_of_each_two_chunks():
    """Between two ranks, one chunk must leave before the other takes its place."""
    value = timed("clique:5", "alltoall", each=2)
    saved = lowered(value, target_of("rccl"), until=PlaceSlots)
    assert sum(saved.scratch) == 2 * (5 * 4 // 2)
    assert all(t.write.buffer != "i" for t in saved.transfers)
    every = lowered(value, target_of("rccl", protocol="LL"), until=PlaceSlots)
    assert set(every.scratch) == {2 * 4}
    sends = [t for t in every.transfers if not t.is_local]
    assert {t.read.buffer for t in sends} == {"s"}


def test_runtimes_that_refuse_in_place_exchanges_get_none():
    alltoall = Collective.ALLTOALL
    msccl, rccl = runtimes.profile("msccl"), runtimes.profile("rccl")
    for several in (False, True):
        for mode in (Mode.AUTO, Mode.OUT_OF_PLACE):
            assert plan_modes(msccl, mode, several, alltoall) == (Mode.OUT_OF_PLACE,)
        for mode in (Mode.IN_PLACE, Mode.BOTH):
            with pytest.raises(LimitError, match="refuses in-place calls of alltoall") as caught:
                plan_modes(msccl, mode, several, alltoall)
            assert caught.value.diagnostic.code == "CS223"
    assert plan_modes(rccl, Mode.AUTO, False, alltoall) == (Mode.BOTH,)


def test_more_chunks_than_can_be_addressed_are_refused_before_they_are_listed():
    with pytest.raises(LimitError, match="chunks per buffer: 40000") as caught:
        LowerTimed(instances=10000).run(timed("clique:4", "alltoall"), target_of("rccl"))
    assert caught.value.diagnostic.code == "CS402"


def test_more_steps_than_a_parser_reads_are_refused_before_they_are_listed():
    tight = target_of("rccl")
    tight = replace(tight, profile=replace(tight.profile, max_xml_nodes=16, max_count=2))
    with pytest.raises(LimitError, match="XML nodes per rank at least: ") as caught:
        LowerTimed().run(timed("ring:8", "allgather", each=4), tight)
    assert caught.value.diagnostic.code == "CS402"


def test_what_does_not_fit_is_refused():
    value = timed("ring:4", "allgather", each=2)
    placed = lowered(value, target_of("rccl"), until=PlaceSlots)
    with pytest.raises(LimitError) as caught:
        AssignThreadblocks(max_channels=1, max_steps=2).run(placed, target_of("rccl"))
    assert caught.value.diagnostic.code == "CS401"


def test_files_are_for_all_ranks_and_for_collectives_with_a_word():
    machine = topology.load("clique:4")
    made = timed("clique:4", "allgather")
    for problem in (
        Problem(machine, Collective.ALLGATHER, groups=((0, 1), (2, 3))),
        Problem(machine, Collective.ALLGATHER, groups=((1, 0, 2, 3),)),
        Problem(machine, Collective.SCATTER, root=0),
    ):
        with pytest.raises(LimitError) as caught:
            LowerTimed().run(replace(made, problem=problem), target_of("rccl"))
        assert caught.value.diagnostic.code == "CS404"


def test_a_group_of_everybody_in_order_is_no_group():
    made = timed("clique:4", "allgather")
    everybody = Problem(made.problem.topology, Collective.ALLGATHER, groups=((0, 1, 2, 3),))
    verified(replace(made, problem=everybody), target_of("rccl"))
