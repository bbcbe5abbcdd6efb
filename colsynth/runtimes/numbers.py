"""Numbers as the runtimes read them: C's ``strtol`` with base 0, then cut to 32 bits."""

from __future__ import annotations

import re

_STRTOL = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)")
_LONGEST = 40
"""Digits that surely exceed 64 bits; further ones change nothing."""


def is_plain(text: str) -> bool:
    """Whether a decimal reader and ``strtol`` agree on all of `text`."""
    return _PLAIN.fullmatch(text) is not None


def read_int(text: str, bits: int = 32) -> int:
    """Return the value the runtime takes; what is not a number is 0.

    Parameters
    ----------
    text : str
    bits : int
        Width of the variable the value ends up in; 32 cuts, 64 saturates as ``strtoll``.
    """
    match = _STRTOL.match(text)
    if match is None:
        return 0
    sign, digits = match.groups()
    if len(digits) > _LONGEST:
        digits = digits[:_LONGEST]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    value = int(digits, base) * (-1 if sign == "-" else 1)
    value = max(-(2**63), min(value, 2**63 - 1))
    if bits == 64:
        return value
    return (value + 2**31) % 2**32 - 2**31
