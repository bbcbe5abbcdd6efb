"""XML from outside: read with entities, DTDs and network off; every element has a place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, Span
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.machine import Source, refusal

if TYPE_CHECKING:
    from lxml.etree import _Element

_BEFORE = re.compile(r"\s*(?:<!--.*?-->\s*|<\?.*?\?>\s*)*<([A-Za-z_][\w.-]*)", re.DOTALL)
_TAG_LINES = 16
"""Lines of one tag, at most, in which the place of an attribute is looked for."""


def root_name(text: str) -> str:
    """Return the name of the root element; empty where the text does not begin as XML does."""
    found = _BEFORE.match(text)
    return found[1] if found else ""


def parse_xml(source: Source) -> _Element:
    """Return the root element.

    Raises
    ------
    InputError
        CS152: it is no XML, or declares types or entities.
    """
    from lxml import etree

    for word in ("<!DOCTYPE", "<!ENTITY"):
        if word in source.text:
            raise refusal(f"{word} has no place in a topology", source.find(word))
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    try:
        return etree.fromstring(source.text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as fault:
        line, column = fault.position
        reason = (fault.msg or "").partition(", line ")[0]
        phrase = "the XML is not well-formed"
        raise refusal(phrase, source.span(max(line, 1), max(column, 1)), reason) from None


def children(element: _Element) -> Iterator[_Element]:
    """Yield the elements in an element."""
    yield from element.iterchildren("*")


def place(source: Source, element: _Element, attribute: str | None = None) -> Span:
    """Return the place of an attribute's value, or of the element."""
    last = int(element.sourceline)  # type: ignore[call-overload]
    lines = source.text.split("\n")[max(last - _TAG_LINES, 0) : last]
    tag = f"<{element.tag}"
    sought = re.compile(rf"\b{re.escape(attribute)}\s*=\s*[\"']") if attribute else None
    for back, line in enumerate(reversed(lines)):
        begin = line.rfind(tag)
        found = sought.search(line, max(begin, 0)) if sought else None
        if found is not None:
            return source.span(last - back, found.end() + 1)
        if begin >= 0:
            return source.span(last - back, begin + 1)
    return source.span(last)


@dataclass
class XmlReader:
    """What readers of one file share: its text, and what is odd about it."""

    source: Source
    warnings: list[Diagnostic] = field(default_factory=list)

    def at(self, element: _Element, attribute: str | None = None) -> Span:
        """Return the place of an attribute's value, or of the element."""
        return place(self.source, element, attribute)

    def warn(
        self, code: str, phrase: str, at: Span, *notes: str, advice: str | None = None
    ) -> None:
        """Add a warning."""
        self.warnings.append(warning(code, phrase, at, *notes, advice=advice))

    def number(self, element: _Element, name: str, default: str, least: int, most: int) -> int:
        """Return a whole number; raise InputError (CS152) where there is none."""
        text = element.get(name, default).strip()
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not least <= int(text) <= most:
            phrase = f"{name} {text!r} is no number from {least} to {most}"
            raise refusal(phrase, self.at(element, name))
        return int(text)
