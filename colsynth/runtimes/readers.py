"""Which runtimes read files of a format: one alone for plans and rounds, several for XML."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.runtimes.catalog import profiles
from colsynth.runtimes.kinds import foreign, written_for
from colsynth.runtimes.profile import Profile


def readers(data: bytes) -> tuple[Profile, ...]:
    """Return the runtimes that read the format of a file; all where it has none of a schedule."""
    kind = written_for(data)
    return tuple(x for x in profiles() if kind in (None, x.format))


def only_reader(data: bytes, subject: str, named: Profile | None = None) -> Profile:
    """Return the one runtime that reads the format of a file, or the one that is named.

    Raises
    ------
    InputError
        CS605: the file is no schedule. CS608: several runtimes read its format.
    """
    require_schedule(data, subject)
    if named is not None:
        return named
    found = readers(data)
    if len(found) > 1:
        raise ambiguous(subject, [x.name for x in found], "read this format, each by its own rules")
    return found[0]


def require_schedule(data: bytes, subject: str) -> None:
    """Refuse what is no schedule file of any runtime (CS605)."""
    if (kind := foreign(data)) is not None:
        advice = "give a file of 'colsynth compile', or another one that a runtime reads"
        phrase = f"this is no schedule file: it is {kind}"
        raise InputError(Diagnostic("CS605", phrase, Span(subject), help=advice))


def ambiguous(subject: str, names: Sequence[str], why: str) -> InputError:
    """Return the refusal of a file that several runtimes take (CS608): their names and `why`."""
    *some, last = names
    advice = f"give {' or '.join(f'-r {name}' for name in names)}"
    phrase = "the file does not tell which runtime it is for"
    note = f"{', '.join(some)} and {last} {why}"
    return InputError(Diagnostic("CS608", phrase, Span(subject), (note,), advice))
