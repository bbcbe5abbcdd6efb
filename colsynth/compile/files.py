"""Verified files of a plan: one program for every call mode, written and read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from colsynth.compile.modes import Mode
from colsynth.compile.result import Artefact, Schedule, file_name
from colsynth.errors import DefectError, Diagnostic, InputError, VerificationError
from colsynth.model import Forest, Problem, Program, Report, TimedSchedule
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline, findings
from colsynth.runtimes.limits import usage_read
from colsynth.runtimes.selection import taken_sizes
from colsynth.runtimes.target import Target
from colsynth.units import format_most, format_size, plural

if TYPE_CHECKING:
    from colsynth.runtimes.reader import Reading

Watch = Callable[[str, int, str, Any], None]
"""Called with (mode, empty if there is only one; place; name; value) for every value."""

SCHEDULES: tuple[type, ...] = (Forest, TimedSchedule)
"""Schedules with a proof of their rate; baselines may give plain transfers instead."""


@dataclass(frozen=True)
class Maker:
    """Makes the files of one pipeline.

    Parameters
    ----------
    problem : Problem
    target : Target
    modes : tuple of Mode
        The call mode of each file.
    pipeline : Pipeline
    ours : bool
        Whether colsynth chose the passes; a wrong program is then a defect of colsynth.
    watch : callable, optional
    clock : Clock
    """

    problem: Problem
    target: Target
    modes: tuple[Mode, ...]
    pipeline: Pipeline
    ours: bool = True
    watch: Watch | None = None
    clock: Clock = field(default_factory=Clock)

    def make(
        self, known: tuple[Schedule, Mode, Program] | None = None
    ) -> tuple[Schedule, tuple[Artefact, ...]]:
        """Return the schedule, which all call modes share, and the verified files.

        Parameters
        ----------
        known : tuple, optional
            The schedule, and a mode with its program, if they exist already. A watcher must see
            every value, so with `watch` everything is made again.

        Raises
        ------
        LimitError
            The program does not fit the runtime.
        InputError
            CS212: no call in the byte range would use a file.
        DefectError, VerificationError
            The bytes are wrong: a defect of colsynth, or of the passes given.
        """
        head, tail = self.pipeline.split_after(*SCHEDULES)
        if not head.passes:
            # A pass that gives a program at once gives another one for every mode.
            head, tail = self.pipeline.split_at(min(1, len(self.pipeline.passes) - 1))
        if known is None or self.watch is not None:
            known = None
            schedule = head.run(self.problem, self.target, self.clock, self._observer(""))
        else:
            schedule = known[0]
        programs = {} if known is None else {known[1]: known[2]}
        artefacts = tuple(
            self._artefact(tail, schedule, mode, programs.get(mode)) for mode in self.modes
        )
        return schedule, artefacts

    def _observer(self, mode: str) -> Callable[[int, str, Any], None] | None:
        watch = self.watch
        if watch is None:
            return None
        return lambda place, name, value: watch(mode, place, name, value)

    def _artefact(
        self, tail: Pipeline, schedule: Schedule, mode: Mode, program: Program | None
    ) -> Artefact:
        """Return the verified file for one call mode, from `program` if it exists already."""
        from colsynth.runtimes.schedules import read, write

        target = aimed(self.target, mode)
        label = mode.value if len(self.modes) > 1 else ""
        if program is None:
            program = tail.run(schedule, target, self.clock, self._observer(label))
        _require_served(program, target)
        with self.clock.measure("write"):
            data = write(program, target.profile)
        name = file_name(self.problem, target.profile.name, mode)
        target.progress("verify", self.modes.index(mode), len(self.modes))
        with self.clock.measure("verify"):
            reading = read(data, target.profile, file=name, steps=False)
            report = self._verified(name, reading)
        used = usage_read(reading, program, target.profile)
        return Artefact(name, mode, data, program, report, used)

    def _verified(self, name: str, reading: Reading) -> Report:
        """Return the report on a file that was read; raise if it has errors."""
        from colsynth.verify import verify_reading

        problem, profile = self.problem, self.target.profile
        single_node = len(problem.topology.boxes) <= 1
        report = verify_reading(reading, profile, subject=name, single_node=single_node)
        root = dict(report.facts).get("root")
        if report.ok and (problem.root is None or root == str(problem.root)):
            return report
        phrase = f"the program for {profile.name} is wrong; nothing was written"
        notes = tuple(findings(report)) or (f"its root is {root}, not {problem.root}",)
        if self.ours:
            raise DefectError(Diagnostic("CS904", phrase, notes=notes))
        advice = "the passes given with --passes lead to a wrong program"
        raise VerificationError(Diagnostic("CS230", phrase, notes=notes, help=advice))


def _require_served(program: Program, target: Target) -> None:
    """Refuse a byte range of which no size can be cut into the chunks of a program (CS212)."""
    law = taken_sizes(program.header, target.profile)
    least = -(-max(law.min_bytes, 1) // law.multiple) * law.multiple
    if law.max_bytes is not None and least > law.max_bytes:
        span = f"from {format_size(law.min_bytes)}, {format_most(law.max_bytes)}"
        phrase = f"no size of the range can use the file: {span}"
        notes = (f"its chunks need multiples of {plural(law.multiple, 'byte')}",)
        advice = "change --min-bytes or --max-bytes"
        raise InputError(Diagnostic("CS212", phrase, notes=notes, help=advice))


def aimed(target: Target, mode: Mode) -> Target:
    """Return the target for one call mode."""
    return replace(target, in_place=mode.in_place, out_of_place=mode.out_of_place)
