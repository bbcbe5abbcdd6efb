"""Runs passes one after another: fits them together first, checks and times each.

Verification is here and not on the command line, so that whoever calls a pipeline
gets it: a value that can be proved (a forest, a timed schedule) is checked after every
pass that gives one.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from colsynth.errors import (
    ColsynthError,
    DefectError,
    Diagnostic,
    InputError,
    Span,
    VerificationError,
    is_interrupt,
)
from colsynth.gc_pause import gc_paused
from colsynth.model import ChunkProgram, Finding, Forest, Report, TimedSchedule
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.interface import Pass
from colsynth.pipeline.registry import DEFAULT, Registry, spec_of
from colsynth.pipeline.spec import TEXT_NAME, parse, to_text
from colsynth.runtimes.target import Context

Observer = Callable[[int, str, Any], None]
"""Told (place in the pipeline from 1, name of the pass, its result)."""

_MOST_TOLD = 10
"""Errors of a report that are told before the rest is counted."""


@dataclass(frozen=True)
class Pipeline:
    """Passes in order.

    Parameters
    ----------
    passes : tuple of Pass
    first : int
        Place of the first pass, from 1; above 1 for the rest of a longer pipeline.
    """

    passes: tuple[Pass, ...]
    first: int = 1

    @classmethod
    def from_text(cls, text: str, registry: Registry = DEFAULT) -> Pipeline:
        """Return the pipeline that `text` describes.

        Raises
        ------
        InputError
            CS201 to CS204, each with the column.
        """
        return cls(tuple(registry.build(spec) for spec in parse(text)))

    def __str__(self) -> str:
        """Return text that builds an equal pipeline."""
        return to_text(tuple(spec_of(item) for item in self.passes))

    def check(self, takes: type, gives: type) -> None:
        """Refuse a chain that does not lead from `takes` to `gives`.

        Raises
        ------
        InputError
            CS205, naming the two neighbours that do not fit.
        """
        chain = [("the start", takes, takes)]
        chain += [(repr(item.name), item.takes, item.gives) for item in self.passes]
        chain.append(("the end", gives, gives))
        for (giver, _, given), (taker, taken, _) in pairwise(chain):
            if not issubclass(given, taken):
                raise InputError(
                    Diagnostic(
                        "CS205",
                        f"{taker} takes {taken.__name__}, {giver} gives {given.__name__}",
                        Span(TEXT_NAME),
                        notes=(f"in the pipeline {str(self)!r}",),
                        help="'colsynth passes' shows what each pass takes and gives",
                    )
                )

    def split_after(self, *given: type) -> tuple[Pipeline, Pipeline]:
        """Return the part up to the last pass that gives one of `given`, and the rest."""
        places = [i for i, item in enumerate(self.passes, 1) if item.gives in given]
        return self.split_at(places[-1] if places else 0)

    def split_at(self, cut: int) -> tuple[Pipeline, Pipeline]:
        """Return the first `cut` passes, and the rest."""
        head, tail = self.passes[:cut], self.passes[cut:]
        return Pipeline(head, self.first), Pipeline(tail, self.first + cut)

    def run(
        self,
        value: Any,
        target: Context,
        clock: Clock | None = None,
        observe: Observer | None = None,
    ) -> Any:
        """Return what the last pass gives; `check` the chain first.

        Parameters
        ----------
        value : object
            What the first pass takes.
        target : Context
            A Target where a pass needs to know the runtime.
        clock : Clock, optional
            Is told how long each pass takes.
        observe : callable, optional
            Is told what each pass gives.

        Raises
        ------
        ColsynthError
            What a pass raises on purpose; a DefectError when a pass fails otherwise,
            gives a value of the wrong type, or one that does not prove itself.
        """
        clock = clock or Clock()
        last = self.first + len(self.passes) - 1
        with gc_paused():
            for place, item in enumerate(self.passes, self.first):
                target.progress(item.name, place - 1, last)
                with clock.measure(item.name):
                    value = _run_one(item, value, target)
                _prove(item, value, clock)
                if observe is not None:
                    observe(place, item.name, value)
        return value


def _run_one(item: Pass, value: Any, target: Context) -> Any:
    """Return the result of one pass, of the type it promises."""
    try:
        result = item.run(value, target)
    except ColsynthError:
        raise
    except MemoryError as fault:
        raise _out_of_memory(item.name, fault) from fault
    except Exception as fault:
        if is_interrupt(fault):
            raise KeyboardInterrupt from fault
        phrase = f"pass {item.name!r} failed: {type(fault).__name__}: {fault}"
        last = traceback.extract_tb(fault.__traceback__)[-1]
        note = f"raised in {last.name}, {Path(last.filename).name}:{last.lineno}"
        raise DefectError(Diagnostic("CS901", phrase, notes=(note,))) from fault
    if not isinstance(result, item.gives):
        phrase = f"pass {item.name!r} gave a {type(result).__name__}"
        note = f"it promises a {item.gives.__name__}"
        raise DefectError(Diagnostic("CS902", phrase, notes=(note,)))
    return result


def _out_of_memory(name: str, fault: MemoryError) -> InputError:
    """Return the refusal of what does not fit; numpy says how large its array would have been."""
    phrase = f"pass {name!r} needs more memory than there is"
    shape, dtype = getattr(fault, "shape", None), getattr(fault, "dtype", None)
    notes: tuple[str, ...] = ()
    if shape is not None and dtype is not None:
        need = prod(shape) * dtype.itemsize
        notes = (f"it asked for {need / 10**9:,.1f} GB at once",)
    advice = "take fewer GPUs, trees or chunks, or a machine with more memory"
    return InputError(Diagnostic("CS308", phrase, notes=notes, help=advice))


def _prove(item: Pass, value: Any, clock: Clock) -> None:
    """Check a value that promises more than its type: a forest, a timed schedule, transfers."""
    name = item.name
    if isinstance(value, ChunkProgram) and (item.takes is not ChunkProgram or _is_added(item)):
        _check_transfers(name, value)
    if not isinstance(value, Forest | TimedSchedule):
        return
    from colsynth.verify import check_forest, check_timed

    try:
        if isinstance(value, Forest):
            with clock.measure("check-forest"):
                check_forest(value)
        else:
            with clock.measure("check-timed"):
                check_timed(value)
    except VerificationError as fault:
        what = "forest" if isinstance(value, Forest) else "timed schedule"
        phrase = f"pass {name!r} gave a {what} that is not what it claims"
        found = fault.diagnostic
        notes = (f"{found.code}: {found.phrase}", *found.notes)
        raise DefectError(Diagnostic("CS903", phrase, notes=notes)) from fault


def _is_added(item: Pass) -> bool:
    """Whether a pass is a user's own; the package's are not checked after each of them."""
    return type(item) in DEFAULT.own


def _check_transfers(name: str, program: ChunkProgram) -> None:
    """Refuse transfers that kernels would follow out of their arrays."""
    from colsynth.verify.transfers import fault_of_transfers

    try:
        fault = fault_of_transfers(program)
    except (AttributeError, TypeError, ValueError, OverflowError) as wrong:
        fault = f"ranks, chunks and waits of its transfers must be integers: {wrong}"
    if fault is not None:
        phrase = f"pass {name!r} gave a ChunkProgram that breaks a promise"
        raise DefectError(Diagnostic("CS902", phrase, notes=(fault,)))


def findings(report: Report) -> Iterator[str]:
    """Yield one line for each of the first errors of a report."""
    for found in report.errors[:_MOST_TOLD]:
        yield f"{found.rule}: {_place(found)}{found.message}"
    if len(report.errors) > _MOST_TOLD:
        yield f"and {len(report.errors) - _MOST_TOLD} more"


def _place(found: Finding) -> str:
    """Return where a finding is, as far as it is known."""
    parts = {"rank": found.rank, "threadblock": found.threadblock, "step": found.step}
    known = [f"{word} {number}" for word, number in parts.items() if number is not None]
    return f"{', '.join(known)}: " if known else ""
