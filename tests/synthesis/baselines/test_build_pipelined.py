"""Collectives by threadblocks that do one thing each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.runtime import runtime_bounds
from colsynth.errors import ColsynthError
from colsynth.model import Collective
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import profile
from colsynth.runtimes.selection import taken_sizes
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.synthesis.baselines.build_pipelined import BuildPipelined
from colsynth.synthesis.baselines.pipelined_numbers import numbers
from colsynth.synthesis.baselines.rails import Rails
from colsynth.verify import verify_program
from tests.synthesis.baselines.reading import problem_of

RCCL = profile("rccl")


def made(problem, pieces=0):
    """Return the program for threadblocks, not yet written."""
    text = f"build-pipelined{{pieces={pieces}}},assign-threadblocks{{strategy=spread}}"
    return Pipeline.from_text(f"{text},spell-dependencies").run(problem, Target(RCCL))


SERVED = (
    *(("allreduce", 1), ("allreduce", 2), ("allreduce", 3)),
    *(("allgather", 1), ("allgather", 2), ("allgather", 3), ("reduce-scatter", 1)),
)


@pytest.mark.parametrize(("collective", "boxes"), SERVED)
def test_threadblocks_do_one_thing_each(collective, boxes):
    """They send to one peer, receive from one, or add up; the file is right."""
    program = made(problem_of(boxes, collective=collective), pieces=16)
    assert verify_program(program, RCCL, subject="test").ok
    for gpu in program.gpus:
        assert len(gpu.threadblocks) <= RCCL.resident_threadblocks
        for block in gpu.threadblocks:
            kinds = {step.op for step in block.steps} - {"nop"}
            assert kinds in ({"s"}, {"r"}) or kinds <= {"cpy", "re"}


def test_the_work_of_sums_is_shared_evenly():
    """Sums of boxes are short and those within a box long; no threadblock gets only long ones."""
    program = made(problem_of(2, 8))
    for gpu in program.gpus:
        work = [sum(s.op in ("cpy", "re") for s in tb.steps) for tb in gpu.threadblocks]
        busy = [count for count in work if count]
        assert max(busy) <= 1.25 * sum(busy) / len(busy)


def test_own_data_is_copied_by_several_threadblocks():
    """Whatever leaves a GPU waits for the copy of it, so one threadblock would hold up all."""
    program = made(problem_of(2, 8, "allgather"))
    for gpu in program.gpus:
        copies = [sum(step.op == "cpy" for step in tb.steps) for tb in gpu.threadblocks]
        assert max(copies) <= sum(copies) / 3


@pytest.mark.parametrize(("collective", "boxes"), [("reduce-scatter", 1), ("allgather", 2)])
def test_large_messages_are_near_the_bound(collective, boxes):
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=boxes), collective)
    least = runtime_bounds(problem, RCCL, best_optimum(problem), [1 << 30])[0]
    point = simulate(made(problem), problem.topology, RCCL, [1 << 30])[0]
    assert least.seconds <= point.seconds <= 1.25 * least.seconds


def test_reduce_scatters_of_several_boxes_are_refused():
    with pytest.raises(ColsynthError) as refused:
        BuildPipelined().run(problem_of(2, collective="reduce-scatter"), Target(RCCL))
    assert refused.value.diagnostic.code == "CS312"


@pytest.mark.parametrize("boxes", [2, 3, 4])
def test_shards_cross_the_network_as_seldom_as_they_can(boxes):
    """All boxes but one send what they have, and get the result."""
    program = BuildPipelined(pieces=12).run(problem_of(boxes), Target(RCCL))
    crossing = Counter(
        chunk
        for t in program.transfers
        if t.source // 4 != t.target // 4
        for chunk in range(t.chunk, t.chunk + t.count)
    )
    assert len(crossing) == program.chunks
    assert set(crossing.values()) == {2 * (boxes - 1)}
    into = Counter(t.target // 4 for t in program.transfers if t.source // 4 != t.target // 4)
    assert len(set(into.values())) == 1  # the work is shared


def test_all_boxes_add_up_in_one_order():
    """So that all GPUs get the same bits."""
    program = BuildPipelined(pieces=3).run(problem_of(3), Target(RCCL))
    arrived = {(t.target, t.write): t.source // 4 for t in program.transfers if not t.is_local}
    for rank in range(12):
        steps = [t for t in program.transfers if t.is_local and t.source == rank]
        orders = [
            arrived[rank, t.read]
            for t in steps
            if t.origin.phase == 1 and (rank, t.read) in arrived
        ]
        own = [rank // 4] * (orders.count(rank // 4))
        assert [box for box in orders if box not in own] == sorted({0, 1, 2} - {rank // 4})


def test_sums_pass_while_segments_follow():
    """A file of many segments is far faster than one of few, whose sums nothing hides."""
    problem = problem_of(2, 8)
    times = [
        simulate(made(problem, pieces), problem.topology, RCCL, [1 << 30])[0].seconds
        for pieces in (0, 8)
    ]
    assert times[0] < times[1] / 2


def rails(boxes, places):
    ranks = range(boxes * places)
    return Rails(tuple(tuple(ranks[box * places :][:places]) for box in range(boxes)), places)


def test_numbers_fit_the_runtime():
    kinds = (Collective.ALLREDUCE, 2), (Collective.REDUCE_SCATTER, 1), (Collective.ALLGATHER, 0)
    for (collective, sends), places, boxes in product(kinds, (2, 4, 8, 16, 24), (1, 2, 4)):
        problem = problem_of(boxes, places, collective)
        found = numbers(problem, rails(boxes, places), Target(RCCL))
        if found is None:
            continue
        ends = 2 * found.within * (places - 1)
        ends += 2 * found.between * (boxes - 1)
        assert ends < RCCL.usable_threadblocks
        assert (sends or boxes) * found.segments <= RCCL.max_steps * found.within
    few = replace(RCCL, max_threadblocks=16, resident_threadblocks=16)
    assert numbers(problem_of(2, 8), rails(2, 8), Target(few)) is None


@pytest.mark.parametrize(
    ("gpus", "boxes", "size"),
    [(6, 1, 10**9), (14, 1, 1 << 30), (28, 1, 1 << 30), (3, 2, None), (8, 3, 10**9), (12, 3, None)],
)
def test_the_numbers_leave_threadblocks_enough(gpus, boxes, size):
    """Sums are not divided among threadblocks, and from three boxes on a nop belongs to each."""
    problem, target = problem_of(boxes, gpus), Target(RCCL, size=size)
    passes = "build-pipelined,assign-threadblocks{strategy=spread},spell-dependencies"
    program = Pipeline.from_text(passes).run(problem, target)
    assert max(len(gpu.threadblocks) for gpu in program.gpus) <= RCCL.resident_threadblocks
    assert taken_sizes(program.header, RCCL).takes(size or 3 << 28)


def test_unequal_shards_are_hardly_slower():
    """Segments have so many chunks then that one more or less does not matter."""
    problem = problem_of(1, 12)
    assert taken_sizes(made(problem).header, RCCL).takes(3 << 28)
    passes = "build-pipelined,assign-threadblocks{strategy=spread},spell-dependencies"
    program = Pipeline.from_text(passes).run(problem, Target(RCCL, size=1 << 30))
    assert taken_sizes(program.header, RCCL).takes(1 << 30)
    assert verify_program(program, RCCL, subject="test").ok
    equal, unequal = (
        simulate(each, problem.topology, RCCL, [size])[0]
        for each, size in ((made(problem), 3 << 28), (program, 1 << 30))
    )
    assert unequal.seconds / (1 << 30) < 1.04 * equal.seconds / (3 << 28)


@pytest.mark.parametrize("algorithm", ["pipelined", "rails"])
@pytest.mark.parametrize("size", [25_000_000, 10**9, 3 * 2**28])
def test_calls_of_the_size_use_the_file(algorithm, size):
    """Decimal sizes are cut into other numbers of segments than powers of two, and hardly fewer."""
    passes = f"build-{algorithm},assign-threadblocks{{strategy=spread}},spell-dependencies"
    problem, target = problem_of(1, 8), Target(RCCL)
    usual, sized = (
        Pipeline.from_text(passes).run(problem, at) for at in (target, replace(target, size=size))
    )
    assert taken_sizes(sized.header, RCCL).takes(size)
    assert sized.header.chunks > usual.header.chunks / 2


def test_runtimes_of_plans_are_refused():
    with pytest.raises(ColsynthError) as refused:
        BuildPipelined().run(problem_of(1), Target(profile("mscclpp")))
    assert refused.value.diagnostic.code == "CS312"


@pytest.mark.parametrize("boxes", [1, 2])
def test_sums_are_steps_of_their_own_where_others_fuse_them(boxes):
    """Then threadblocks have one task each, and the links of two phases are used at once."""
    found = profile("msccl")
    passes = "build-pipelined,assign-threadblocks{strategy=spread},spell-dependencies"
    program = Pipeline.from_text(passes).run(problem_of(boxes, 8), Target(found))
    words = {step.op for gpu in program.gpus for block in gpu.threadblocks for step in block.steps}
    assert words <= {"s", "r", "re", "cpy", "nop"}
    assert verify_program(program, found, subject="test").ok
