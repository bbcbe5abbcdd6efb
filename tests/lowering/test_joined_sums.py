"""Sums of all arrivals in one go: right in every mode, waiting once, shared by threadblocks."""

from itertools import product

import pytest

from colsynth import runtimes, topology
from colsynth.lowering.allocation import PlacedThreadblock
from colsynth.lowering.paired_order import receivers_first
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes.long_sums import additions
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.verify import verify_program

STARS = "build-stars,lower-forest{{instances={},segments={}}}"
SCHEDULES = (
    STARS.format(2, 4),
    "build-all-pairs",
    "pack-trees{trees=1},round-weights,lower-forest{segments=1-2}",
)
MODES = ((True, False), (False, True), (True, True))


def compiled(name, boxes, collective, target, schedule, sums, strategy):
    text = (
        f"{schedule},coalesce-chunks,order-transfers,place-slots{{sums={sums}}},"
        f"assign-threadblocks{{strategy={strategy}}},spell-dependencies"
    )
    problem = Problem(topology.load(name, nodes=boxes), collective)
    return Pipeline.from_text(text).run(problem, target)


def chains(program):
    """Yield the reductions of every slot of every threadblock that adds up."""
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            sums = {}
            for step in block.steps:
                if step.op == "re":
                    sums.setdefault(step.target, []).append(step)
            yield from sums.values()


@pytest.mark.parametrize("runtime", ["msccl-executor", "rccl"])
def test_sums_are_right_in_every_mode(runtime):
    """The verifier executes every program, in one box and over two."""
    cases = product(SCHEDULES, (("dgx-a100", 1), ("dgx-a100", 2)), ("allreduce", "reduce-scatter"))
    tried = 0
    for number, (schedule, machine, collective) in enumerate(cases):
        if schedule == "build-all-pairs" and (collective, *machine) != ("allreduce", "dgx-a100", 1):
            continue
        target = Target(runtimes.profile(runtime), "Simple", *MODES[number % 3])
        for sums, strategy in (("joined", "fewest"), ("by-chunk", "pooled")):
            program = compiled(*machine, Collective(collective), target, schedule, sums, strategy)
            report = verify_program(program, target.profile, subject="test")
            assert report.ok, (schedule, machine, collective, sums, report.findings[:3])
            tried += 1
    assert tried == 18


def test_a_sum_waits_once_and_adds_all_arrivals_by_rank():
    target = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=True)
    program = compiled(
        "dgx-h100", 1, Collective.ALLREDUCE, target, STARS.format(1, 8), "by-chunk", "fewest"
    )
    found = list(chains(program))
    assert len(found) == 8 * 8
    for first, *rest in found:
        assert len(rest) == 6
        assert first.waits
        assert not any(step.waits for step in rest)
        assert not any(step.signals for step in (first, *rest[:-1]))


@pytest.mark.parametrize("mode", [(True, False), (False, True)], ids=["in-place", "out-of-place"])
def test_sums_that_all_ranks_add_up_alike_end_where_they_belong(mode):
    """No copy follows: the last rank's contribution arrives there, or is the rank's own."""
    target = Target(runtimes.profile("msccl"), "LL", *mode)
    case = "dgx-a100", 1, Collective.ALLREDUCE, target, "build-all-pairs{instances=2}"
    program = compiled(*case, "joined", "spread")
    assert verify_program(program, target.profile, subject="test").ok
    ranks = len(program.gpus)
    for gpu in program.gpus:
        steps = [step for block in gpu.threadblocks for step in block.steps]
        added = [step for step in steps if step.op == "re"]
        assert {step.target.buffer for step in added} == {"o"}
        assert len(added) == 2 * (ranks - 1)
        copies = [step for step in steps if step.op == "cpy" and step.target.buffer == "o"]
        assert all(step.source.buffer == "i" and gpu.rank == ranks - 1 for step in copies)
        landed = [b.recv for b in gpu.threadblocks for s in b.steps if s.target == ("o", 0)]
        assert landed.count(ranks - 1) == (gpu.rank < ranks - 1)


def test_threadblocks_of_a_channel_share_its_sums():
    """Seven peers and one threadblock of its own for each of eight channels, one sum for each."""
    target = Target(runtimes.profile("rccl"), "Simple", in_place=True, out_of_place=True)
    one = Collective.ALLREDUCE
    paired = compiled("dgx-h100", 1, one, target, STARS.format(8, 8), "by-chunk", "paired")
    for gpu in paired.gpus:
        counts = [
            len({step.target for step in block.steps if step.op == "re"})
            for block in gpu.threadblocks
        ]
        assert counts == [1] * 64
    running = compiled("dgx-h100", 1, one, target, STARS.format(8, 1), "running", "paired")
    machine = topology.load("dgx-h100")
    times = [
        simulate(program, machine, target.profile, [1 << 10, 1 << 20, 1 << 30])
        for program in (paired, running)
    ]
    assert all(new.seconds < old.seconds for new, old in zip(*times, strict=True))


def test_sums_get_the_threadblocks_that_connections_leave():
    """Four channels of 14 connections, and four sums each; one sum each was slower."""
    target = Target(runtimes.profile("msccl"), "Simple", in_place=True, out_of_place=False)
    case = "dgx-h100", 1, Collective.REDUCE_SCATTER, target
    shared = compiled(*case, STARS.format(4, 4), "by-chunk", "spread")
    alone = compiled(*case, STARS.format(4, 1), "joined", "spread")
    assert all(len(gpu.threadblocks) == target.profile.resident_threadblocks for gpu in shared.gpus)
    assert verify_program(shared, target.profile, subject="test").ok
    machine = topology.load("dgx-h100")
    new, old = (
        simulate(program, machine, target.profile, [1 << 10, 1 << 20])
        for program in (shared, alone)
    )
    assert all(mine.seconds < its.seconds for mine, its in zip(new, old, strict=True))


@pytest.mark.parametrize("size", range(2, 9))
def test_some_receive_first_and_some_do_not_on_every_circle(size):
    """Else all would wait for each other, or send at once where nobody receives."""
    for away in range(1, size):
        blocks = [
            PlacedThreadblock(rank, 3, (rank - away) % size, (rank + away) % size, [])
            for rank in range(size)
        ]
        second = receivers_first(blocks)
        for first in range(size):
            circle = {(first + k * away) % size for k in range(size)}
            assert 0 < len(circle & second) < len(circle)
            behind = sum(rank in second and (rank + away) % size in second for rank in circle)
            assert behind <= len(circle) % 2


@pytest.mark.parametrize("longest", [7, 15])
@pytest.mark.parametrize("arrivals", [1, 7, 8, 9, 15, 16, 17, 255, 256, 300, 5000])
def test_no_chain_is_longer_than_a_runtime_joins(arrivals, longest):
    """Every contribution is added once, however many chains that takes."""
    kept = {number: {number} for number in range(-1, arrivals)}
    length, before = 0, None
    for part, into in additions(range(arrivals), -1, longest):
        assert not kept[part] & kept[into]
        kept[into] |= kept.pop(part)
        length = length + 1 if into == before else 1
        assert length <= longest
        before = into
    assert kept == {-1: {-1, *range(arrivals)}}
