"""What is simulated: the program of a schedule file, as the runtime reads it that can run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import RoundProgram, Severity, ThreadblockProgram
from colsynth.runtimes.readers import ambiguous, require_schedule
from colsynth.simulate.executable import Unfit, check, require_ranks

if TYPE_CHECKING:
    from colsynth.model import Finding, Program, Report, Topology
    from colsynth.runtimes.limits import Usage
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading

_FOREIGN = "not one that colsynth wrote and nobody changed"
"""Of a plan without a program: its operations have no times in our models."""


@dataclass(frozen=True)
class Source:
    """A program, and where its parts stand in its file.

    Parameters
    ----------
    subject : str
        Name of the file.
    profile : Profile
        Of the runtime that reads it.
    program : ThreadblockProgram or RoundProgram
    reading : Reading
    """

    subject: str
    profile: Profile
    program: Program
    reading: Reading

    @property
    def threadblocks(self) -> ThreadblockProgram:
        """The program, of a runtime whose schedules are programs of threadblocks (else CS610)."""
        if isinstance(self.program, RoundProgram):
            phrase = f"{self.subject} holds rounds of messages, not programs of threadblocks"
            advice = "'colsynth verify' and 'simulate' take it, and colsynth.torch executes it"
            raise InputError(Diagnostic("CS610", phrase, help=advice))
        if self.program.multicasts:
            phrase = f"{self.subject} moves data over a switch, not from GPU to GPU"
            advice = "'colsynth verify', 'simulate' and 'run' take it"
            raise InputError(Diagnostic("CS610", phrase, help=advice))
        return self.program

    def limits(self) -> tuple[Usage, ...]:
        """Return what the file takes of each limit of the runtime."""
        from colsynth.runtimes.limits import usage_read

        return usage_read(self.reading, self.program, self.profile)

    @cached_property
    def report(self) -> Report:
        """Everything wrong with the file."""
        from colsynth.verify import verify_reading

        return verify_reading(self.reading, self.profile, subject=self.subject)

    def require_fit(self, topology: Topology) -> None:
        """Refuse a program that cannot be executed on a topology, with file and line.

        Raises
        ------
        InputError
            CS600: the ranks of both differ; CS602, as `require_executable`.
        """
        self.require_ranks(topology)
        self.require_executable()

    def require_ranks(self, topology: Topology) -> None:
        """Refuse a topology of another number of ranks (CS600)."""
        self._placed(partial(require_ranks, self.program.header.ranks, topology))

    def require_executable(self) -> None:
        """Refuse a program that no machine can execute, with file and line.

        Raises
        ------
        InputError
            CS602: the program cannot be executed.
        """
        self._placed(partial(check, self.program))

    def _placed(self, checks: Callable[[], None]) -> None:
        """Make a check whose refusal names file and line."""
        try:
            checks()
        except Unfit as fault:
            line = self.reading.line(fault.rank, fault.block, fault.step)
            span = Span(self.subject, line or self.reading.header_line)
            raise InputError(replace(fault.diagnostic, span=span)) from None


def read_source(data: bytes, profile: Profile, subject: str) -> Source:
    """Return the program of a schedule file, with the places of its parts.

    Raises
    ------
    InputError
        CS605: the runtime's parser gets none out of it.
    """
    from colsynth.runtimes.schedules import read

    reading = read(data, profile, file=subject)
    if reading.program is not None:
        return Source(subject, profile, reading.program, reading)
    require_schedule(data, subject)
    if reading.plan is not None:
        raise _unreadable(subject, f"the plan is {_FOREIGN}: no program is found in it", None)
    phrase = f"{profile.name} would read no schedule from this file"
    raise _unreadable(subject, phrase, _first_fault(reading))


def find_runtime(data: bytes, subject: str) -> Source:
    """Return the program of a schedule file as the only runtime that can run it reads it.

    A runtime can run what its parser reads without a fault, where it has all step types of the
    program and room for it.

    Raises
    ------
    InputError
        CS605: none can. CS608: several can, and the file does not tell which it is for.
    """
    found = find_runtimes(data, subject)
    if len(found) > 1:
        names = [source.profile.name for source in found]
        raise ambiguous(subject, names, "can run it, and take different times")
    return found[0]


def find_runtimes(data: bytes, subject: str) -> list[Source]:
    """Return the program of a schedule file as each runtime that can run it reads it.

    Raises
    ------
    InputError
        CS605: none can.
    """
    from colsynth.runtimes.catalog import profiles
    from colsynth.runtimes.schedules import read

    found: list[Source] = []
    reasons: list[str] = []
    for profile in profiles():
        reading = read(data, profile, file=subject)
        fault = _first_fault(reading)
        if reading.program is None or fault is not None:
            reasons.append(f"{profile.name}: {_spell(fault, reading)}")
            continue
        source = Source(subject, profile, reading.program, reading)
        if obstacle := _obstacle(source):
            reasons.append(f"{profile.name}: {obstacle}")
        else:
            found.append(source)
    if not found:
        require_schedule(data, subject)
        raise _unreadable(subject, "no runtime can run this file as it is", None, reasons)
    return found


def _obstacle(source: Source) -> str | None:
    """Return why a runtime cannot run a program that its parser reads, None where it can."""
    program = source.program
    if not isinstance(program, ThreadblockProgram):
        return None
    missing = sorted(set(program.steps.used()) - set(source.profile.ops))
    if missing:
        return f"it runs no steps of type {', '.join(missing)}"
    over = [item for item in source.limits() if item.exceeded]
    return f"{over[0].title} {over[0].used} of {over[0].limit}" if over else None


def _first_fault(reading: Reading) -> Finding | None:
    return next((x for x in reading.findings if x.severity is Severity.ERROR), None)


def _spell(fault: Finding | None, reading: Reading) -> str:
    if fault is not None:
        place = "" if fault.line is None else f"line {fault.line}: "
        return f"{place}{fault.rule}: {fault.message}"
    return "it has no program" if reading.plan is None else f"the plan is {_FOREIGN}"


def _unreadable(
    subject: str, phrase: str, fault: Finding | None, reasons: Sequence[str] = ()
) -> InputError:
    notes = (*reasons,) if fault is None else (f"{fault.rule}: {fault.message}",)
    span = Span(subject, None if fault is None else fault.line)
    advice = "`colsynth verify` with -r RUNTIME says more"
    return InputError(Diagnostic("CS605", phrase, span, notes, advice))
