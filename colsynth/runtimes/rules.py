"""The lint rules' severities, and a collector that keeps reports readable."""

from __future__ import annotations

from functools import cache
from typing import Any

from colsynth.model import Finding, Severity
from colsynth.runtimes.data import read_data

CAP = 8
"""Findings of one rule that a report lists; the rest are counted."""


@cache
def severities(runtime: str) -> dict[str, str]:
    """Return ``error``, ``warning`` or ``note`` of every rule that applies to a runtime."""
    rules = _rules()
    return {
        rule: page["severity"][runtime]
        for rule, page in rules.items()
        if runtime in page["severity"]
    }


@cache
def _rules() -> dict[str, dict[str, Any]]:
    rules: dict[str, dict[str, Any]] = read_data("explanations", "rules.yaml")
    return rules


class Findings:
    """Collects findings for one file on one runtime.

    A rule that does not apply to the runtime is dropped, a rule that is only a note is
    kept apart, and no rule lists more than `CAP` places.
    """

    def __init__(self, runtime: str) -> None:
        self._severity = severities(runtime.partition("@")[0])
        self._listed: dict[tuple[str, Severity], list[Finding]] = {}
        self._counts: dict[tuple[str, Severity], int] = {}
        self.notes: list[tuple[str, str]] = []

    def add(
        self,
        rule: str,
        message: str,
        rank: int | None = None,
        threadblock: int | None = None,
        step: int | None = None,
        *,
        line: int | None = None,
        level: Severity | None = None,
    ) -> None:
        """Record one broken rule; `level` replaces the severity the rule usually has."""
        usual = self._severity.get(rule)
        if usual is None:
            return
        if usual == "note":
            self.notes.append((rule, message))
            return
        key = (rule, level or Severity(usual))
        self._counts[key] = self._counts.get(key, 0) + 1
        listed = self._listed.setdefault(key, [])
        if len(listed) < CAP:
            listed.append(Finding(rule, key[1], message, rank, threadblock, step, line))

    def has(self, *rules: str) -> bool:
        """Whether any of `rules` was found broken."""
        return any(rule in rules for rule, _ in self._counts)

    @property
    def failed(self) -> bool:
        """Whether any finding is an error."""
        return any(level is Severity.ERROR for _, level in self._counts)

    def all(self) -> tuple[Finding, ...]:
        """Return the findings, each rule's together, with a count of those not listed."""
        found: list[Finding] = []
        for (rule, level), listed in self._listed.items():
            found.extend(listed)
            more = self._counts[rule, level] - len(listed)
            if more > 0:
                found.append(Finding(rule, level, f"and {more} more places like these"))
        return tuple(found)
