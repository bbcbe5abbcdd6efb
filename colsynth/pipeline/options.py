"""Options of a pass, read off its dataclass fields, and their spelling in text.

Types an option may have: ``int``, ``str``, ``bool``, ``Literal[...]``, ``None``
and unions of these. `from_text` and `to_text` are inverse to each other.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Union

from colsynth.units import MOST_BYTES

_BARE = re.compile(r"[A-Za-z0-9_.:/+-]+")
_NO_VALUE = object()


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a pass.

    Parameters
    ----------
    name : str
        Kebab-case, as written in a pipeline.
    field : str
        The dataclass field.
    members : tuple
        The types whose union the option has; literals as their values.
    default : object
    """

    name: str
    field: str
    members: tuple[Any, ...]
    default: Any

    @property
    def kind(self) -> str:
        """What values are valid, for people: ``int | none``, ``auto | optimal | int``."""
        return " | ".join(_member_name(member) for member in self.members)

    def from_text(self, text: str, *, quoted: bool = False) -> Any:
        """Return the value that `text` spells; raise ValueError where it spells none.

        Parameters
        ----------
        text : str
            Without quotes.
        quoted : bool
            Whether it stood in quotes; then it can only be a string.
        """
        for member in self.members:
            value = _read(member, text, quoted)
            if value is not _NO_VALUE:
                return value
        raise ValueError(f"expected {self.kind}")

    def to_text(self, value: Any) -> str:
        """Return the spelling that `from_text` reads back as `value`."""
        if isinstance(value, bool):
            return str(value).lower()
        if value is None:
            return "none"
        if isinstance(value, int):
            return str(value)
        text = str(value)
        bare = bool(_BARE.fullmatch(text)) and self.from_text(text) == value
        return text if bare else json.dumps(text)


def spelt(field: str) -> str:
    """Return the name of an option as users write it, without dashes before it."""
    return field.replace("_", "-")


def options_of(pass_type: type) -> tuple[Option, ...]:
    """Return the options of a pass class in the order of its fields.

    Raises
    ------
    TypeError
        When a field has a type that text cannot spell, or no default.
    """
    return _options_of(pass_type)


@functools.cache
def _options_of(pass_type: type) -> tuple[Option, ...]:
    hints = typing.get_type_hints(pass_type)
    return tuple(
        Option(spelt(field.name), field.name, _members(hints[field.name]), field.default)
        for field in dataclasses.fields(pass_type)
        if _has_default(pass_type, field)
    )


def _has_default(pass_type: type, field: dataclasses.Field[Any]) -> bool:
    if field.default is dataclasses.MISSING:
        raise TypeError(f"option {field.name!r} of {pass_type.__name__} has no default")
    return True


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the flat union: bool before int before str, so that the narrowest reads first."""
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        parts = [part for arg in typing.get_args(annotation) for part in _members(arg)]
        return tuple(sorted(parts, key=_breadth))
    if origin is Literal:
        return typing.get_args(annotation)
    if annotation in _READERS or annotation is types.NoneType:
        return (annotation,)
    raise TypeError(f"an option cannot have the type {annotation!r}")


def _breadth(member: Any) -> int:
    broad = {bool: 2, int: 3, str: 4}
    return broad.get(member, 1) if isinstance(member, type) else 0


def _member_name(member: Any) -> str:
    if member is types.NoneType:
        return "none"
    return member.__name__ if isinstance(member, type) else str(member)


def _read(member: Any, text: str, quoted: bool) -> Any:
    """Return the value of `text` as `member`, or the mark that it has none."""
    if member is str:
        return text
    if not isinstance(member, type):
        return member if text == str(member) else _NO_VALUE
    if quoted:
        return _NO_VALUE
    if member is types.NoneType:
        return None if text == "none" else _NO_VALUE
    return _READERS[member](text)


def _read_bool(text: str) -> Any:
    return {"true": True, "false": False}.get(text, _NO_VALUE)


def _read_int(text: str) -> Any:
    """Return a whole number that is no larger than a size may be."""
    known = re.fullmatch(r"-?[0-9]{1,19}", text) and abs(int(text)) <= MOST_BYTES
    return int(text) if known else _NO_VALUE


_READERS: dict[Any, Callable[[str], Any]] = {bool: _read_bool, int: _read_int, str: str}
