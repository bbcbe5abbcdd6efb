"""Reads tags the way the runtimes' hand-written scanner does.

All three runtimes scan schedule files character by character with the same small
routine, which is not an XML parser: a value ends only at a double quote whatever
opened it, a tab between tags is an error, exactly one blank stands before an
attribute. A tag that this scanner and an XML parser read alike matches `_PLAIN` and is
taken at once; any other goes through `_Characters`, which follows the routine and
names the rule of the contract that the text breaks. After a fault the scanner reads
the tag as XML would, so that later faults are found too.

Time and memory grow with the text and no faster: patterns never go back, a search that found
nothing is not made again, and after `MAX_FAULTS` faults the rest is not read.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from colsynth.model import Severity
from colsynth.runtimes.rules import Findings

OPEN, SINGLE, CLOSE = "open", "single", "close"
MAX_ATTRIBUTES = 16
MAX_VALUE = 255
MAX_NAME = 253
MAX_FAULTS = 1000
"""Tags that the runtime would misread, after which the rest of the text is not read."""

_LONGEST_TAG = 2**16
"""Characters of a tag that is read as XML after a fault; the runtime holds 8,700."""

_BLOCK = 2**12
"""Characters between two places whose line is kept."""

_WORD = r"[^ <>/=\n\r\t\"'!?&]{1,253}"
_PLAIN = re.compile(
    rf"[ \n\r]*<(?:({_WORD})((?: {_WORD}=\"[^\"<>&\n\r\t]{{0,255}}\"){{0,16}})(/?)|/({_WORD}))>"
)
_ATTRIBUTE = re.compile(r" ([^=]+)=\"([^\"]*)\"")
_BLANKS = re.compile(r"[ \n\r]*")
_COMMENT = re.compile(r"<!--([^ >/\n\r]*)")
_END = re.compile(r"[ =>/\n\r]")
_KEY = r"[^\s=<>/\"']++"
_LENIENT = re.compile(
    r"<\s*+(/?)\s*+([^\s=<>/\"'?!][^\s=<>/\"']*+)"
    rf"((?:\s++{_KEY}(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))?+)*+)\s*+(/?)\s*+>"
)
_LENIENT_ATTRIBUTE = re.compile(rf"({_KEY})(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'))?+")


class Tag(NamedTuple):
    """One tag; of a repeated attribute the first counts, as in the runtime."""

    kind: str
    name: str
    attributes: dict[str, str]
    offset: int


class _Misread(Exception):
    """The runtime's scanner would stop here, or read something else than is meant."""

    def __init__(self, rule: str, message: str, offset: int) -> None:
        super().__init__(message)
        self.rule, self.message, self.offset = rule, message, offset


