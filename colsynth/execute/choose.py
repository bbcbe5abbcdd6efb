"""Which runtime a file is executed for, with which message and in which modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from colsynth.execute.refusals import refusal
from colsynth.model import Severity
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.readers import readers, require_schedule
from colsynth.runtimes.schedules import read
from colsynth.runtimes.selection import TakenSizes, taken_sizes

if TYPE_CHECKING:
    from colsynth.model import Header
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading

_USUAL = 1 << 20
"""Bytes of a message where none is named."""


@dataclass(frozen=True)
class Choice:
    """A file as a runtime executes it.

    Parameters
    ----------
    profile : Profile
    reading : Reading
    refused : str or None
        Why it does not.
    """

    profile: Profile
    reading: Reading
    refused: str | None

    @property
    def header(self) -> Header:
        """What the file says about itself; only of files that are not refused."""
        if self.reading.header is None:
            raise ValueError("the file has no program")
        return self.reading.header

    @property
    def faults(self) -> list[str]:
        """What the runtime's parser objects to."""
        errors = (x for x in self.reading.findings if x.severity is Severity.ERROR)
        return [f"{x.rule}: {x.message}" for x in errors]

    def taken(self, element_bytes: int) -> TakenSizes:
        """Return the messages for which the runtime selects the file."""
        return taken_sizes(self.header, self.profile, element_bytes)

    def usual_size(self, element_bytes: int) -> int:
        """Return the size of a message where none is named: about 1 MiB, as chunks divide it.

        A file that serves larger messages alone executes the same steps.
        """
        taken = self.taken(element_bytes)
        most = _USUAL if taken.max_bytes is None else min(_USUAL, taken.max_bytes)
        return max(1, most // taken.multiple) * taken.multiple

    def modes(self) -> tuple[bool, ...]:
        """Return the call modes that the file serves: in place is True."""
        claimed = ((False, self.header.out_of_place), (True, self.header.in_place))
        return tuple(mode for mode, is_claimed in claimed if is_claimed)


def choose(data: bytes, name: str, runtime: str | None) -> Choice:
    """Return a file as the named runtime executes it, or as the one that objects to it least.

    Raises
    ------
    InputError
        CS501: there is no such runtime. CS605: no runtime reads such a file.
    """
    require_schedule(data, name)
    candidates = readers(data) if runtime is None else (profile(runtime),)
    found = []
    for candidate in candidates:
        reading = read(data, candidate, file=name)
        found.append(Choice(candidate, reading, refusal(reading, candidate)))
    return min(
        found,
        key=lambda one: (one.refused is not None, one.reading.header is None, len(one.faults)),
    )
