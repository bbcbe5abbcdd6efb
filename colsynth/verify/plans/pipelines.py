"""Rules P12 and P13: how a pipeline cuts its data, and what its operations move."""

from __future__ import annotations

from colsynth.runtimes.plans.form import Loop, Op, scratch_stride
from colsynth.verify.plans.operations import Operations
from colsynth.verify.plans.ranges import OFFSETS

_ITERATIONS = 65535


def lint_pipeline(checks: Operations, op: Op, step: int) -> None:
    """Check a pipeline of a threadblock, and the operations in it."""
    loop = op.iter_context
    if loop is None or loop.unit_size < 1 or loop.num_chunks < 1:
        checks.add("P12", "the pipeline does not say how to cut its data", step)
        return
    _lint_loop(checks, loop, step)
    for inner in op.ops:
        if inner.name == "pipeline":
            checks.add("P12", "pipelines do not nest", step)
            continue
        checks.lint(inner, step)
        sizes = {operand.size for operand in (*inner.src_buff, *inner.dst_buff)}
        sliced = inner.tbg_info is not None and inner.tbg_info.tbg_size > 1
        if sliced or sizes - {loop.num_chunks}:
            text = f"{inner.name} moves other than the {loop.num_chunks} chunks of the loop"
            checks.add("P12", text, step)
        if checks.plan.reuse_resources and inner.name in ("re", "res"):
            _lint_wraps(checks, inner, step)


def _lint_loop(checks: Operations, loop: Loop, step: int) -> None:
    """Check how a pipeline cuts its data."""
    plan, gpu = checks.plan, checks.gpu
    unit, most = loop.unit_size, min(plan.max_message_size, OFFSETS - 1)
    if unit % max(1, plan.buffer_alignment):
        checks.add("P12", f"{unit} bytes are no multiple of the alignment", step)
    if plan.reuse_resources and gpu.scratch_chunks:
        stride = scratch_stride(plan, gpu)
        if stride % unit:
            text = f"units of {unit} bytes do not divide the {stride} of a slot"
            checks.add("P12", text, step)
    chunk = most // max(gpu.input_chunks, gpu.output_chunks, 1)
    turns = -(-loop.num_chunks * chunk // unit)
    if turns > _ITERATIONS:
        text = f"{turns} iterations at the largest message; 16 bits count them"
        checks.add("P12", text, step)


def _lint_wraps(checks: Operations, op: Op, step: int) -> None:
    """Check that later sources wrap as they should: the executor asks the target's type."""
    for k, source in enumerate(op.src_buff[1:], 1):
        target = op.dst_buff[k] if k < len(op.dst_buff) else None
        wraps = target is not None and (target.type == "s" or target.buffer_id == 2)
        if wraps != (source.type == "s"):
            text = f"source {k} of {op.name} is read at the wrong place once slots wrap"
            checks.add("P13", text, step)
