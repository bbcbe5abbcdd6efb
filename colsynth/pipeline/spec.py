"""Pipelines as text: ``pack-trees{trees=4},lower-forest,place-slots``.

::

    pipeline = pass { "," pass }
    pass     = word [ "{" [ option { "," option } ] "}" ]
    option   = word "=" value
    value    = bare | quoted        bare: letters, digits and _ . : / + -
                                    quoted: a JSON string

Spaces between tokens are allowed. Text becomes specs, and specs print back to the
same text without the spaces; which passes and options exist is not known here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError, Span

TEXT_NAME = "--passes"
"""What spans call the text of a pipeline."""

_TOKEN = re.compile(
    r"\s*(?:(?P<bare>[A-Za-z0-9_.:/+-]+)|(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<mark>[{},=]))"
)


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option as written: name, text of the value, whether quoted, column from 1."""

    name: str
    text: str
    quoted: bool = False
    column: int = 1

    def __str__(self) -> str:
        return f"{self.name}={json.dumps(self.text) if self.quoted else self.text}"


@dataclass(frozen=True, slots=True)
class PassSpec:
    """A pass as written: its name, its options in order, and its column from 1."""

    name: str
    options: tuple[OptionSpec, ...] = ()
    column: int = 1

    def __str__(self) -> str:
        inside = ",".join(str(option) for option in self.options)
        return f"{self.name}{{{inside}}}" if inside else self.name


def to_text(specs: tuple[PassSpec, ...]) -> str:
    """Return the pipeline as text."""
    return ",".join(str(spec) for spec in specs)


def parse(text: str) -> tuple[PassSpec, ...]:
    """Return the passes that `text` writes down.

    Raises
    ------
    InputError
        CS201, with the column, when the text does not follow the grammar.
    """
    return _Reader(text).pipeline()


class _Reader:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.advance()

    def advance(self) -> None:
        """Move to the next token; at the end of the text `kind` is ``"end"``."""
        match = _TOKEN.match(self.text, self.end)
        if match is not None and match.lastgroup is not None:
            self.kind, self.token = match.lastgroup, match[match.lastgroup]
            self.column = match.start(match.lastgroup) + 1
            self.end = match.end()
            return
        rest = self.text[self.end :].strip()
        self.kind, self.token = ("unknown", rest[:1]) if rest else ("end", "")
        self.column = len(self.text.rstrip()) + 1 if not rest else self.text.index(rest) + 1

    def pipeline(self) -> tuple[PassSpec, ...]:
        specs = [self.one_pass()]
        while self.takes_mark(","):
            specs.append(self.one_pass())
        if self.kind != "end":
            raise self.fault("',' or the end")
        return tuple(specs)

    def one_pass(self) -> PassSpec:
        column = self.column
        name = self.word("the name of a pass")
        options: list[OptionSpec] = []
        if self.takes_mark("{") and not self.takes_mark("}"):
            options.append(self.option())
            while self.takes_mark(","):
                options.append(self.option())
            if not self.takes_mark("}"):
                raise self.fault("',' or '}'")
        return PassSpec(name, tuple(options), column)

    def option(self) -> OptionSpec:
        column = self.column
        name = self.word("the name of an option")
        if not self.takes_mark("="):
            raise self.fault("'='")
        if self.kind == "quoted":
            return OptionSpec(name, self.string(), True, column)
        return OptionSpec(name, self.word("a value"), False, column)

    def string(self) -> str:
        try:
            value = json.loads(self.token)
        except ValueError:
            raise self.fault("a JSON string") from None
        self.advance()
        return str(value)

    def word(self, expected: str) -> str:
        if self.kind != "bare":
            raise self.fault(expected)
        word = self.token
        self.advance()
        return word

    def takes_mark(self, mark: str) -> bool:
        if self.kind != "mark" or self.token != mark:
            return False
        self.advance()
        return True

    def fault(self, expected: str) -> InputError:
        found = "the end of the text" if self.kind == "end" else repr(self.token)
        return InputError(
            Diagnostic(
                "CS201",
                f"expected {expected}, found {found}",
                Span(TEXT_NAME, 1, self.column),
                notes=(f"in the pipeline {self.text!r}",),
                help="write passes as name{option=value},name; 'colsynth passes' lists them",
            )
        )
