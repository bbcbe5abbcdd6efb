"""Texts of graphs: read into a term, and built.

::

    graph    = name ":" arguments                torus:4x4, circulant:16,3,4
             | name [sign number] "(" graph {"," graph} ")"    line^3(circulant:16,3,4)

A comma before a letter begins the next graph; any other belongs to the arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.topology.builder import MAX_LINKS, MAX_NODES
from colsynth.topology.graphs.atoms import ATOMS
from colsynth.topology.graphs.digraph import Digraph
from colsynth.topology.graphs.examples import EXPANSIONS, GENERATORS
from colsynth.topology.graphs.operators import MOST_NUMBER, OPERATORS

_NAME = re.compile(r"[a-z][a-z-]*")
_NUMBER = re.compile(r"([:^])([0-9]{1,9})(?=\()")
_ARGUMENTS = re.compile(r":((?:(?!,[ ]*[a-zA-Z])[^()])*)")
_LONG = re.compile(r"[1-9][0-9]{9}")
_DIGITS = re.compile(r"[0-9]+")
_DEEPEST = 24


@dataclass(frozen=True, slots=True)
class Term:
    """A generator with its arguments, or an expansion of terms.

    Parameters
    ----------
    name : str
    text : str
        Arguments of a generator.
    number : int
        Of an expansion; 1 where it has none.
    parts : tuple of Term
        Graphs that an expansion takes.
    column : int
        Place in the whole text, from 1.
    """

    name: str
    text: str = ""
    number: int = 1
    parts: tuple[Term, ...] = ()
    column: int = 1

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.name}:{_DIGITS.sub(lambda found: str(int(found[0])), self.text)}"
        sign = OPERATORS[self.name].number
        count = f"{sign}{self.number}" if sign and (self.number > 1 or sign == ":") else ""
        return f"{self.name}{count}({','.join(map(str, self.parts))})"


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, spec: str) -> None:
        self.spec = spec

    def whole(self) -> Term:
        term, end = self.term(0, 0)
        if end < len(self.spec):
            raise self.error(end, "the text goes on after the graph is complete")
        return term

    def term(self, at: int, depth: int) -> tuple[Term, int]:
        found = _NAME.match(self.spec, at)
        name = found[0] if found else ""
        if name not in GENERATORS and name not in EXPANSIONS:
            word = re.split(r"[:(^,)]", self.spec[at:])[0]
            hint = did_you_mean(word, (*GENERATORS, *EXPANSIONS))
            raise self.error(at, f"unknown generator {word!r}", hint)
        end = at + len(name)
        return self.atom(name, at, end) if name in ATOMS else self.operator(name, at, end, depth)

    def atom(self, name: str, at: int, end: int) -> tuple[Term, int]:
        found = _ARGUMENTS.match(self.spec, end)
        text = found[1].strip() if found else ""
        if _LONG.search(text):
            raise _too_large(f"{name}:{text}", self.spec, at + 1)
        if not found or not re.fullmatch(ATOMS[name].form, text, re.ASCII):
            raise self.error(at, note=f"expected a text such as {GENERATORS[name]!r}")
        return Term(name, text, column=at + 1), found.end()

    def operator(self, name: str, at: int, end: int, depth: int) -> tuple[Term, int]:
        known = OPERATORS[name]
        found = _NUMBER.match(self.spec, end)
        signs = found[1] if found else ""
        optional = known.number == "^"
        if (signs != known.number and not (optional and not signs)) or depth == _DEEPEST:
            raise self.error(at, note=f"expected a text such as {EXPANSIONS[name]!r}")
        number = int(found[2]) if found else 1
        if not 1 <= number <= MOST_NUMBER:
            raise self.error(at, f"the number of {name} must be 1 to {MOST_NUMBER}")
        end = found.end() if found else end
        parts: list[Term] = []
        for place in range(known.parts):
            if self.spec[end : end + 1] != "(,"[place > 0]:
                raise self.error(end, note=f"expected a text such as {EXPANSIONS[name]!r}")
            start = end + 1 + (len(self.spec[end + 1 :]) - len(self.spec[end + 1 :].lstrip(" ")))
            part, end = self.term(start, depth + 1)
            parts.append(part)
        if self.spec[end : end + 1] != ")":
            raise self.error(end, f"expected the closing parenthesis of {name!r}")
        return Term(name, "", number, tuple(parts), at + 1), end + 1

    def error(
        self, at: int, phrase: str | None = None, hint: str | None = None, note: str | None = None
    ) -> InputError:
        said = phrase or f"cannot read the generator {self.spec!r}"
        notes = () if note is None else (note,)
        return InputError(Diagnostic("CS121", said, _span(self.spec, at + 1), notes, hint))


def _span(spec: str, column: int) -> Span | None:
    """Return the place in an expression; a plain generator needs none."""
    return Span(spec, 1, column) if "(" in spec else None


def read_term(spec: str) -> Term:
    """Return the term that a text means.

    Raises
    ------
    InputError
        CS121 with the column, CS125 for a graph that is too large.
    """
    term = _Reader(spec).whole()
    _size(term, spec)
    return term


def _size(term: Term, spec: str) -> tuple[int, int]:
    """Return about how many nodes and arcs a term has; refuse too many before any is made."""
    try:
        if term.parts:
            inner = [_size(part, spec) for part in term.parts]
            size = OPERATORS[term.name].size(term.number, inner)
        else:
            size = ATOMS[term.name].size(term.text)
    except ValueError as fault:
        raise _wrong(term, spec, fault) from None
    if size[0] > MAX_NODES or size[1] > MAX_LINKS:
        raise _too_large(str(term), spec, term.column)
    return size


def _too_large(text: str, spec: str, column: int) -> InputError:
    limits = f"at most {MAX_NODES} GPUs and {MAX_LINKS} links"
    return InputError(Diagnostic("CS125", f"{text!r} is too large", _span(spec, column), (limits,)))


def _wrong(term: Term, spec: str, fault: ValueError) -> InputError:
    phrase = f"cannot read the generator {str(term)!r}"
    return InputError(Diagnostic("CS121", phrase, _span(spec, term.column), (str(fault),)))


def build(term: Term) -> Digraph:
    """Return the graph of a term, with its self-loops and parallel arcs."""
    if term.parts:
        return OPERATORS[term.name].make(term.number, [build(part) for part in term.parts])
    return ATOMS[term.name].make(term.text)
