"""Pass spell-dependencies: one wait per step, published where somebody waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from operator import attrgetter
from typing import ClassVar

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
        most = max(gpu.scratch_chunks for gpu in value.gpus)
        scratch = [Slot("s", offset) for offset in range(most)]
        gpus = tuple(_spell(gpu, scratch) for gpu in value.gpus)
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


def _spell(gpu: Gpu, scratch: Sequence[Slot]) -> Gpu:
    """Return the program of a rank; `scratch` holds a slot for every offset."""
    places = [_places(block) for block in gpu.threadblocks]
    awaited: list[set[int]] = [set() for _ in places]
    for block in gpu.threadblocks:
        for step in block.steps:
            for other, number in step.waits:
                awaited[other].add(number)
    touched = _touched(gpu)
    moved = touched[-1:] != [len(touched) - 1]
    slots = dict(zip(touched, scratch, strict=False)) if moved else {}
    blocks = tuple(
        _spell_block(block, places, awaited[number], slots)
        for number, block in enumerate(gpu.threadblocks)
    )
    return replace(gpu, scratch_chunks=len(touched), threadblocks=blocks)


def _places(block: Threadblock) -> list[int]:
    """Return where each step of a threadblock stands once nops are put before others."""
    return list(accumulate([len(step.waits) or 1 for step in block.steps], initial=-1))[1:]


def _touched(gpu: Gpu) -> list[int]:
    """Return the offsets of scratch that steps touch, ascending."""
    if not gpu.scratch_chunks:
        return []
    steps = [step for block in gpu.threadblocks for step in block.steps]
    slots = chain(map(attrgetter("source"), steps), map(attrgetter("target"), steps))
    touched = {slot[1] for slot in slots if slot is not None and slot[0] == "s"}
    for step in steps:
        if step.count > 1:
            for slot in (step.source, step.target):
                if slot is not None and slot[0] == "s":
                    touched.update(range(slot[1], slot[1] + step.count))
    return sorted(touched)


def _spell_block(
    block: Threadblock, places: list[list[int]], awaited: set[int], slots: dict[int, Slot]
) -> Threadblock:
    """Return a threadblock with its waits spelt, and its operands in scratch where they lie now."""
    steps: list[Step] = []
    for number, step in enumerate(block.steps):
        waits, source, target = step.waits, step.source, step.target
        if waits:
            spelt = [(other, places[other][at]) for other, at in waits]
            steps += [
                Step("nop", None, None, 0, (Wait(*wait),), False, step.origin)
                for wait in spelt[:-1]
            ]
            waits = waits[-1:] if spelt[-1] == waits[-1] else (Wait(*spelt[-1]),)
        if slots and source is not None and source[0] == "s":
            source = slots[source[1]]
        if slots and target is not None and target[0] == "s":
            target = slots[target[1]]
        signals = number in awaited
        same = signals == step.signals and source is step.source and target is step.target
        if same and waits == step.waits:
            steps.append(step)
        else:
            rest = step.count, waits, signals, step.origin, step.folds
            steps.append(Step(step.op, source, target, *rest))
    return Threadblock(block.id, block.send, block.recv, block.channel, tuple(steps))


def _check_limits(program: ThreadblockProgram, profile: Profile) -> None:
    """Raise LimitError for the first limit of the runtime that the program exceeds."""
    for item in usage(program, profile):
        if item.exceeded:
            raise over_limit(item.title, item.used, item.limit, profile)
