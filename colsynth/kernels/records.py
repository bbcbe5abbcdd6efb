"""Text that repeats itself: records of the same words, with other numbers and names in between.

A record is K values between K + 1 pieces of text, the bytes ``text[ends[k]:ends[k + 1]]``. Names
are spelt in the same way by `names` and `name_ends`. Value k is one of the names ``choices[k]``, a
half-open range, counted from the first; where the range is empty, it is a decimal number. Bytes
are uint8, all else is int64. O(bytes). Twins: Python's formatting and patterns
(tests/kernels/test_records.py).
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit

_DIGITS = 20
"""Most characters of a number that is spelt."""
_SCANNED = 9
"""Most digits of a number that is read."""
_MINUS, _ZERO, _NINE = 45, 48, 57
_NEWLINE, _RETURN, _BLANK = 10, 13, 32


@njit(cache=True, nogil=True)
def spell(text, ends, names, name_ends, choices, values):
    """Return records of `values` (K, N) as bytes, and where each begins and the last ends."""
    kinds, many = values.shape
    longest = text.size + kinds * max(_DIGITS, names.size)
    found = np.empty(many * longest, np.uint8)
    begin = np.zeros(many + 1, np.int64)
    at = 0
    for n in range(many):
        for k in range(kinds):
            at = _copy(found, at, text, ends[k], ends[k + 1])
            if choices[k, 0] < choices[k, 1]:
                name = choices[k, 0] + values[k, n]
                at = _copy(found, at, names, name_ends[name], name_ends[name + 1])
            else:
                at = _number(found, at, values[k, n])
        at = _copy(found, at, text, ends[kinds], ends[kinds + 1])
        begin[n + 1] = at
    return found[:at].copy(), begin


@njit(cache=True, nogil=True)
def _copy(found, at, source, begin, end):
    for place in range(begin, end):
        found[at] = source[place]
        at += 1
    return at


@njit(cache=True, nogil=True)
def _number(found, at, value):
    left = value
    if value < 0:
        found[at] = _MINUS
        at += 1
        left = -value
    digits, power = 1, 1
    while left // power > 9:
        power *= 10
        digits += 1
    for _ in range(digits):
        found[at] = _ZERO + left // power % 10
        power //= 10
        at += 1
    return at


@njit(cache=True, nogil=True)
def scan(data, at, line, text, ends, names, name_ends, choices, values, places, row):
    """Read records from ``data[at:]`` on into columns of `values` (K, N), from `row` on.

    Blanks and ends of lines may precede a record. `places` (2, N) gets where it begins and its
    line, if `line` is that of `at`. Only numbers as `spell` writes them are read, of up to nine
    digits. Return the place behind the last record, its line, and the row behind it; there the
    text continues in another way, or `values` is full.
    """
    kinds, many = values.shape
    while row < many:
        here, lines = at, line
        while here < data.size and data[here] in (_BLANK, _NEWLINE, _RETURN):
            lines += data[here] == _NEWLINE
            here += 1
        places[0, row], places[1, row] = here, lines
        for k in range(kinds):
            here = _literal(data, here, text, ends[k], ends[k + 1])
            if here >= 0:
                here, values[k, row] = _value(data, here, names, name_ends, choices[k])
        here = _literal(data, here, text, ends[kinds], ends[kinds + 1])
        if here < 0:
            break
        at, line = here, lines
        row += 1
    return at, line, row


@njit(cache=True, nogil=True)
def _literal(data, at, text, begin, end):
    """Return the place behind a piece of text, -1 where it is not there (or `at` is -1)."""
    if at < 0 or at + end - begin > data.size:
        return -1
    for k in range(end - begin):
        if data[at + k] != text[begin + k]:
            return -1
    return at + end - begin


@njit(cache=True, nogil=True)
def _value(data, at, names, name_ends, choice):
    """Return the place behind a value, -1 where there is none, and the value."""
    if choice[0] == choice[1]:
        return _read_number(data, at)
    best, found = -1, -1
    for name in range(choice[0], choice[1]):
        behind = _literal(data, at, names, name_ends[name], name_ends[name + 1])
        if behind > best:
            best, found = behind, name - choice[0]
    return best, found


@njit(cache=True, nogil=True)
def _read_number(data, at):
    begin = at + (at < data.size and data[at] == _MINUS)
    here, value = begin, 0
    while here < data.size and _ZERO <= data[here] <= _NINE and here - begin < _SCANNED:
        value = 10 * value + data[here] - _ZERO
        here += 1
    zero_first = here > begin and data[begin] == _ZERO
    if here == begin or (zero_first and (here - begin > 1 or begin > at)):
        return -1, 0
    return here, (-value if begin > at else value)
