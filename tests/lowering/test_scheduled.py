"""Threadblocks allocated and ordered by list scheduling."""

from collections import defaultdict

import pytest

from colsynth import runtimes, topology
from colsynth.errors import LimitError
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.runtimes.target import Target
from colsynth.simulate import simulate
from colsynth.verify import verify_program
from tests.each import each

RCCL = runtimes.profile("rccl")
TARGET = Target(RCCL, "Simple", in_place=True, out_of_place=False)
CASES = [
    (name, boxes, collective)
    for name, boxes in (("mi250", None), ("mesh:3x3", None), ("dgx-a100", 2))
    for collective in ("allgather", "reduce-scatter", "allreduce")
]


@pytest.fixture
def placed(lowered):
    """Return a function that places the chunks of a forest in four segments."""

    def made(name, boxes, collective):
        return lowered(
            name, collective, boxes=boxes, runtime="rccl", until=PlaceSlots, segments="1-1-1-1"
        )

    return made


def allocated(value, strategy="scheduled", **limits):
    assigned = AssignThreadblocks(strategy, **limits).run(value, TARGET)
    return SpellDependencies().run(assigned, TARGET)


@each("case", CASES)
def test_programs_are_right_and_sums_end_sooner_than_with_threadblocks_by_load(placed, case):
    name, boxes, collective = case
    value = placed(*case)
    program = allocated(value)
    report = verify_program(program, RCCL, subject="x")
    assert report.ok, report.findings
    machine = topology.load(name, nodes=boxes)
    both = program, allocated(value, "balanced")
    size = program.header.chunks << 20  # a chunk is no larger than a tile
    mine, other = (simulate(p, machine, RCCL, (size,))[0].seconds for p in both)
    assert mine <= other or collective == "allgather"


def test_sums_are_apart_from_connections_and_those_of_a_chunk_together(placed):
    program = allocated(placed("mi250", None, "reduce-scatter"))
    for gpu in program.gpus:
        where = defaultdict(set)
        for block in gpu.threadblocks:
            kinds = {step.op for step in block.steps}
            assert kinds in ({"s"}, {"r"}, {"re"})
            for step in block.steps if kinds == {"re"} else ():
                where[step.target].add(block.id)
        assert where
        assert max(map(len, where.values())) == 1


def test_all_threadblocks_share_the_work(placed):
    """Where there are threadblocks for it, none has much more to do than others."""
    program = allocated(placed("mi250", None, "reduce-scatter"))
    for gpu in program.gpus:
        assert len(gpu.threadblocks) <= RCCL.usable_threadblocks
        moved = [sum(step.count for step in block.steps) for block in gpu.threadblocks]
        mean = sum(moved) / RCCL.usable_threadblocks
        assert max(moved) <= 2 * mean


def test_too_few_threadblocks_are_refused(placed):
    value = placed("mi250", None, "allreduce")
    with pytest.raises(LimitError):
        allocated(value, max_threadblocks=8)
    with pytest.raises(LimitError):
        allocated(value, max_steps=1)
