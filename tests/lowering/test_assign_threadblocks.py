"""Threadblocks: one owner per connection, few of them, within every limit."""

from collections import Counter
from typing import get_args

import pytest

from colsynth import api, runtimes
from colsynth.errors import InputError, LimitError
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.lowering.strategies import STRATEGIES, Name
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.runtimes.target import Target
from colsynth.verify import verify_program

RUNTIMES = ["msccl", "msccl-executor", "rccl"]


def ops(program):
    return Counter(s.op for g in program.gpus for tb in g.threadblocks for s in tb.steps)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_each_connection_has_one_threadblock_at_each_end(lowered, runtime, collective):
    program = lowered("mi250", collective, runtime=runtime)
    sends, receives = Counter(), Counter()
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            if block.send is not None:
                sends[block.channel, gpu.rank, block.send] += 1
            if block.recv is not None:
                receives[block.channel, block.recv, gpu.rank] += 1
    assert sends == receives
    assert set(sends.values()) == {1}


def test_each_runtime_gets_only_steps_it_launches(lowered):
    assert set(ops(lowered("mi250", "allreduce", runtime="rccl"))) <= {"s", "r", "re", "cpy", "nop"}
    fused = ops(lowered("mi250", "allreduce", runtime="msccl"))
    assert fused["rcs"] > 100
    assert fused["rrs"] > 100
    assert fused["rrc"] > 0
    scattered = ops(lowered("mi250", "reduce-scatter", runtime="msccl"))
    assert scattered["re"] == scattered["rcs"] == 0


def test_sums_that_only_pass_through_take_no_scratch(lowered):
    """A chain of reductions stores nothing on the way."""
    program = lowered("ring:6", "reduce", trees="1", root=0)
    assert all(gpu.scratch_chunks == 0 for gpu in program.gpus)
    senders = sum(tb.send is not None for gpu in program.gpus for tb in gpu.threadblocks)
    assert ops(program)["rrs"] == senders - ops(program)["s"] > 0


def test_fusion_can_be_switched_off(lowered):
    placed = lowered("mi250", "allgather", until=PlaceSlots)
    target = Target(runtimes.profile("msccl"), "Simple", in_place=True, out_of_place=False)
    assert ops(AssignThreadblocks(fuse=False).run(placed, target))["rcs"] == 0
    assert ops(AssignThreadblocks(fuse=True).run(placed, target))["rcs"] > 0


def test_instances_use_channels_of_their_own(lowered):
    program = lowered("dgx-a100", "allgather", instances=4)
    blocks = [tb for tb in program.gpus[0].threadblocks if tb.send == 1]
    assert len({tb.channel for tb in blocks}) == len(blocks) == 4


def test_more_channels_are_opened_when_steps_run_out(lowered):
    placed = lowered("mi250", "allgather", until=PlaceSlots, runtime="rccl")
    target = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=False)
    wide = AssignThreadblocks().run(placed, target)
    tight = AssignThreadblocks(max_steps=6).run(placed, target)
    assert tight.max_steps <= 6 < wide.max_steps
    assert tight.max_threadblocks > wide.max_threadblocks


def test_what_cannot_fit_is_refused_by_name(lowered):
    placed = lowered("mi250", "allgather", until=PlaceSlots, runtime="rccl")
    target = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=False)
    for limits in ({"max_threadblocks": 2}, {"max_channels": 1, "max_steps": 3}):
        with pytest.raises(LimitError) as caught:
            AssignThreadblocks(**limits).run(placed, target)
        assert caught.value.diagnostic.code == "CS401"
        assert "threadblocks per GPU" in caught.value.diagnostic.notes[0]


def test_unplaced_programs_are_refused(lowered):
    with pytest.raises(InputError) as caught:
        AssignThreadblocks().run(
            lowered("ring:4", "allgather", until=OrderTransfers),
            Target(runtimes.profile("msccl")),
        )
    assert caught.value.diagnostic.code == "CS403"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_threadblocks_serve_both_directions_when_they_run_out(lowered, runtime):
    """39 peers each way: 78 threadblocks, unless the directions share."""
    target = Target(runtimes.profile(runtime), "Simple", in_place=True, out_of_place=False)
    placed = lowered("clique:40", "allgather", until=PlaceSlots, runtime=runtime)
    program = AssignThreadblocks().run(placed, target)
    assert program.max_threadblocks == 39 <= target.profile.resident_threadblocks
    assert all(tb.send is not None and tb.recv is not None for tb in program.gpus[0].threadblocks)
    spelt = SpellDependencies().run(program, target)
    assert verify_program(spelt, target.profile, subject="shared").errors == ()


def test_large_cliques_use_what_the_runtime_allows(lowered):
    program = lowered("clique:80", "allgather", runtime="msccl")
    profile = runtimes.profile("msccl")
    assert profile.resident_threadblocks < program.max_threadblocks <= profile.max_threadblocks
    with pytest.raises(LimitError):
        lowered("clique:80", "allgather", runtime="rccl")


