"""Plain scalars of YAML 1.2: what text without quotes means.

YAML 1.1, which PyYAML follows, also knows ``1:30`` (a number to the base 60), ``010`` (octal),
``1_000``, ``yes`` and dates. Here they are text, as YAML 1.2 has it and as JSON readers expect.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST = 40
"""Characters of a number; what is longer was meant as text, or to fill the memory."""


def plain_scalar(text: str) -> Scalar:
    """Return what a scalar without quotes and tag means.

    Raises
    ------
    ValueError
        It is a number that is too long, too large, or none (``.inf``, ``.nan``).
    """
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or text[0] not in "+-.0123456789":
        return text
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"{text} is no number to reckon with")
    whole = _WHOLE.fullmatch(text)
    if whole is None and _NUMBER.fullmatch(text) is None:
        return text
    if len(text) > _LONGEST:
        raise ValueError(f"a number has at most {_LONGEST} characters, this one {len(text)}")
    if whole is None:
        return _finite(text)
    if whole["decimal"] is not None:
        return int(text)
    return int(text[2:], 16 if whole["octal"] is None else 8)


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"{text} is too large")
    return value
