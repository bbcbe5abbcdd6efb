"""The iterations of a plan: how much of each chunk moves at a time."""

from __future__ import annotations

from dataclasses import replace

from colsynth.model import Header, ThreadblockProgram
from colsynth.runtimes.plans.form import SCRATCH_BYTES
from colsynth.runtimes.plans.shape import CREDITS, Form, PlanShape


def countable(unit: int, header: Header, most: int) -> int:
    """Return a unit of which `most` iterations suffice for the largest message, `unit` at least."""
    if header.max_bytes is None:
        return unit
    least = -(-header.max_bytes // (header.chunks * most))
    return max(unit, 1 << (least - 1).bit_length())


def in_units(program: ThreadblockProgram, unit: int, most: int) -> ThreadblockProgram:
    """Return a program whose plan moves less of each chunk in an iteration.

    It declares more chunks of scratch than it uses, so slots are smaller.

    Parameters
    ----------
    program : ThreadblockProgram
    unit : int
        Bytes of a chunk in an iteration at most, taken down to a power of two. More where `most`
        iterations do not suffice for the largest message. No plan has more than scratch has room
        for. A flat plan, which has no iterations, becomes a pipeline where it would move more.
    most : int
        Iterations that the runtime counts.
    """
    shape = PlanShape(program)
    unit = countable(1 << (unit.bit_length() - 1), program.header, most)
    moved = shape.largest_chunk if shape.form is Form.FLAT else shape.unit
    if shape.form is Form.PACKETS or (moved is not None and moved <= unit):
        return program
    own = shape.own + SCRATCH_BYTES // (CREDITS * unit) - shape.stages_end
    return replace(program, gpus=tuple(replace(gpu, scratch_chunks=own) for gpu in program.gpus))


def tiling(program: ThreadblockProgram, size: int) -> tuple[int, int]:
    """Return the bytes of a chunk in an iteration, and the messages that a connection holds.

    In a flat plan and with packets, every message of a call has a slot of its own. In a pipeline
    a connection holds those of two iterations; that it holds two messages is a lower limit.
    """
    shape = PlanShape(program)
    if shape.form is Form.PIPELINE:
        return shape.unit, CREDITS
    return max(1, -(-size // program.header.chunks)), max(shape.messages, 1)
