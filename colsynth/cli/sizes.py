"""Lists of message sizes: ``"1KB,1MB"`` and ``"1KB..4GB"``, in steps of two."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError
from colsynth.units import parse_size

_MOST = 200
"""Sizes of a list; each costs a simulation."""


def read_sizes(option: str, text: str) -> tuple[int, ...]:
    """Return the sizes of a list, ascending, each once.

    Parameters
    ----------
    option : str
        Option of the text, such as ``"--sizes"``.
    text : str
        Sizes and ranges, separated by commas. A range doubles from its first size, and its
        last size is always included.

    Raises
    ------
    InputError
        CS212: the text is not such a list, or a size is zero.
    """
    try:
        found = sorted({size for part in text.split(",") for size in _part(part)})
    except ValueError as fault:
        phrase = f"{option} cannot be {text!r}"
        advice = "write sizes such as 1KiB,1MiB or a range such as 1KiB..4GiB"
        raise InputError(Diagnostic("CS212", phrase, notes=(str(fault),), help=advice)) from None
    if len(found) > _MOST:
        raise InputError(Diagnostic("CS212", f"{option} names {len(found)} sizes, at most {_MOST}"))
    return tuple(found)


def _part(text: str) -> tuple[int, ...]:
    low, dots, high = text.partition("..")
    first = parse_size(low)
    last = parse_size(high) if dots else first
    if first < 1:
        raise ValueError("a message has one byte or more")
    if last < first:
        raise ValueError(f"no size lies in {text.strip()}")
    sizes = [first]
    while sizes[-1] * 2 < last:
        sizes.append(sizes[-1] * 2)
    return (*sizes, last)
