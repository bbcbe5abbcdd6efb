"""A YAML file as plain data that remembers the line and column of every value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.reading import DESCRIPTION, read_whole
from colsynth.topology.scalars import plain_scalar

MAX_VALUES = 2**21
"""Values that are read of one file, lists and mappings counted: each takes some 300 bytes."""

Watch = Callable[[str, int, int], None]
"""Told (what, done, total) while a large file is read."""

Path_ = tuple[str | int, ...]
Mark = tuple[int, int]

# libyaml reads large files ten times faster, where PyYAML was built with it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 50

_OFTEN = 4096
"""Values of a file from one report of progress to the next; smaller files have none."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What diagnostics say about one kind of file.

    Parameters
    ----------
    file : str
        ``"topology file"``.
    shape : str
        What the file should hold, such as ``"a topology: a mapping with ..."``.
    example : str
        Advice that leads to a complete file.
    instead : str
        What to give where the file is no text at all.
    """

    file: str
    shape: str
    example: str
    instead: str


TOPOLOGY = Wording(
    "topology file",
    "a topology: a mapping with version, name, and box or nodes",
    "`colsynth topology export dgx-a100` prints a complete example",
    "give a preset, a generator such as ring:8, or a YAML topology file",
)


_DUMP = re.compile(r"\A\s*<|\bGPU\[?0\b|\bvendid=|\b(?:Switch|Block)Name=")
"""What tools print of a machine: XML, matrices of GPUs, ibnetdiscover, Slurm's topology.conf."""