class Scanner:
    """Tags of `text` one after the other; faults go to `findings`."""

    def __init__(self, text: str, findings: Findings) -> None:
        self.text = text
        self.position = 0
        self._findings = findings
        self._faults = 0
        self._missing: dict[str, int] = {}
        counts = (text.count("\n", at, at + _BLOCK) for at in range(0, len(text), _BLOCK))
        self._lines = list(accumulate(counts, initial=1))

    def line(self, offset: int) -> int:
        """Return the line number, from 1, of a character."""
        block = min(offset // _BLOCK, len(self._lines) - 1)
        return self._lines[block] + self.text.count("\n", block * _BLOCK, offset)

    def find(self, text: str, position: int) -> int:
        """Return where a text comes next, -1 if nowhere, which is found out once."""
        if position >= self._missing.get(text, len(self.text)):
            return -1
        found = self.text.find(text, position)
        if found < 0:
            self._missing[text] = position
        return found

    def tag(self) -> Tag | None:
        """Return the next tag, comments skipped, or None at the end of the text."""
        match = _PLAIN.match(self.text, self.position)
        if match is None:
            return self._unusual()
        self.position = match.end()
        name, attributes, slash, closed = match.groups()
        if closed is not None:
            return Tag(CLOSE, closed, {}, match.start(4))
        pairs = _ATTRIBUTE.findall(attributes)
        values = dict(reversed(pairs))
        if len(values) < len(pairs):
            self._report_duplicates(pairs, match.start(1))
        return Tag(SINGLE if slash else OPEN, name, values, match.start(1))

    def report(self, rule: str, message: str, offset: int, level: Severity | None = None) -> None:
        """Add a finding at the line of a character."""
        self._findings.add(rule, message, line=self.line(offset), level=level)

    def _unusual(self) -> Tag | None:
        """Return the next tag where it is not plain."""
        while True:
            self.position = _BLANKS.match(self.text, self.position).end()  # type: ignore[union-attr]
            if self.position == len(self.text):
                return None
            try:
                if not self._skip_comment():
                    return self._by_character()
            except _Misread as fault:
                self.report(fault.rule, fault.message, fault.offset)
                tag = self._recover()
                self._count_fault(fault.offset)
                if tag is not None:
                    return tag
            if _PLAIN.match(self.text, self.position):
                return self.tag()

    def _count_fault(self, offset: int) -> None:
        self._faults += 1
        if self._faults == MAX_FAULTS:
            text = f"{MAX_FAULTS} tags cannot be read; what follows was not checked"
            self.report("X04", text, offset)
            self.position = len(self.text)

    def _skip_comment(self) -> bool:
        match = _COMMENT.match(self.text, self.position)
        if match is None:
            return False
        end = self.find("-->", self.position + 4)
        if end < 0:
            raise _Misread("X04", "a comment is never closed", self.position)
        word = match[1]
        if "=" in word or len(word) + 3 > MAX_NAME:
            start, self.position = self.position, end + 3
            raise _Misread("X09", f"the comment's first word is {word[:40]!r}", start)
        self.position = end + 3
        return True

    def _by_character(self) -> Tag:
        reader = _Characters(self, self.position)
        tag, pairs = reader.read()
        self.position = reader.position
        for rule, message, offset, level in reader.remarks:
            self.report(rule, message, offset, level)
        self._report_duplicates(pairs, tag.offset)
        return tag

    def _report_duplicates(self, pairs: list[tuple[str, str]], offset: int) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen and key:
                self.report("X08", f"attribute {key!r} is given twice; the first counts", offset)
            seen.add(key)

    def _recover(self) -> Tag | None:
        """Read the tag at hand as XML, or step over what cannot be one."""
        text = self.text
        start = self.find("<", self.position)
        if start < 0:
            self.position = len(text)
            return None
        if start > self.position:
            self.position = start
            return None
        match = _LENIENT.match(text, start, start + _LONGEST_TAG)
        if match is None:
            end = self.find(">", start)
            self.position = len(text) if end < 0 else end + 1
            return None
        self.position = match.end()
        close, name, attributes, slash = match.groups()
        pairs = [(key, a or b) for key, a, b in _LENIENT_ATTRIBUTE.findall(attributes)]
        kind = CLOSE if close else SINGLE if slash else OPEN
        return Tag(kind, name, dict(reversed(pairs)), start)


class _Characters:
    """The runtime's routine for one tag, with its faults named."""

    def __init__(self, scanner: Scanner, position: int) -> None:
        self.text, self.find = scanner.text, scanner.find
        self.position, self.start = position, position
        self.remarks: list[tuple[str, str, int, Severity | None]] = []

    def read(self) -> tuple[Tag, list[tuple[str, str]]]:
        """Return the tag and all its attributes, in order."""
        self._open()
        name, last = self._name()
        if not name and last == "/":
            return self._close(), []
        pairs: list[tuple[str, str]] = []
        count = 0
        while last == " ":
            key, value, last = self._attribute()
            count += 1
            if count <= MAX_ATTRIBUTES:
                pairs.append((key, value))
        self._judge(pairs, count)
        kind = OPEN
        if last == "/":
            kind, last = SINGLE, self._next()
        if last != ">":
            raise self._fault("X03" if last == "\t" else "X04", f"expected '>', found {last!r}")
        return Tag(kind, name, dict(reversed(pairs)), self.start), pairs

    def _open(self) -> None:
        text, at = self.text, self.position
        if text.startswith("\xef\xbb\xbf", at):
            raise self._fault("X01", "the file starts with a byte order mark")
        if text[at] != "<":
            found = "a tab" if text[at] == "\t" else f"text ({text[at : at + 12]!r})"
            raise self._fault("X03", f"{found} stands between tags")
        if text[at + 1 : at + 2] in ("?", "!"):
            word = text[at : at + 9].split()[0]
            raise self._fault("X01", f"{word!r} is read as an element that is never closed")
        self.position += 1

    def _close(self) -> Tag:
        name, last = self._name()
        if last != ">":
            raise self._fault("X04", f"closing tag {name!r} is followed by {last!r}")
        return Tag(CLOSE, name, {}, self.start)

    def _name(self) -> tuple[str, str]:
        begin, last = self.position, self._end()
        word = self._word(begin)
        if last == "=":
            raise self._fault("X04", "'=' in an element's name")
        return word, last

    def _attribute(self) -> tuple[str, str, str]:
        begin, last = self.position, self._end()
        word = self._word(begin)
        if last == "=":
            return word, self._value(), self._next()
        return word, "", last

    def _end(self) -> str:
        """Return the character that ends a word; the next one is behind it."""
        found = _END.search(self.text, self.position)
        self.position = len(self.text) if found is None else found.end()
        if found is None:
            raise self._unended()
        return found[0]

    def _word(self, begin: int) -> str:
        word = self.text[begin : self.position - 1]
        if len(word) > MAX_NAME:
            raise self._fault("X06", f"name {word[:20]!r}... has {len(word)} characters")
        if "\t" in word:
            raise self._fault("X03", "a tab inside a tag becomes part of a name")
        return word

    def _value(self) -> str:
        quote = self._next()
        if quote == "'":
            raise self._fault("X05", "a value opened with ' runs on to the next double quote")
        if quote != '"':
            raise self._fault("X05", f"expected a double quote after '=', found {quote!r}")
        end = self.find('"', self.position)
        if end < 0:
            raise self._fault("X05", "a value is never closed")
        value, self.position = self.text[self.position : end], end + 1
        if len(value) > MAX_VALUE:
            raise self._fault("X05", f"a value has {len(value)} characters; memory holds 255")
        if "\n" in value or "\r" in value:
            raise self._fault("X04", "a value runs over the end of the line")
        if "&" in value or "<" in value:
            raise self._fault("X05", f"value {value[:40]!r} is taken literally, not as XML")
        return value

    def _judge(self, pairs: list[tuple[str, str]], count: int) -> None:
        if count > MAX_ATTRIBUTES:
            raise self._fault("X07", f"{count} attributes (blanks included); 16 are kept")
        for key, value in pairs:
            if not key and not value:
                text = "a superfluous blank takes the place of an attribute"
                self.remarks.append(("X04", text, self.start, Severity.WARNING))
            elif not key or not value:
                raise self._fault(
                    "X04", f"attribute {key or value!r} is torn apart or has no value"
                )

    def _next(self) -> str:
        if self.position >= len(self.text):
            raise self._unended()
        self.position += 1
        return self.text[self.position - 1]

    def _unended(self) -> _Misread:
        return self._fault("X04", "the file ends inside a tag")

    def _fault(self, rule: str, message: str) -> _Misread:
        return _Misread(rule, message, self.start)
