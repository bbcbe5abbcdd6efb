"""Parameters of topology files, after ``--set``, and the expressions that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.topology.expressions import Amount, Place, evaluate, is_name, names_in
from colsynth.topology.quantities import no_unit, not_positive
from colsynth.units import BANDWIDTH_FORMS, DURATION_FORMS

Value = int | float | str
"""What a file gives for a parameter or a count: a number, a quantity or an expression."""

_MOST_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class Parameters:
    """The declared parameters of a compact file, after ``--set``.

    Parameters
    ----------
    values : mapping
    changed : tuple of str
        ``NAME=VALUE`` of those that differ from the file, sorted.
    """

    values: Mapping[str, Amount]
    changed: tuple[str, ...]

    def count(self, value: Value, place: Place) -> int:
        """Return a whole number from 1 on, written as a number or an expression."""
        amount = self._read("number", value, place)
        if amount.denominator != 1 or not 1 <= amount <= _MOST_COUNT:
            was = "" if str(amount) == str(value) else f" ({amount})"
            phrase = f"count {str(value)!r}{was} is not a whole number from 1 to {_MOST_COUNT}"
            raise InputError(Diagnostic("CS123", phrase, place(0)))
        return int(amount)

    def bandwidth(self, text: str, place: Place) -> Fraction:
        """Return a bandwidth written as a quantity or an expression, above zero."""
        amount = self._read("bandwidth", text, place)
        if amount <= 0:
            raise not_positive(place(0))
        return amount

    def latency(self, text: str, place: Place) -> Fraction:
        """Return a latency written as a quantity or an expression, zero or more."""
        amount = self._read("latency", text, place)
        if amount < 0:
            raise InputError(Diagnostic("CS123", f"latency {text!r} is below zero", place(0)))
        return amount

    def _read(self, kind: str, value: Value, place: Place) -> Fraction:
        text = str(value)
        amount = evaluate(text, self.values, place, _unknown(self.values))
        if amount.kind != kind:
            raise _wrong_kind(text, amount, kind, place(0))
        return amount.value


def set_parameters(
    declared: Mapping[str, Value],
    places: Mapping[str, Place],
    settings: Mapping[str, str],
) -> Parameters:
    """Return the parameters of a file with the user's settings applied.

    Raises
    ------
    InputError
        A setting names no parameter, or its value is of another kind than the default.
    """
    for name in settings:
        if name not in declared:
            raise _unknown(declared)(name, _option(name, settings)(0))
    values: dict[str, Amount] = {}
    changed: list[str] = []
    for name, default in declared.items():
        amount = _value(name, str(default), values, places[name], declared)
        if name in settings:
            place = _option(name, settings)
            given = _value(name, settings[name], values, place, declared)
            if given.kind != amount.kind:
                raise _wrong_kind(settings[name], given, amount.kind, place(0))
            if given != amount:
                changed.append(f"{name}={settings[name]}")
            amount = given
        values[name] = amount
    return Parameters(values, tuple(sorted(changed)))


def refuse_unused(
    declared: Mapping[str, Value], keys: Mapping[str, Span], uses: Iterable[Value]
) -> None:
    """Refuse a parameter on which no count, bandwidth or latency depends (CS139)."""
    needed = {name for text in uses for name in names_in(str(text))}
    for name in reversed(list(declared)):  # a parameter may use those above it
        if name in needed:
            needed |= names_in(str(declared[name]))
    for name in declared:
        if name not in needed:
            phrase = f"nothing uses parameter {name!r}"
            note = "changing it would change nothing but the name of the topology"
            advice = f"use ${name} in a bandwidth, a latency or a count, or remove it"
            raise InputError(Diagnostic("CS139", phrase, keys[name], (note,), advice))


def _value(
    name: str, text: str, values: Mapping[str, Amount], place: Place, declared: Mapping[str, Value]
) -> Amount:
    """Return the value of a parameter; those declared above it are known."""
    if not is_name(name):
        phrase = f"parameter name {name!r} is no word of letters, digits, - and _"
        raise InputError(Diagnostic("CS108", phrase, place(0)))
    amount = evaluate(text, values, place, _above(name, values, declared))
    if amount.kind == "bandwidth" and amount.value <= 0:
        raise not_positive(place(0))
    if amount.value < 0 or (amount.kind == "number" and not amount.value):
        phrase = f"{text!r} is no value for parameter {name!r}"
        note = f"expected a number above zero, {BANDWIDTH_FORMS}, or {DURATION_FORMS}"
        raise InputError(Diagnostic("CS123", phrase, place(0), (note,)))
    return amount


def _above(
    name: str, values: Mapping[str, Amount], declared: Mapping[str, Value]
) -> Callable[[str, Span], InputError]:
    """Return what makes the error for a name that the value of a parameter cannot use."""

    def error(used: str, span: Span) -> InputError:
        if used in declared:
            phrase = f"parameter {used!r} is not declared above {name!r}"
            advice = "a parameter may use those declared above it"
            return InputError(Diagnostic("CS122", phrase, span, help=advice))
        note = f"expected a number, {BANDWIDTH_FORMS}, {DURATION_FORMS}, or an expression"
        diagnostic = _unknown(values)(used, span).diagnostic
        return InputError(replace(diagnostic, notes=(note,)))

    return error


def _wrong_kind(text: str, amount: Amount, kind: str, span: Span) -> InputError:
    if amount.kind == "number" and kind != "number" and not names_in(text):
        return no_unit(kind, text, span)
    phrase = f"{text!r} is a {amount.kind}, expected a {kind}"
    return InputError(Diagnostic("CS123", phrase, span))


def _unknown(known: Iterable[str]) -> Callable[[str, Span], InputError]:
    names = list(known)

    def error(name: str, span: Span) -> InputError:
        hint = did_you_mean(name, names) if names else "declare it under 'parameters'"
        if "-" in name:
            hint += "; write blanks around a minus"
        return InputError(Diagnostic("CS122", f"unknown parameter {name!r}", span, help=hint))

    return error


def _option(name: str, settings: Mapping[str, str]) -> Place:
    span = Span(f"--set {name}={settings[name]}")
    return lambda _: span