_HEAD = 4096
"""Characters of a file in which that is looked for."""


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data of a file, and where each of its values and keys stands.

    Parameters
    ----------
    file : str
        As the user named it.
    data : dict
    values, keys : dict
        (line, column), both from 1, by path: ``("box", "links", 0, "from")``.
    quotes : dict
        By path, how many columns before its text a value begins: 1 where it stands in
        quotes, None where lines or escapes hide the place of its characters.
    """

    file: str
    data: dict[str, Any]
    values: dict[Path_, Mark] = field(repr=False)
    keys: dict[Path_, Mark] = field(repr=False)
    quotes: dict[Path_, int | None] = field(repr=False, default_factory=dict)

    def at(self, *path: str | int) -> Span:
        """Return the place of the value at `path`, or of the nearest one around it."""
        while path not in self.values:
            path = path[:-1]
        return Span(self.file, *self.values[path])

    def inside(self, *path: str | int) -> Callable[[int], Span]:
        """Return what gives the place of a character of the text at `path`, from 0 on.

        The first one stands for the whole value, and so does each whose place is not known.
        """
        span = self.at(*path)
        quotes = self.quotes.get(path, 0)

        def place(offset: int) -> Span:
            if offset == 0 or quotes is None or span.column is None:
                return span
            return Span(span.file, span.line, span.column + quotes + offset)

        return place

    def key(self, *path: str | int) -> Span:
        """Return the place of the key that `path` ends with."""
        return Span(self.file, *self.keys[path]) if path in self.keys else self.at(*path)


def silent(_what: str, _done: int, _total: int) -> None:
    """Do nothing: for work that nobody watches."""


def read_document(path: Path, wording: Wording = TOPOLOGY, watch: Watch = silent) -> Document:
    """Read a YAML file; `watch` is told the line.

    Raises
    ------
    InputError
        The file cannot be read, is no text, is no YAML, or is no mapping.
    """
    raw = read_whole(path, replace(DESCRIPTION, name=wording.file), "CS101")
    return decode_document(raw, str(path), wording, watch)


def decode_document(
    raw: bytes, file: str, wording: Wording = TOPOLOGY, watch: Watch = silent
) -> Document:
    """Return the data of the bytes of a file; `file` is what diagnostics call it.

    Raises
    ------
    InputError
        They are too many, no text, no YAML, or no mapping.
    """
    text = _decoded(raw, file, wording)
    try:
        return parse_document(text, file, wording, watch)
    except InputError as fault:
        if wording is TOPOLOGY and _DUMP.search(text[:_HEAD]):
            advice = f"if a tool printed it, give it to `colsynth topology import {quote(file)}`"
            raise InputError(replace(fault.diagnostic, help=advice)) from None
        raise


def parse_document(
    text: str, file: str, wording: Wording = TOPOLOGY, watch: Watch = silent
) -> Document:
    """Return the data of a YAML text; `file` is what diagnostics call it."""
    if strange := yaml.reader.Reader.NON_PRINTABLE.search(text):
        before = text[: strange.start()]
        note = f"character U+{ord(strange[0]):04X} is no text"
        raise _not_text(file, before, note, wording.instead)
    reader = _Reader(text, file, wording, watch)
    try:
        data = reader.read()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(file, error, text) from None
    finally:
        reader.close()
    return Document(file, data, reader.values, reader.keys, reader.quotes)


_TOO_DEEP = "the YAML is nested too deeply"

_SHAPES = (
    (yaml.ScalarEvent, "a single value"),
    (yaml.SequenceStartEvent, "a list"),
    (yaml.AliasEvent, "an alias"),
)


def _decoded(raw: bytes, file: str, wording: Wording) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig")
        note = f"byte 0x{raw[error.start]:02X} is no UTF-8"
        raise _not_text(file, before, note, wording.instead) from None


def _not_text(file: str, before: str, note: str, advice: str) -> InputError:
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return InputError(
        Diagnostic(
            "CS102",
            "not a YAML file: it holds binary data",
            Span(file, line, column),
            (note,),
            advice,
        )
    )


def _is_indenting_tab(text: str, line: int, column: int) -> bool:
    """Whether a tab is at this place, with nothing but blanks before it in the line."""
    start = "".join(text.splitlines()[line : line + 1])[: column + 1]
    return start.endswith("\t") and not start.strip()


def _syntax_error(file: str, error: yaml.MarkedYAMLError, text: str) -> InputError:
    mark = error.problem_mark or error.context_mark
    span = Span(file) if mark is None else Span(file, mark.line + 1, mark.column + 1)
    notes = [words for words in (error.problem, error.context) if words]
    if mark is not None and _is_indenting_tab(text, mark.line, mark.column):
        advice = "replace each tab at the beginning of a line by spaces"
        return InputError(Diagnostic("CS103", "YAML is not indented with tabs", span, help=advice))
    # Newer versions of libyaml have a limit of their own, and may meet it before this module does.
    is_deep = "nesting depth" in (error.problem or "")
    phrase = _TOO_DEEP if is_deep else "the file is not valid YAML"
    return InputError(Diagnostic("CS103", phrase, span, tuple(notes)))


class _Reader:
    """Turns YAML events into plain data and notes their places.

    PyYAML would compose the data itself, but recursively: a file of brackets crashes it.
    """

    def __init__(self, text: str, file: str, wording: Wording, watch: Watch) -> None:
        self.file = file
        self.wording = wording
        self.values: dict[Path_, Mark] = {}
        self.keys: dict[Path_, Mark] = {}
        self.quotes: dict[Path_, int | None] = {}
        self._loader = _LOADER(text)
        self._watch, self._lines = watch, text.count("\n")

    def close(self) -> None:
        self._loader.dispose()

    def read(self) -> dict[str, Any]:
        """Return the mapping that is the whole file."""
        self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, yaml.DocumentStartEvent):
            event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            found = "the file is empty" if isinstance(event, yaml.StreamEndEvent) else "found "
            found += next((word for kind, word in _SHAPES if isinstance(event, kind)), "")
            raise self._error(
                "CS108",
                f"expected {self.wording.shape}",
                event,
                found,
                self.wording.example,
            )
        data: dict[str, Any] = self._value(event, ())
        self._next()  # the end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error("CS103", f"a {self.wording.file} holds one YAML document", event)
        return data

    def _next(self) -> Any:
        return self._loader.get_event()

    def _value(self, event: Any, path: Path_) -> Any:
        self.values[path] = _mark(event)
        if len(self.values) > MAX_VALUES:
            note = f"the limit is {MAX_VALUES} values"
            raise self._error("CS125", f"the {self.wording.file} is too large", event, note)
        if len(self.values) % _OFTEN == 0:
            self._watch(f"line of {self.file}", event.start_mark.line, self._lines)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            # A handful of aliases can spell out gigabytes, and one place would have two meanings.
            raise self._error(
                "CS105",
                "anchors and aliases are not part of the format",
                event,
                hint="declare a parameter and use it as $NAME",
            )
        if isinstance(event, yaml.ScalarEvent):
            if more := _columns_beyond(event):
                # Two quotes, unless there are escapes or line breaks.
                self.quotes[path] = 1 if more == 2 else None
            return self._scalar(event)
        if len(path) == _MAX_DEPTH:
            raise self._error("CS103", _TOO_DEEP, event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        return self._sequence(path)

    def _sequence(self, path: Path_) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path_) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else None
            if not isinstance(key, str):
                raise self._error("CS108", "expected a word as key", event)
            if key in data:
                line, column = self.keys[*path, key]
                first = f"first given at line {line}, column {column}"
                raise self._error("CS104", f"key {key!r} is given twice", event, first)
            self.keys[*path, key] = _mark(event)
            data[key] = self._value(self._next(), (*path, key))
        return data

    def _scalar(self, event: Any) -> Any:
        if event.tag not in (None, "!"):
            note = "expected text, a number or true/false, without a tag"
            raise self._error("CS108", "not a plain value", event, note)
        is_plain, _ = event.implicit
        if not is_plain:
            return event.value
        try:
            return plain_scalar(event.value)
        except ValueError as fault:
            hint = "put it in quotes if it is text"
            raise self._error("CS108", "not a plain value", event, str(fault), hint) from None

    def _error(
        self, code: str, phrase: str, event: Any, note: str | None = None, hint: str | None = None
    ) -> InputError:
        notes = () if note is None else (note,)
        return InputError(Diagnostic(code, phrase, Span(self.file, *_mark(event)), notes, hint))


def _columns_beyond(event: Any) -> int:
    """Return how many columns a scalar takes beyond its text; -1 for several lines."""
    if event.start_mark.line != event.end_mark.line:
        return -1
    return int(event.end_mark.column - event.start_mark.column - len(event.value))


def _mark(event: Any) -> Mark:
    return event.start_mark.line + 1, event.start_mark.column + 1