def phases_of(program):
    """Return the phases that each threadblock with a peer serves."""
    blocks = [tb for gpu in program.gpus for tb in gpu.threadblocks]
    served = [{s.origin.phase for s in tb.steps if s.origin is not None} for tb in blocks]
    return [
        phases
        for tb, phases in zip(blocks, served, strict=True)
        if tb.send is not None or tb.recv is not None
    ]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_phases_have_threadblocks_of_their_own_where_they_suffice(lowered, runtime):
    """Else one that serves both would hold up the sums of a tile until the last is done."""
    placed = lowered("dgx-a100", "allreduce", until=PlaceSlots, runtime=runtime)
    target = Target(runtimes.profile(runtime), "Simple", in_place=True, out_of_place=False)
    separate = AssignThreadblocks().run(placed, target)
    assert all(len(phases) == 1 for phases in phases_of(separate))
    spelt = SpellDependencies().run(separate, target)
    assert verify_program(spelt, target.profile, subject="x").ok
    tight = max(len(gpu.threadblocks) for gpu in separate.gpus) - 1
    squeezed = AssignThreadblocks(max_threadblocks=tight).run(placed, target)
    assert squeezed.max_threadblocks <= tight
    assert any(len(phases) == 2 for phases in phases_of(squeezed))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["mi250", "ndv2"])
def test_work_is_spread_over_the_threadblocks_that_may_be_resident(lowered, runtime, name):
    placed = lowered(name, "allreduce", until=PlaceSlots, runtime=runtime, trees="1")
    target = Target(runtimes.profile(runtime), "Simple", in_place=True, out_of_place=False)

    def allocated(strategy):
        program = AssignThreadblocks(strategy).run(placed, target)
        moved = [
            sum(s.count for s in tb.steps if s.op not in ("nop", "re", "cpy"))
            for gpu in program.gpus
            for tb in gpu.threadblocks
        ]
        return program, max(moved)

    few, heaviest = allocated("fewest")
    many, lighter = allocated("spread")
    assert few.max_threadblocks < many.max_threadblocks <= target.profile.resident_threadblocks
    assert lighter < heaviest
    assert verify_program(SpellDependencies().run(many, target), target.profile, subject="x").ok


def test_local_copies_are_spread_too(lowered):
    """Else one threadblock copies for all: what an alltoall overwrites in place, on RCCL."""
    target = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=True)
    ordered = lowered("mi300x", "allgather", until=OrderTransfers, runtime="rccl", trees="4")
    placed = PlaceSlots().run(ordered, target)

    def copied(strategy):
        allocated = AssignThreadblocks(strategy).run(placed, target)
        return max(
            sum(s.count for s in tb.steps if s.op == "cpy")
            for gpu in allocated.gpus
            for tb in gpu.threadblocks
        )

    assert copied("fewest") == 4
    assert copied("spread") < 4


def test_pooled_threadblocks_serve_both_phases(lowered):
    """With several segments, a threadblock by load has work of both."""
    placed = lowered("dgx-a100", "allreduce", until=PlaceSlots, segments="1-1-1-1")
    target = Target(runtimes.profile("msccl"), "Simple", in_place=True, out_of_place=False)
    served = {
        strategy: {len(p) for p in phases_of(AssignThreadblocks(strategy).run(placed, target))}
        for strategy in ("balanced", "pooled")
    }
    assert served == {"balanced": {1}, "pooled": {2}}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("order", ["chains", "round-robin"])
def test_every_strategy_is_right_for_every_order(lowered, strategy, order):
    """A pass that must agree with another one learns it from the program."""
    placed = lowered("dgx-a100", "allreduce", until=PlaceSlots, order=order)
    target = Target(runtimes.profile("msccl"), "Simple", in_place=True, out_of_place=False)
    program = AssignThreadblocks(strategy).run(placed, target)
    report = verify_program(SpellDependencies().run(program, target), target.profile, subject="x")
    assert report.ok, report.findings


def test_an_unknown_strategy_is_refused():
    with pytest.raises(InputError, match="there is no strategy 'pared'") as caught:
        AssignThreadblocks("pared")
    assert "did you mean 'paired'?" in caught.value.diagnostic.help
    assert tuple(STRATEGIES) == get_args(Name)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["mesh:2x3", "mesh:3x4"])
def test_channels_are_numbered_without_gaps(runtime, name):
    """Phases and instances take channels in turns; one that needs fewer leaves no hole."""
    problem = api.make_problem(api.load_topology(name), "allreduce")
    passes = ALGORITHMS["forest"].replace("pack-trees", "pack-trees{trees=1}")
    program = api.compile(problem, runtime, passes=passes).artefacts[0].program
    used = {block.channel for gpu in program.gpus for block in gpu.threadblocks}
    assert used == set(range(program.header.channels))


def test_a_direct_exchange_sends_before_it_receives():
    """On many GPUs threadblocks serve two connections; none may wait all around the machine."""
    problem = api.make_problem(api.load_topology("clique:40"), "alltoall")
    found = api.compile(problem, "msccl", algorithm="ten", level=0, several=False)
    blocks = [b for gpu in found.artefacts[0].program.gpus for b in gpu.threadblocks]
    both = [b for b in blocks if b.send is not None and b.recv is not None]
    assert both
    for block in both:
        ops = [step.op for step in block.steps if step.op in {"s", "r"}]
        assert ops == sorted(ops, reverse=True)
