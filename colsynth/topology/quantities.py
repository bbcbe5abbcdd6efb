"""Bandwidths and latencies of topology files and options, and parameters that stand for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.units import BANDWIDTH_FORMS, DURATION_FORMS, parse_bandwidth, parse_duration

_HUGE = re.compile(r"[eE][+-]?\d{3}")


def read_bandwidth(text: str, span: Span | None) -> Fraction:
    """Return bytes per second, above zero; raise InputError at `span`."""
    try:
        bandwidth = parse_bandwidth(_sane(text))
    except (ValueError, ZeroDivisionError):
        raise no_unit("bandwidth", text, span) from None
    if bandwidth <= 0:
        phrase = "the bandwidth of a link must be above zero"
        hint = "leave the link out if it carries nothing"
        raise InputError(Diagnostic("CS111", phrase, span, help=hint))
    return bandwidth


def read_latency(text: str, span: Span | None) -> Fraction:
    """Return seconds; raise InputError at `span`."""
    try:
        return parse_duration(_sane(text))
    except (ValueError, ZeroDivisionError):
        raise no_unit("latency", text, span) from None


def read_count(text: str, span: Span | None) -> int:
    """Return a whole number, one or more; raise InputError at `span`."""
    if not text.isdecimal() or not text.isascii() or len(text) > 9 or int(text) < 1:
        phrase = f"count {text!r} is not a whole number from 1 on"
        raise InputError(Diagnostic("CS123", phrase, span))
    return int(text)


def _sane(text: str) -> str:
    """Refuse exponents that would fill the memory with digits."""
    if _HUGE.search(text):
        raise ValueError
    return text


def no_unit(what: str, value: object, span: Span | None) -> InputError:
    """Return the error for a bandwidth or latency that is no quantity."""
    forms = BANDWIDTH_FORMS if what == "bandwidth" else DURATION_FORMS
    phrase = f"{value!r} is no {what} with a unit"
    return InputError(Diagnostic("CS110", phrase, span, (f"expected {forms}",)))


_READERS = {"bandwidth": read_bandwidth, "latency": read_latency, "count": read_count}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The declared parameters of a compact file, after ``--set``.

    Parameters
    ----------
    values : dict
        By name: what it is ("count", "bandwidth", "latency") and its text.
    changed : tuple of str
        ``NAME=VALUE`` of those that differ from the file, sorted.
    """

    values: Mapping[str, tuple[str, str]]
    changed: tuple[str, ...]

    def count(self, value: int | str, span: Span) -> int:
        """Return a count written as a number or as ``$NAME``."""
        return read_count(self._text("count", str(value), span), span)

    def bandwidth(self, text: str, span: Span) -> Fraction:
        """Return a bandwidth written as a quantity or as ``$NAME``."""
        return read_bandwidth(self._text("bandwidth", text, span), span)

    def latency(self, text: str, span: Span) -> Fraction:
        """Return a latency written as a quantity or as ``$NAME``."""
        return read_latency(self._text("latency", text, span), span)

    def _text(self, what: str, text: str, span: Span) -> str:
        if not text.startswith("$"):
            return text
        name = text[1:]
        if name not in self.values:
            raise _unknown(name, list(self.values), span)
        kind, found = self.values[name]
        if kind != what:
            phrase = f"parameter {name!r} is a {kind}, expected a {what}"
            raise InputError(Diagnostic("CS123", phrase, span))
        return found


def set_parameters(
    declared: Mapping[str, int | str],
    spans: Mapping[str, Span],
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
            raise _unknown(name, list(declared), Span(f"--set {name}={settings[name]}"))
    values: dict[str, tuple[str, str]] = {}
    changed: list[str] = []
    for name, default in declared.items():
        kind = _kind(name, default, spans[name])
        text = str(default)
        if name in settings:
            span = Span(f"--set {name}={settings[name]}")
            if _READERS[kind](settings[name], span) != _READERS[kind](text, spans[name]):
                changed.append(f"{name}={settings[name]}")
            text = settings[name]
        values[name] = (kind, text)
    return Parameters(values, tuple(sorted(changed)))


def _kind(name: str, default: int | str, span: Span) -> str:
    for kind, reader in _READERS.items():
        try:
            reader(str(default), span)
        except InputError as error:
            if error.diagnostic.code == "CS111":
                raise
            continue
        return kind
    raise InputError(
        Diagnostic(
            "CS123",
            f"the value of parameter {name!r} is no count, bandwidth or latency",
            span,
            (f"expected a whole number from 1 on, {BANDWIDTH_FORMS}, or {DURATION_FORMS}",),
        )
    )


def _unknown(name: str, declared: list[str], span: Span) -> InputError:
    hint = did_you_mean(name, declared) if declared else "this topology declares no parameters"
    return InputError(Diagnostic("CS122", f"unknown parameter {name!r}", span, help=hint))
