"""The few pieces of protobuf's wire format that execution traces need."""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _BYTES = 0, 2


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    """Return a field that holds a whole number from 0."""
    return varint(field << 3 | _VARINT) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    """Return a field that holds text or a message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | _BYTES) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of numbers; nothing where there are none."""
    data = b"".join(map(varint, values))
    return block(field, data) if data else b""


def delimited(messages: Iterable[bytes]) -> bytes:
    """Return messages one after the other, each behind its length."""
    return b"".join(varint(len(message)) + message for message in messages)
