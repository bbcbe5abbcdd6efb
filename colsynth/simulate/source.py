"""What is simulated: the program of a schedule file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Severity

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram
    from colsynth.runtimes.profile import Profile


def read_program(data: bytes, profile: Profile, subject: str) -> ThreadblockProgram:
    """Return the program of a schedule file.

    Raises
    ------
    InputError
        CS605: the runtime's parser gets none out of it.
    """
    from colsynth.runtimes.reader import read

    reading = read(data, profile, file=subject)
    if reading.program is not None:
        return reading.program
    errors = [item for item in reading.findings if item.severity is Severity.ERROR]
    notes = tuple(f"{item.rule}: {item.message}" for item in errors[:1])
    span = Span(subject, errors[0].line if errors else None)
    phrase = f"{profile.name} would read no schedule from this file"
    raise InputError(Diagnostic("CS605", phrase, span, notes, "`colsynth verify` says more"))
