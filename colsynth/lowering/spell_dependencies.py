"""Pass spell-dependencies: one wait per step, published where somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from colsynth.errors import Diagnostic, LimitError, require_least
from colsynth.lowering.columns import Ints, spread
from colsynth.lowering.joined_copies import awaited_steps, joined_copies
from colsynth.lowering.refusals import over_limit
from colsynth.lowering.segmentations import units
from colsynth.model import StepTable, Threadblock, ThreadblockProgram
from colsynth.model.step_table import (
    BUFFERS,
    COUNT,
    NONE,
    OP,
    OPS,
    SIGNALS,
    SOURCE,
    SOURCE_BUFFER,
    TARGET,
    TARGET_BUFFER,
)
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.limits import first_exceeded
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target
from colsynth.units import format_most, format_size

LEAST_UNIT = 1 << 10
"""Fewest bytes of an iteration."""


@dataclass(frozen=True, slots=True)
class SpellDependencies:
    """Spread several waits over nops, mark what is waited for, close gaps in scratch.

    A step has room for one dependency; k of them become k - 1 nops and the step, which the
    runtime collects again (contract 4.5). Exactly the steps that others wait for publish
    their completion. Then every limit of the runtime is checked by name.

    Parameters
    ----------
    unit : int
        Most bytes of a chunk that a plan moves in an iteration, taken down to a power of two; 0 is
        as many as scratch has room for. Threadblocks that pass data on begin after one iteration of
        those before them, so small ones fill a program sooner, for a step each.
    """

    unit: int = 0

    name: ClassVar[str] = "spell-dependencies"
    takes: ClassVar[type] = ThreadblockProgram
    gives: ClassVar[type] = ThreadblockProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("unit", propose=units),)

    def __post_init__(self) -> None:
        require_least("unit", self.unit, LEAST_UNIT if self.unit else 0)

    def run(self, value: ThreadblockProgram, target: Target) -> ThreadblockProgram:
        """Return the program as files can hold it.

        Raises
        ------
        LimitError
            CS402: a limit of the runtime is exceeded; the limit is named.
        """
        program = _spelt(value, target.profile.max_count)
        if target.profile.plans:
            program = fitted_to(program, target)
        if target.profile.plans and self.unit:
            from colsynth.runtimes.plans.iterations import in_units

            program = in_units(program, self.unit, target.profile.max_tiles)
        _check_limits(program, target.profile)
        return program


def fitted_to(program: ThreadblockProgram, target: Target) -> ThreadblockProgram:
    """Return a program with the byte range that its plan can serve.

    Raises
    ------
    LimitError
        CS222: that is less than the target asks for.
    """
    from colsynth.runtimes.plans.shape import ALIGNED, fitted

    found = fitted(program)
    least, most = found.header.min_bytes, found.header.max_bytes
    if target.max_bytes is not None and target.max_bytes < least:
        asked, lowest = format_size(target.max_bytes), format_size(ALIGNED)
        phrase = f"--max-bytes {asked}: the plan does not serve such small messages"
        note = f"it serves {format_size(least)} or more"
        note += f"; others may serve less, but none less than {lowest}"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help="give a larger one"))
    needed = max(least, target.max_bytes or 0 if target.needed is None else target.needed)
    if most is not None and most < needed:
        asked = format_size(needed)
        phrase = f"messages of {asked} do not fit the plan"
        note = f"with {target.protocol} it serves messages {format_most(most)}"
        advice = "give a smaller --max-bytes, or use --protocol Simple"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help=advice))
    return found


def _spelt(program: ThreadblockProgram, most: int) -> ThreadblockProgram:
    """Return a program with its waits spelt, and its operands in scratch where they lie now."""
    lengths = program.lengths
    numbers, scratch = _without_gaps(program, lengths)
    whole = replace(program.steps, numbers=numbers)
    home = program.first_blocks
    whole, lengths = joined_copies(whole, lengths, home, most)
    steps, lengths = _with_nops(whole, lengths, home)
    parts = steps.parts(lengths.tolist())
    gpus = tuple(
        replace(
            gpu,
            scratch_chunks=chunks,
            threadblocks=tuple(
                Threadblock(block.id, block.send, block.recv, block.channel, next(parts))
                for block in gpu.threadblocks
            ),
        )
        for gpu, chunks in zip(program.gpus, scratch, strict=True)
    )
    return ThreadblockProgram.of(program.header, gpus, steps, lengths)


def _with_nops(steps: StepTable, lengths: Ints, home: Ints) -> tuple[StepTable, Ints]:
    """Return steps with one wait each, nops before them for the others, and their number.

    Parameters
    ----------
    steps : StepTable
    lengths, home : int arrays
        Steps of each threadblock, and the first threadblock of its GPU.
    """
    begin = np.concatenate([[0], np.cumsum(np.maximum(steps.waits, 1))])
    last = begin[1:] - 1
    first = np.cumsum(lengths) - lengths
    blocks, awaited = awaited_steps(steps, lengths, home)
    numbers = np.repeat(steps.numbers, np.diff(begin), axis=1)
    nops = np.ones(begin[-1], dtype=np.bool_)
    nops[last] = False
    columns = (OP, SOURCE_BUFFER, SOURCE, TARGET_BUFFER, TARGET, COUNT)
    for column, value in zip(columns, (OPS.index("nop"), *[NONE] * 4, 0), strict=True):
        numbers[column, nops] = value
    numbers[SIGNALS] = 0
    numbers[SIGNALS, last[awaited]] = 1
    waits = np.repeat(np.minimum(steps.waits, 1), np.diff(begin))
    spelt = StepTable(
        numbers,
        np.concatenate([[0], np.cumsum(waits)]),
        steps.wait_block,
        last[awaited] - begin[first[blocks]],
        {int(last[row]): found for row, found in steps.folds.items()},
        steps.words,
        steps.buffers,
    )
    return spelt, begin[first + lengths] - begin[first]


def _without_gaps(program: ThreadblockProgram, lengths: Ints) -> tuple[Ints, list[int]]:
    """Return the numbers of steps where scratch has no gaps, and each rank's chunks of it."""
    numbers = program.steps.numbers.copy()
    ranks = np.repeat(np.arange(len(program.gpus)), [len(gpu.threadblocks) for gpu in program.gpus])
    rank = np.repeat(ranks, lengths)
    operands = []
    for buffer, offset in ((SOURCE_BUFFER, SOURCE), (TARGET_BUFFER, TARGET)):
        touching = np.flatnonzero(numbers[buffer] == BUFFERS.index("s"))
        operands.append((touching, rank[touching], numbers[offset]))
    ends = [offset[rows] + numbers[COUNT, rows] for rows, _, offset in operands]
    most = max(int(found.max(initial=0)) for found in ends)
    touched = np.zeros((len(program.gpus), most + 1), dtype=np.bool_)
    for rows, where, offset in operands:
        count = np.maximum(numbers[COUNT, rows], 1)
        touched[np.repeat(where, count), spread(offset[rows], count)] = True
    place = np.cumsum(touched, axis=1) - 1
    for rows, where, offset in operands:
        offset[rows] = place[where, offset[rows]]
    return numbers, touched.sum(axis=1).tolist()


def _check_limits(program: ThreadblockProgram, profile: Profile) -> None:
    """Raise LimitError for the first limit of the runtime that the program exceeds."""
    item = first_exceeded(program, profile)
    if item is not None:
        raise over_limit(item.title, item.used, item.limit, profile)
