"""Pass spell-dependencies: one wait per step, published where somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import structs

from colsynth.errors import Diagnostic, LimitError
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
        if target.profile.plans:
            program = _fitted(program, target)
        _check_limits(program, target.profile)
        return program


def _fitted(program: ThreadblockProgram, target: Target) -> ThreadblockProgram:
    """Return a program with the byte range that its plan can serve (CS222 where that is less)."""
    from colsynth.runtimes.plans.shape import fitted

    found = fitted(program)
    least, most = found.header.min_bytes, found.header.max_bytes
    if most is not None and (most < least or most < (target.max_bytes or 0)):
        phrase = f"messages of {max(least, target.max_bytes or 0)} bytes do not fit the plan"
        note = f"with {target.protocol} it serves messages up to {most} bytes"
        advice = "give a smaller --max-bytes, or use --protocol Simple"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help=advice))
    return found


def _spell(gpu: Gpu) -> Gpu:
    places = [_places(block) for block in gpu.threadblocks]
    awaited: list[set[int]] = [set() for _ in places]
    for block in gpu.threadblocks:
        for step in block.steps:
            for other, number in step.waits:
                awaited[other].add(number)
    blocks = tuple(
        _spell_block(block, places, awaited[number])
        for number, block in enumerate(gpu.threadblocks)
    )
    return replace(gpu, threadblocks=blocks)


def _places(block: Threadblock) -> list[int]:
    """Return where each step of a threadblock stands once nops are put before others."""
    position, places = -1, []
    for step in block.steps:
        position += len(step.waits) or 1
        places.append(position)
    return places


def _spell_block(block: Threadblock, places: list[list[int]], awaited: set[int]) -> Threadblock:
    steps: list[Step] = []
    for number, step in enumerate(block.steps):
        waits = step.waits
        if waits:
            *early, last = [Wait(other, places[other][at]) for other, at in waits]
            steps += [Step("nop", None, None, 0, (w,), False, step.origin) for w in early]
            waits = (last,)
        signals = number in awaited
        steps.append(
            step
            if signals == step.signals and waits == step.waits
            else structs.replace(step, waits=waits, signals=signals)
        )
    return Threadblock(block.id, block.send, block.recv, block.channel, tuple(steps))


def _compact_scratch(gpu: Gpu) -> Gpu:
    """Renumber scratch so that only what is touched is allocated, adjacency kept."""
    touched: set[int] = set()
    for block in gpu.threadblocks:
        for step in block.steps:
            for slot in (step.source, step.target):
                if slot is not None and slot[0] == "s":
                    offset = slot[1]
                    if step.count == 1:
                        touched.add(offset)
                    else:
                        touched.update(range(offset, offset + step.count))
    order = sorted(touched)
    if not order or order[-1] == len(order) - 1:
        return replace(gpu, scratch_chunks=len(order))
    place = {offset: Slot("s", new) for new, offset in enumerate(order)}
    blocks = tuple(
        replace(block, steps=tuple([_moved(step, place) for step in block.steps]))
        for block in gpu.threadblocks
    )
    return replace(gpu, scratch_chunks=len(order), threadblocks=blocks)


def _moved(step: Step, place: dict[int, Slot]) -> Step:
    """Return the step with its operands in scratch where that lies now."""
    source, target = (
        place[slot.offset] if slot is not None and slot.buffer == "s" else slot
        for slot in (step.source, step.target)
    )
    if source is step.source and target is step.target:
        return step
    return structs.replace(step, source=source, target=target)


def _check_limits(program: ThreadblockProgram, profile: Profile) -> None:
    """Raise LimitError for the first limit of the runtime that the program exceeds."""
    for item in usage(program, profile):
        if item.exceeded:
            raise over_limit(item.title, item.used, item.limit, profile)
