"""Plans with a fault put into them, which whatever executes them must find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from colsynth.runtimes.plans.form import Op, Plan, PlanGpu

    Change = Callable[[PlanGpu, Op], Op | None]

_LOCAL = ("copy", "re", "upkt", "repkt")


def _changed(plan: Plan, ranks: range, change: Change) -> Plan:
    """Return a plan in which some ranks have changed operations; None removes one."""

    def ops(gpu: PlanGpu, given: tuple[Op, ...]) -> tuple[Op, ...]:
        found = [change(gpu, replace(op, ops=ops(gpu, op.ops))) for op in given]
        return tuple(op for op in found if op is not None)

    gpus = list(plan.gpus)
    for rank in ranks:
        gpu = gpus[rank]
        blocks = tuple(replace(block, ops=ops(gpu, block.ops)) for block in gpu.threadblocks)
        gpus[rank] = replace(gpu, threadblocks=blocks)
    return replace(plan, gpus=tuple(gpus))


def _without(plan: Plan, ranks: range, names: set[str]) -> Plan:
    return _changed(plan, ranks, lambda _, op: None if op.name in names else op)


def shifted(plan: Plan) -> Plan:
    """Return a plan in which rank 1 writes one result beside the right chunk."""
    done: list[Op] = []

    def change(gpu: PlanGpu, op: Op) -> Op:
        if done or op.name not in _LOCAL or op.dst_buff[0].type == "s":
            return op
        target = op.dst_buff[0]
        room = gpu.input_chunks if target.type == "i" else gpu.output_chunks
        if room == target.size:
            return op
        beside = target.index + 1 if target.index + target.size < room else target.index - 1
        done.append(op)
        return replace(op, dst_buff=(replace(target, index=beside), *op.dst_buff[1:]))

    return _changed(plan, range(1, 2), change)


def silent(plan: Plan) -> Plan:
    """Return a plan in which rank 1 neither signals nor sends packets, so that others wait."""
    return _without(plan, range(1, 2), {"signal", "ppkt", "respkt"})


def hasty(plan: Plan) -> Plan:
    """Return a plan of signals in which nobody waits for anybody, nor signals."""
    return _without(plan, range(len(plan.gpus)), {"signal", "wait"})
