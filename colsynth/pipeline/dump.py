"""Any value of the model as text for people: compact, and the same every time.

A value stands on one line where it fits; otherwise each part has its own. Fields
that equal their default are left out, a topology inside another value is named,
not repeated, small named tuples are joined (``i:3``), and the rows of a long tuple
carry their index, because other rows refer to it.
"""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct

from colsynth.model import Topology
from colsynth.pipeline.registry import DEFAULT
from colsynth.writing import write_files

PROBLEM = "problem"
"""The name of what goes into the first pass, among those of passes."""
_WIDTH = 120
_INDENT = "  "


def pretty(value: Any) -> str:
    """Return `value` as text that ends with a newline."""
    if isinstance(value, Topology):
        return _wrap("Topology", _fields(value), 0) + "\n"
    return _render(value, 0) + "\n"


def file_name(place: int, name: str) -> str:
    """Return the name of a dump, such as ``"03-assign-threadblocks.txt"``."""
    return f"{place:02}-{name}.txt"


def found_in(directory: Path) -> list[Path]:
    """Return the dumps in a directory, in order: files that `write` may have named."""
    names = "|".join((PROBLEM, *DEFAULT.names()))
    return sorted(
        path
        for path in directory.glob("*.txt")
        if re.fullmatch(rf"[0-9]{{2,}}-({names})\.txt", path.name)
    )


def write(directory: Path, place: int, name: str, value: Any) -> Path:
    """Write one dump into `directory`, which is made if need be; return its path."""
    path = directory / file_name(place, name)
    write_files({path: pretty(value).encode()})
    return path


def _render(value: Any, depth: int) -> str:
    parts = _parts(value)
    return _leaf(value) if parts is None else _wrap(*parts, depth)


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]]] | None:
    """Return head and labelled parts of a value that has parts."""
    if isinstance(value, Topology | type):
        return None
    if dataclasses.is_dataclass(value) or isinstance(value, Struct):
        return type(value).__name__, _fields(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return "", [("", item) for item in value]
    if isinstance(value, dict):
        return "", [(f"{key!s}: ", item) for key, item in value.items()]
    return None


def _leaf(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Topology):
        return f"Topology({value.name!r}, {value.size} ranks, {len(value.links)} links)"
    if isinstance(value, tuple):
        return ":".join(_word(part) for part in value)
    return str(value) if isinstance(value, Fraction) else repr(value)


def _word(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else _render(value, 0)


def _fields(value: Any) -> list[tuple[str, Any]]:
    """Return label and value of each field that says something."""
    if isinstance(value, Struct):
        names, defaults = value.__struct_fields__, value.__struct_defaults__
        usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        found = ((name, getattr(value, name)) for name in names)
        return [(f"{name}=", x) for name, x in found if name not in usual or x != usual[name]]
    return [
        (f"{field.name}=", getattr(value, field.name))
        for field in dataclasses.fields(value)
        if field.repr and getattr(value, field.name) != field.default
    ]


def _wrap(head: str, parts: list[tuple[str, Any]], depth: int) -> str:
    """Return the parts on one line, or on a line each where that is too long."""
    texts = [label + _render(item, depth + 1) for label, item in parts]
    line = f"{head}({', '.join(texts)})"
    if len(line) + depth * len(_INDENT) <= _WIDTH and "\n" not in line:
        return line
    inner = _INDENT * (depth + 1)
    if all(isinstance(item, int | Fraction) for _, item in parts):
        return head + _filled(texts, inner) + "\n" + _INDENT * depth + ")"
    if not any(label for label, _ in parts):
        texts = [f"#{index} {text}" for index, text in enumerate(texts)]
    return f"{head}(\n" + "".join(f"{inner}{text},\n" for text in texts) + _INDENT * depth + ")"


def _filled(texts: list[str], inner: str) -> str:
    """Return numbers as a paragraph: many on a line."""
    lines, line = ["("], inner
    for text in texts:
        if len(line) + len(text) + 2 > _WIDTH:
            lines.append(line.rstrip())
            line = inner
        line += text + ", "
    return "\n".join([*lines, line.rstrip()])
