"""How few threadblocks can share some work."""

import pytest

from colsynth import runtimes
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.columns import Columns
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.threadblock_load import RankLoads
from colsynth.model import Direction, Origin, Transfer
from colsynth.runtimes.target import Target


def transfer(source, target, count, phase=0):
    return Transfer(source, target, 0, count, False, (), Origin(phase, Direction.OUT, 0))


def test_a_connection_is_divided_by_its_chunks_and_by_its_steps():
    work = RankLoads.of(Columns.of(tuple(transfer(0, 1, 2) for _ in range(5))), separate=False)
    assert work.busiest == 10
    assert work.least(10, 64, fused=False) == 1
    assert work.least(4, 64, fused=False) == 3
    assert work.least(10, 2, fused=False) == 3


def test_fused_threadblocks_serve_a_connection_each_way():
    work = RankLoads.of(
        Columns.of((transfer(0, 1, 1), transfer(1, 2, 1), transfer(1, 3, 1))), separate=False
    )
    assert work.least(1, 64, fused=False) == 3
    assert work.least(1, 64, fused=True) == 2


def test_phases_have_connections_of_their_own_where_they_are_separate():
    transfers = (transfer(0, 1, 1), transfer(0, 1, 1, phase=1))
    assert RankLoads.of(Columns.of(transfers), separate=True).least(8, 64, fused=False) == 2
    assert RankLoads.of(Columns.of(transfers), separate=False).least(8, 64, fused=False) == 1


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize("machine", ["dgx-a100", "mi250", "ndv2"])
@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_no_allocation_takes_fewer_than_the_least(lowered, machine, collective, runtime):
    program = lowered(machine, collective, runtime=runtime, until=PlaceSlots)
    profile = runtimes.profile(runtime)
    for fuse in {False, profile.fuses}:
        for strategy in ("fewest", "spread"):
            allocated = AssignThreadblocks(strategy, fuse=fuse).run(program, Target(profile))
            loads = [
                sum(step.count for step in block.steps if step.op != "nop")
                for gpu in allocated.gpus
                for block in gpu.threadblocks
            ]
            work = RankLoads.of(Columns.of(program.transfers), separate=False)
            least = work.least(max(loads), profile.max_steps, fused=True)
            assert least <= allocated.max_threadblocks <= profile.max_threadblocks
