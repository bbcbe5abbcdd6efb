"""What is simulated: a schedule file, at which sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Severity
from colsynth.units import parse_size

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram
    from colsynth.runtimes.profile import Profile

MOST_SIZES = 1000


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


def read_sizes(text: str) -> tuple[int, ...]:
    """Return the message sizes of a text, ascending and each once.

    Sizes are separated by commas; ``1KB..4GB`` is a range in which each size is twice the
    one before.

    Raises
    ------
    InputError
        CS212: something is no size; CS604: a range is empty, or there are too many.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        begin = _size(first, text)
        end = _size(last, text) if dots else begin
        if begin < 1 or end < begin:
            phrase = f"there is no message size in {part.strip()!r}"
            raise InputError(Diagnostic("CS604", phrase, help="write --sizes 1KB..4GB"))
        while begin <= end:
            found.add(begin)
            begin *= 2
    if len(found) > MOST_SIZES:
        raise InputError(Diagnostic("CS604", f"{len(found)} sizes are too many"))
    return tuple(sorted(found))


def _size(part: str, text: str) -> int:
    try:
        return parse_size(part)
    except ValueError as fault:
        phrase = f"--sizes cannot be {text!r}"
        raise InputError(Diagnostic("CS212", phrase, notes=(str(fault),))) from None
