"""The threadblock program of a plan that colsynth wrote, for the simulator.

Operations say what steps do, but not which channel of the program a threadblock had; the writer
adds that under a key of ours, which MSCCL++ ignores (contract 1). Plans without it are not lifted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import structs

from colsynth.model import Gpu, Header, Slot, Step, Threadblock, ThreadblockProgram, Wait
from colsynth.runtimes.plans.multicast import is_multicast, lift_gpu, write_gpu
from colsynth.runtimes.plans.shape import PlanShape

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Block, Op, Operand, Plan, PlanGpu

_LOCAL = frozenset({"copy", "re", "upkt", "repkt"})
_MOST = 1 << 16
"""Chunks of an operand beyond which nothing is lifted; the verifier's limit is lower (P03)."""
_FUSED = {"r": "rcs", "rrc": "rrcs"}


def lift(plan: Plan, header: Header) -> ThreadblockProgram | None:
    """Return the program of a plan; None where its operations are not those of steps."""
    if any(block.channel is None for gpu in plan.gpus for block in gpu.threadblocks):
        return None
    try:
        if any(map(is_multicast, plan.gpus)):
            return _multicast(plan, header)
        slots = _slots(plan)
        gpus = tuple(_Lifter(gpu, slots).lift() for gpu in plan.gpus)
        program = ThreadblockProgram(replace(header, boxes=_boxes(plan)), gpus)
    except (LookupError, ValueError, ZeroDivisionError):
        return None
    return program if PlanShape(program).is_connected else None


def _multicast(plan: Plan, header: Header) -> ThreadblockProgram | None:
    """Return the program of a plan over a switch, if its threadblocks have the roles of ours."""
    program = ThreadblockProgram(header, tuple(map(lift_gpu, plan.gpus)))
    shape = PlanShape(program)
    same = all(write_gpu(shape, g) == h for g, h in zip(program.gpus, plan.gpus, strict=True))
    return program if program.multicasts and same else None


def _slots(plan: Plan) -> dict[tuple[int, int], tuple[int, int]]:
    """Return rank and channel that write a chunk of scratch from outside, by rank and chunk."""
    found = {}
    for gpu in plan.gpus:
        for block in gpu.threadblocks:
            for op in _flat(block):
                for operand in op.dst_buff:
                    if operand.buffer_id is not None:
                        owner = _owner(gpu, block, op, operand)
                        if operand.size > _MOST:
                            raise ValueError("no plan that can be executed has so many chunks")
                        chunks = range(operand.index, operand.index + operand.size)
                        writer = gpu.id, block.channel or 0
                        found.update(dict.fromkeys(((owner, k) for k in chunks), writer))
    return found


def _flat(block: Block) -> list[Op]:
    return list(chain.from_iterable(op.ops or (op,) for op in block.ops))


def _owner(gpu: PlanGpu, block: Block, op: Op, operand: Operand) -> int:
    refs = {r.access_channel_type: r.remote_buffer_ids for r in block.remote_buffer_refs}
    number = refs[op.channel_type or "memory"][operand.buffer_id or 0]
    return gpu.remote_buffers[number].rank


def _boxes(plan: Plan) -> tuple[int, ...]:
    """Return a box for every rank: those that reach each other's memory share one."""
    box = list(range(len(plan.gpus)))
    for gpu in plan.gpus:
        for buffer in gpu.remote_buffers:
            if "memory" in buffer.access_channel_types:
                one, other = box[gpu.id], box[buffer.rank]
                box = [min(one, other) if b in (one, other) else b for b in box]
    return tuple(box)


