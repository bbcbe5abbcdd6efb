"""Pass spell-dependencies: one wait per step, published where somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from colsynth.lowering.refusals import over_limit
from colsynth.model import Gpu, Slot, Step, Threadblock, ThreadblockProgram, Wait
from colsynth.runtimes.limits import usage
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class SpellDependencies:
    """Spread several waits over nops, mark what is waited for, close gaps in scratch.

    A step has room for one dependency; k of them become k - 1 nops and the step, which the
    runtime collects again (contract 4.5). Exactly the steps that others wait for publish
    their completion. Then every limit of the runtime is checked by name.
    """

    name: ClassVar[str] = "spell-dependencies"
    takes: ClassVar[type] = ThreadblockProgram
    gives: ClassVar[type] = ThreadblockProgram

    def run(self, value: ThreadblockProgram, target: Target) -> ThreadblockProgram:
        """Return the program as files can hold it.

        Raises
        ------
        LimitError
            CS402: a limit of the runtime is exceeded; the limit is named.
        """
        gpus = tuple(_compact_scratch(_spell(gpu)) for gpu in value.gpus)
        program = replace(value, gpus=gpus)
        _check_limits(program, target.profile)
        return program


def _spell(gpu: Gpu) -> Gpu:
    place: dict[tuple[int, int], Wait] = {}
    for block in gpu.threadblocks:
        position = 0
        for number, step in enumerate(block.steps):
            position += max(0, len(step.waits) - 1)
            place[block.id, number] = Wait(block.id, position)
            position += 1
    awaited = {
        place[wait] for block in gpu.threadblocks for step in block.steps for wait in step.waits
    }
    blocks = tuple(_spell_block(block, place, awaited) for block in gpu.threadblocks)
    return replace(gpu, threadblocks=blocks)


def _spell_block(
    block: Threadblock, place: dict[tuple[int, int], Wait], awaited: set[Wait]
) -> Threadblock:
    steps: list[Step] = []
    for step in block.steps:
        waits = step.waits
        if waits:
            *early, last = [place[wait] for wait in waits]
            steps += [Step("nop", None, None, 0, (wait,), origin=step.origin) for wait in early]
            waits = (last,)
        signals = (block.id, len(steps)) in awaited
        steps.append(
            Step(step.op, step.source, step.target, step.count, waits, signals, step.origin)
        )
    return replace(block, steps=tuple(steps))


def _compact_scratch(gpu: Gpu) -> Gpu:
    """Renumber scratch so that only what is touched is allocated, adjacency kept."""
    touched: set[int] = set()
    for block in gpu.threadblocks:
        for step in block.steps:
            for slot in (step.source, step.target):
                if slot is not None and slot.buffer == "s":
                    touched.update(range(slot.offset, slot.offset + step.count))
    place = {offset: Slot("s", new) for new, offset in enumerate(sorted(touched))}
    if all(offset == slot.offset for offset, slot in place.items()):
        return replace(gpu, scratch_chunks=len(touched))
    blocks = tuple(
        replace(block, steps=tuple(_moved(step, place) for step in block.steps))
        for block in gpu.threadblocks
    )
    return replace(gpu, scratch_chunks=len(touched), threadblocks=blocks)


def _moved(step: Step, place: dict[int, Slot]) -> Step:
    """Return the step with its operands in scratch where that lies now."""
    source, target = (
        place[slot.offset] if slot is not None and slot.buffer == "s" else slot
        for slot in (step.source, step.target)
    )
    if source is step.source and target is step.target:
        return step
    return replace(step, source=source, target=target)


def _check_limits(program: ThreadblockProgram, profile: Profile) -> None:
    """Raise LimitError for the first limit of the runtime that the program exceeds."""
    for item in usage(program, profile):
        if item.exceeded:
            raise over_limit(item.title, item.used, item.limit, profile)
