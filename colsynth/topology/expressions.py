"""Arithmetic of topology files: numbers, quantities with units, parameters, ``+ - * / ( )``.

``nic * nics / oversubscription`` is exact: numbers are fractions, and every value knows its
powers of bandwidth and time, so that a bandwidth is never added to a latency.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.units import BANDWIDTH_FORMS, DURATION_FORMS, parse_bandwidth, parse_duration

Place = Callable[[int], Span]
"""Where a character of the text stands, counted from 0."""

MOST_CHARACTERS = 200
"""Longer texts are no formula that a person wrote."""

_MOST_DEPTH = 20
_MOST_DIGITS = 10**60
"""Numerators and denominators end here: products of products would fill the memory."""

_DIGITS = r"\d{1,30}"
_NUMBER = rf"{_DIGITS}(?:\.{_DIGITS})?(?:[eE][+-]?\d{{1,2}}(?!\d))?"
_UNIT = r"(?:(?:[KMGT]i|[kKMGT])?(?:B|b|bit)(?:/s|ps)|[nuµm]?s)(?!\w)"
_TOKEN = re.compile(
    rf"(?P<quantity>(?:{_DIGITS}/{_DIGITS}|{_NUMBER})\s*{_UNIT})"
    rf"|(?P<number>{_NUMBER})|(?P<name>\$?[^\W\d][\w-]*)|(?P<sign>[-+*/()])",
    re.ASCII,
)
_NAME = re.compile(r"[^\W\d][\w-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact value in bytes and seconds, with its powers of bandwidth and time."""

    value: Fraction
    bandwidth: int = 0
    time: int = 0

    @property
    def kind(self) -> str:
        """``"number"``, ``"bandwidth"`` or ``"latency"``; in words what is none of them."""
        return _KINDS.get(self.powers, "product of units")

    @property
    def powers(self) -> tuple[int, int]:
        """Its powers of bandwidth and time."""
        return self.bandwidth, self.time


_KINDS = {(0, 0): "number", (1, 0): "bandwidth", (0, 1): "latency"}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def is_name(text: str) -> bool:
    """Whether a text can be the name of a parameter."""
    return _NAME.fullmatch(text) is not None


def names_in(text: str) -> set[str]:
    """Return the names that an expression uses; what cannot be read has none."""
    return {found["name"].lstrip("$") for found in _TOKEN.finditer(text) if found["name"]}


def evaluate(
    text: str,
    values: Mapping[str, Amount],
    place: Place,
    unknown: Callable[[str, Span], InputError],
) -> Amount:
    """Return the value of an expression.

    Parameters
    ----------
    text : str
    values : mapping
        The parameters that it may use.
    place : callable
    unknown : callable
        Makes the error for a name that is not among them.

    Raises
    ------
    InputError
        CS138: it cannot be read or has no value. CS110: a unit is missing or unknown.
    """
    if len(text) > MOST_CHARACTERS:
        raise _error(f"an expression has at most {MOST_CHARACTERS} characters", place(0))
    parser = _Parser(text, _tokens(text, place), values, place, unknown)
    return parser.whole()


def _tokens(text: str, place: Place) -> list[_Token]:
    found = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error(f"{text[at]!r} is no part of an expression", place(at))
        found.append(_Token(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    """Reads sums of products, from the left."""

    def __init__(
        self,
        text: str,
        tokens: list[_Token],
        values: Mapping[str, Amount],
        place: Place,
        unknown: Callable[[str, Span], InputError],
    ) -> None:
        self.text, self.tokens, self.values = text, tokens, values
        self.place, self.unknown = place, unknown
        self.next = 0
        self.depth = 0

    def whole(self) -> Amount:
        value = self._sum()
        self._expect("end")
        return value

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        return token

    def _expect(self, text: str) -> None:
        token = self._take()
        if text not in (token.kind, token.text):
            wanted = "an operator" if text == "end" else repr(text)
            found = repr(token.text) if token.text else "the end"
            raise _error(f"expected {wanted}, found {found}", self.place(token.at))

    def _sum(self) -> Amount:
        value = self._product()
        while self.tokens[self.next].text in ("+", "-"):
            sign = self._take()
            other = self._product()
            if value.powers != other.powers:
                verb = "add" if sign.text == "+" else "subtract"
                phrase = f"cannot {verb} a {value.kind} and a {other.kind}"
                raise _error(phrase, self.place(sign.at))
            change = other.value if sign.text == "+" else -other.value
            value = self._kept(Amount(value.value + change, value.bandwidth, value.time), sign)
        return value

    def _product(self) -> Amount:
        value = self._operand()
        while self.tokens[self.next].text in ("*", "/"):
            sign = self._take()
            other = self._operand()
            if sign.text == "/" and not other.value:
                raise _error("division by zero", self.place(sign.at))
            turn = 1 if sign.text == "*" else -1
            product = Amount(
                value.value * other.value**turn,
                value.bandwidth + turn * other.bandwidth,
                value.time + turn * other.time,
            )
            value = self._kept(product, sign)
        return value

    def _operand(self) -> Amount:
        token = self._take()
        if token.text == "(":
            self.depth += 1
            if self.depth > _MOST_DEPTH:
                phrase = f"more than {_MOST_DEPTH} parentheses in each other"
                raise _error(phrase, self.place(token.at))
            value = self._sum()
            self.depth -= 1
            self._expect(")")
            return value
        if token.kind == "name":
            name = token.text.lstrip("$")
            if name not in self.values:
                raise self.unknown(name, self.place(token.at))
            return self.values[name]
        if token.kind == "quantity":
            return self._kept(self._quantity(token), token)
        if token.kind == "number":
            if self.tokens[self.next].kind in ("name", "number", "quantity"):
                raise self._no_unit(token)
            return self._kept(Amount(Fraction(token.text)), token)
        found = repr(token.text) if token.text else "the end"
        phrase = f"expected a number, a quantity or a parameter, found {found}"
        raise _error(phrase, self.place(token.at))

    def _quantity(self, token: _Token) -> Amount:
        try:
            if token.text.endswith(("/s", "ps")):
                return Amount(parse_bandwidth(token.text), bandwidth=1)
            return Amount(parse_duration(token.text), time=1)
        except ValueError:
            raise self._no_unit(token) from None

    def _no_unit(self, token: _Token) -> InputError:
        phrase = f"{self.text!r} is no quantity with a unit"
        note = f"expected {BANDWIDTH_FORMS}, or {DURATION_FORMS}"
        return InputError(Diagnostic("CS110", phrase, self.place(token.at), (note,)))

    def _kept(self, amount: Amount, token: _Token) -> Amount:
        """Refuse numbers that grow without end."""
        if max(abs(amount.value.numerator), amount.value.denominator) > _MOST_DIGITS:
            raise _error("the numbers become too large", self.place(token.at))
        return amount


def _error(phrase: str, span: Span) -> InputError:
    return InputError(
        Diagnostic(
            "CS138",
            phrase,
            span,
            ("an expression joins numbers, quantities and parameters with + - * / ( )",),
        )
    )