class _Lifter:
    """Lifts the program of one rank."""

    def __init__(self, gpu: PlanGpu, slots: dict[tuple[int, int], tuple[int, int]]) -> None:
        self.gpu, self.slots = gpu, slots
        self.given: dict[int, Wait] = {}
        self.steps: list[Step] = []
        self.pending: list[int] = []
        self.send: int | None = None
        self.recv: int | None = None
        self.staged: Operand | None = None
        self.last: Operand | None = None

    def lift(self) -> Gpu:
        gpu = self.gpu
        found = [(block, *self._block(block)) for block in gpu.threadblocks]
        blocks = tuple(
            Threadblock(
                block.id,
                send,
                recv,
                block.channel or 0,
                tuple(self._resolved(step) for step in steps),
            )
            for block, send, recv, steps in found
        )
        own = min((chunk for _, chunk in self.slots), default=0)  # slots lie behind it
        return Gpu(gpu.id, gpu.input_chunks, gpu.output_chunks, own, blocks)

    def _resolved(self, step: Step) -> Step:
        """Return a step with the step that it waits for instead of a semaphore."""
        return structs.replace(step, waits=tuple(self.given[wait.step] for wait in step.waits))

    def _block(self, block: Block) -> tuple[int | None, int | None, list[Step]]:
        self.steps, self.pending, self.staged, self.last = [], [], None, None
        self.send = self.recv = None
        for op in _flat(block):
            if op.name == "sem_acquire":
                self.pending += [k for k in op.semaphore_ids if not self._credit(k)]
            elif op.name == "sem_release":
                self._release(block, op)
            elif op.src_buff:
                self._data(block, op)
        return self.send, self.recv, self.steps

    def _credit(self, number: int) -> bool:
        return self.gpu.semaphores[number].init_value > 0

    def _release(self, block: Block, op: Op) -> None:
        numbers = [k for k in op.semaphore_ids if not self._credit(k)]
        if numbers:
            self.steps[-1] = structs.replace(self.steps[-1], signals=True)
            wait = Wait(block.id, len(self.steps) - 1)
            self.given.update(dict.fromkeys(numbers, wait))

    def _data(self, block: Block, op: Op) -> None:
        far = next((o for o in op.dst_buff if o.buffer_id is not None), None)
        if far is not None:
            self.send = _owner(self.gpu, block, op, far)
        sender = next((s for o in op.src_buff if (s := self._sender(o)) is not None), None)
        source, target = op.src_buff[0], op.dst_buff[0]
        if sender is not None and op.name in ("put", "pws"):
            sender = None  # what was received before is sent on
        if sender is not None:
            self.recv = sender
        if op.name == "cpkt" or (op.name == "copy" and self._is_stage(target)):
            self.staged = source
        elif op.name in ("put", "pws", "ppkt"):
            self._sent(op, self.staged or source, far)
            self.staged = None
        elif op.name in _LOCAL and far is None:
            self._moved(op, sender)
        else:
            kind = "rcs" if len(op.src_buff) == 1 else "rrcs"
            if op.name == "res" and self._sender(target) is not None:
                kind = "rrs"
            kept = None if target.type is None else _slot(target)  # rppkt: upkt follows
            self._step(kind, _slot(self._other(op)), kept, op)
            self.last = None

    def _moved(self, op: Op, sender: int | None) -> None:
        source, target = self._other(op), op.dst_buff[0]
        before = self.steps[-1] if self.steps else None
        if before is not None and before.op == "rcs" and before.target is None:
            self.steps[-1] = structs.replace(before, target=_slot(target))
            return
        if sender is None:
            self._added(op)
        else:
            self._step("r" if len(op.src_buff) == 1 else "rrc", _slot(source), _slot(target), op)
            writers = [w for o in op.src_buff if (w := self._writer(o)) is not None]
            self.steps[-1] = structs.replace(self.steps[-1], folds=tuple(writers[1:]))
            self.last = target

    def _added(self, op: Op) -> None:
        """Append a copy, and what is added to it; what lies where the sum belongs is not copied."""
        target = op.dst_buff[0]
        adds = target in op.src_buff
        for operand in op.src_buff:
            if operand != target:
                self._step("re" if adds else "cpy", _slot(operand), _slot(target), op)
                adds = True

    def _sent(self, op: Op, source: Operand, far: Operand | None) -> None:
        before = self.steps[-1] if self.steps else None
        passes_on = before is not None and self.last == source and not self.pending
        if before is not None and passes_on and self._is_one(before, op):
            self.steps[-1] = structs.replace(before, op=_FUSED[before.op])
        elif far is not None:
            self._append(Step("s", _slot(source), None, far.size))
        self.last = None

    def _is_one(self, before: Step, op: Op) -> bool:
        """Whether a step that passes on is spelt as a receive and this operation behind it.

        That is so over ports, and of a sum of two messages where slots wrap; a relay of packets
        and all else in memory is one operation (`colsynth.runtimes.plans.blocks`).
        """
        if before.op not in _FUSED or before.signals:
            return False
        adds = before.op == "rrc"
        if op.channel_type == "port":
            return adds or op.name != "ppkt"
        wraps = before.source is not None and before.source.buffer == "s"
        return adds and wraps and op.name == "put"

    def _step(self, kind: str, source: Slot, target: Slot | None, op: Op) -> None:
        self._append(Step(kind, source, target, op.dst_buff[0].size))

    def _append(self, step: Step) -> None:
        waits = [Wait(0, number) for number in self.pending]
        for wait in waits[:-1]:
            self.steps.append(Step("nop", None, None, 0, (wait,)))
        self.steps.append(structs.replace(step, waits=tuple(waits[-1:])))
        self.pending = []

    def _other(self, op: Op) -> Operand:
        """Return the source that is neither a slot nor the target."""
        sources = [o for o in op.src_buff if self._sender(o) is None and o != op.dst_buff[0]]
        return sources[0] if sources else op.src_buff[-1]

    def _sender(self, operand: Operand) -> int | None:
        writer = self._writer(operand)
        return None if writer is None else writer[0]

    def _writer(self, operand: Operand) -> tuple[int, int] | None:
        return self.slots.get((self.gpu.id, operand.index)) if operand.type == "s" else None

    def _is_stage(self, target: Operand) -> bool:
        """Whether a chunk is written only for a port to read it."""
        if target.type != "s":
            return False
        every = (op for block in self.gpu.threadblocks for op in _flat(block))
        readers = [op for op in every if target in op.src_buff]
        return bool(readers) and all(op.channel_type == "port" for op in readers)


def _slot(operand: Operand) -> Slot:
    if operand.type is None:
        raise ValueError("a local operand is expected")
    return Slot(operand.type, operand.index)
