"""Bandwidths and latencies of topology files and options."""

from __future__ import annotations

from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.units import BANDWIDTH_FORMS, DURATION_FORMS, parse_bandwidth, parse_duration


def read_bandwidth(text: str, span: Span | None) -> Fraction:
    """Return bytes per second, above zero; raise InputError at `span`."""
    try:
        bandwidth = parse_bandwidth(text.removeprefix("-"))
    except ValueError:
        raise no_unit("bandwidth", text, span) from None
    if text.startswith("-") or bandwidth <= 0:
        raise not_positive(span)
    return bandwidth


def read_latency(text: str, span: Span | None) -> Fraction:
    """Return seconds; raise InputError at `span`."""
    try:
        return parse_duration(text)
    except ValueError:
        raise no_unit("latency", text, span) from None


def not_positive(span: Span | None) -> InputError:
    """Return the error for a bandwidth of zero or less."""
    phrase = "the bandwidth of a link must be above zero"
    hint = "leave the link out if it carries nothing"
    return InputError(Diagnostic("CS111", phrase, span, help=hint))


def no_unit(what: str, value: object, span: Span | None) -> InputError:
    """Return the error for a bandwidth or latency that is no quantity."""
    forms = BANDWIDTH_FORMS if what == "bandwidth" else DURATION_FORMS
    phrase = f"{value!r} is no {what} with a unit"
    return InputError(Diagnostic("CS110", phrase, span, (f"expected {forms}",)))
