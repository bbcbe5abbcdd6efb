"""What a verifier has to say about a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR: not loaded, hang or wrong result. WARNING: works, but fragile or wasteful."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule at one place.

    Parameters
    ----------
    rule : str
        Rule id of the runtime contract, such as ``"C02"``.
    severity : Severity
    message : str
        What is wrong, with the figures.
    rank, threadblock, step : int or None
        Where; None where the rule is about something larger.
    line : int or None
        Line of the file, where known.
    """

    rule: str
    severity: Severity
    message: str
    rank: int | None = None
    threadblock: int | None = None
    step: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one file on one runtime.

    Parameters
    ----------
    subject : str
        File name, or the name of the program.
    runtime : str
    findings : tuple of Finding
        In the order of the file; the verdict is bad when any is an error.
    facts : tuple of (str, str)
        What was checked and established, for people: modes, FIFO depth, steps executed.
    """

    subject: str
    runtime: str
    findings: tuple[Finding, ...]
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)
