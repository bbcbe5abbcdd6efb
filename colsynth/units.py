"""Exact quantities: the only place where units are parsed or printed.

Bandwidth is a Fraction in bytes per second, a duration a Fraction in seconds,
a size an int in bytes. GB is 10**9 bytes, GiB 2**30, Gb a gigabit; the bare
letters K, M and G of sizes are the powers of 1024 that nccl-tests uses.
"""

from __future__ import annotations

import re
from fractions import Fraction

_PREFIX = {"": 1, "K": 10**3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "µs": 10**6, "ns": 10**9}
_NCCL_TESTS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# Digits end somewhere, since a handful of characters can stand for more of them than memory holds.
_DIGITS = "[0-9]{1,100}"
_NUMBER = (
    rf"(?P<number>{_DIGITS}(?:\.{_DIGITS})?(?:[eE][+-]?[0-9]{{1,2}})?|{_DIGITS}/[1-9][0-9]{{0,99}})"
)
_BANDWIDTH = re.compile(_NUMBER + r"\s*(?P<prefix>[KMGT]i|[kKMGT]?)(?P<unit>B|b|bit)(?:/s|ps)")
_DURATION = re.compile(_NUMBER + r"\s*(?P<unit>ns|us|µs|ms|s)")
_SIZE = re.compile(_NUMBER + r"\s*(?P<prefix>[KMGT]i|[kKMGT]?)(?P<unit>B?)")
_PERCENT = re.compile(_NUMBER + r"\s*%")
_FRACTION = re.compile(r"-?[0-9]{1,2000}(?:/[1-9][0-9]{0,1999})?")

MOST_BYTES = 2**60
"""Of a size: an exbibyte. No message is as large, and sums of sizes still fit 64 bits."""

BANDWIDTH_FORMS = '"25 GB/s", "200 Gb/s" or "50 GiB/s"'
DURATION_FORMS = '"0.7 us", "700 ns" or "0 s"'
SIZE_FORMS = '"64MB" (10**6), "64MiB" or "64M" (2**20), "4096"'
PERCENT_FORMS = '"50%", "12.5%" or "200/3%"'


def parse_bandwidth(text: str) -> Fraction:
    """Return bytes per second; raise ValueError with the accepted forms."""
    match = _BANDWIDTH.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a bandwidth such as {BANDWIDTH_FORMS}")
    prefix = match["prefix"]
    scale = _BINARY[prefix] if prefix in _BINARY else _PREFIX[prefix]
    bits = 1 if match["unit"] == "B" else 8
    return Fraction(match["number"]) * scale / bits


def parse_duration(text: str) -> Fraction:
    """Return seconds; raise ValueError with the accepted forms."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a duration such as {DURATION_FORMS}")
    return Fraction(match["number"]) / _SECONDS[match["unit"]]


def parse_size(text: str) -> int:
    """Return a whole number of bytes; raise ValueError with the accepted forms."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a size such as {SIZE_FORMS}")
    prefix = match["prefix"]
    if prefix in _BINARY:
        scale = _BINARY[prefix]
    elif prefix and not match["unit"]:
        scale = _NCCL_TESTS[prefix.upper()]
    else:
        scale = _PREFIX[prefix]
    value = Fraction(match["number"]) * scale
    if value > MOST_BYTES:
        raise ValueError(f"a size is at most {format_size(MOST_BYTES)}")
    if value.denominator != 1:
        raise ValueError("expected a whole number of bytes")
    return int(value)


def parse_percent(text: str) -> Fraction:
    """Return a share, 1/2 for ``"50%"``; raise ValueError with the accepted forms."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a percentage such as {PERCENT_FORMS}")
    return Fraction(match["number"]) / 100


def parse_fraction(text: object) -> Fraction:
    """Return what ``str`` made of a Fraction: ``"-7/3"``; raise ValueError for anything else."""
    if not isinstance(text, str) or _FRACTION.fullmatch(text) is None:
        raise ValueError(f"expected a fraction such as 7/3, found {str(text)[:40]!r}")
    return Fraction(text)


def spell_percent(share: Fraction) -> str:
    """Return a share as a percentage that `parse_percent` reads back exactly."""
    exact = _terminating(share * 100)
    return f"{exact if exact is not None else share * 100}%"


def percent(share: Fraction) -> float:
    """Return a share in percent, rounded to six decimals, for tables and JSON."""
    return round(float(share * 100), 6)


def gb_per_s(bandwidth: Fraction) -> float:
    """Return a bandwidth in GB/s, rounded to six decimals, for tables and JSON."""
    return round(float(bandwidth / 10**9), 6)


def exact_gb_per_s(bandwidth: Fraction) -> str:
    """Return a bandwidth in GB/s as an exact fraction: ``"1040/3"`` or ``"25"``."""
    return str(bandwidth / 10**9)


def format_bandwidth(bandwidth: Fraction) -> str:
    """Return a bandwidth for people, such as ``"346.667 GB/s"``."""
    return f"{float(bandwidth / 10**9):.6g} GB/s"


def spell_bandwidth(bandwidth: Fraction) -> str:
    """Return a bandwidth that `parse_bandwidth` reads back exactly."""
    return f"{exact_gb_per_s(bandwidth)} GB/s"


def neat_bandwidth(bandwidth: Fraction) -> str:
    """Return a bandwidth as `spell_bandwidth` does, in decimals where they end: ``"31.5 GB/s"``."""
    exact = _terminating(bandwidth / 10**9)
    return spell_bandwidth(bandwidth) if exact is None else f"{exact} GB/s"


def spell_duration(duration: Fraction) -> str:
    """Return a duration that `parse_duration` reads back exactly."""
    micro = duration * 10**6
    exact = _terminating(micro)
    return f"{exact if exact is not None else micro} us"


def microseconds(duration: Fraction) -> float:
    """Return a duration in microseconds, rounded to nine decimals, for tables and JSON."""
    return round(float(duration * 10**6), 9)


def format_duration(duration: Fraction) -> str:
    """Return a duration for people, such as ``"12.345 us"`` or ``"3.2 ms"``."""
    scales = (("s", 1), ("ms", 10**3), ("us", 10**6))
    unit, scale = next((item for item in scales if duration * item[1] >= 1), scales[-1])
    return f"{float(duration * scale):.6g} {unit}"


def format_size(size: int) -> str:
    """Return a size for people, exactly, in the unit that makes it shortest."""
    scales = {f"{prefix}B": scale for prefix, scale in _BINARY.items()}
    scales |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1}
    fitting = [f"{size // scale} {unit}" for unit, scale in scales.items() if size % scale == 0]
    return min(fitting, key=len) if size else "0 B"


def format_most(size: int) -> str:
    """Return a largest size for people, exactly: ``"up to 1 KiB"``, or ``"below 2 GiB"``."""
    return min(f"up to {format_size(size)}", f"below {format_size(size + 1)}", key=len)


def _terminating(value: Fraction) -> str | None:
    """Return a short decimal for `value`, or None when it does not terminate."""
    for digits in range(7):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            return f"{int(scaled) / 10**digits:.{digits}f}" if digits else str(int(scaled))
    return None


def plural(number: int, word: str) -> str:
    """Return ``"1 link"`` or ``"2 links"``."""
    return f"{number} {word}{'' if number == 1 else 's'}"
