"""What is simulated: the program of a schedule file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Severity
from colsynth.simulate.steps import Unfit, check

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram, Topology
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading


@dataclass(frozen=True, slots=True)
class Source:
    """A program, and where its parts stand in its file.

    Parameters
    ----------
    subject : str
        Name of the file.
    program : ThreadblockProgram
    reading : Reading
    """

    subject: str
    program: ThreadblockProgram
    reading: Reading

    def require_fit(self, topology: Topology) -> None:
        """Refuse a program that cannot be executed on a topology, with file and line.

        Raises
        ------
        InputError
            CS600: the ranks of both differ; CS602: the program cannot be executed.
        """
        try:
            check(self.program, topology)
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
    from colsynth.runtimes.reader import read

    reading = read(data, profile, file=subject)
    if reading.program is not None:
        return Source(subject, reading.program, reading)
    errors = [item for item in reading.findings if item.severity is Severity.ERROR]
    notes = tuple(f"{item.rule}: {item.message}" for item in errors[:1])
    span = Span(subject, errors[0].line if errors else None)
    phrase = f"{profile.name} would read no schedule from this file"
    raise InputError(Diagnostic("CS605", phrase, span, notes, "`colsynth verify` says more"))
