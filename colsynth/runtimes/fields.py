"""Attributes of one tag, read with the runtime's own meaning of numbers."""

from __future__ import annotations

from colsynth.model import Severity
from colsynth.runtimes.numbers import is_plain, read_int
from colsynth.runtimes.scanner import Scanner, Tag


class Fields:
    """Typed access to a tag's attributes; every fault becomes a finding.

    Parameters
    ----------
    scanner : Scanner
    tag : Tag
    rule : str
        Rule that a missing attribute breaks.
    """

    def __init__(self, scanner: Scanner, tag: Tag, rule: str) -> None:
        self._scanner, self._tag, self._rule = scanner, tag, rule

    def text(self, key: str) -> str | None:
        """Return a required attribute, or None when it is missing."""
        value = self._tag.attributes.get(key)
        if value is None:
            self.fault(self._rule, f"<{self._tag.name}> lacks {key!r}", Severity.ERROR)
        return value

    def given(self, key: str) -> bool:
        """Whether the tag has this attribute."""
        return key in self._tag.attributes

    def number(self, key: str) -> int | None:
        """Return a required number, or None when it is missing."""
        text = self.text(key)
        return None if text is None else self._int(key, text, 32)

    def optional(self, key: str, default: int, *, bits: int = 32) -> int:
        """Return a number that the runtime has a default for."""
        text = self._tag.attributes.get(key)
        return default if text is None else self._int(key, text, bits)

    def fault(self, rule: str, message: str, level: Severity | None = None) -> None:
        """Report a broken rule at this tag."""
        self._scanner.report(rule, message, self._tag.offset, level)

    def ignored(self, known: frozenset[str]) -> None:
        """Report attributes that no runtime looks at."""
        for key in self._tag.attributes:
            if key not in known and key:
                self.fault("X15", f"attribute {key!r} of <{self._tag.name}> is ignored")

    def _int(self, key: str, text: str, bits: int) -> int:
        value = read_int(text, bits)
        if not is_plain(text) or text not in (str(value), "-0"):
            self.fault("X13", f"{key}={text!r} of <{self._tag.name}> is read as {value}")
        return value
