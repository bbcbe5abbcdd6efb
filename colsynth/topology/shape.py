"""Plain data -> schema value: msgspec checks the shape, this page says where it broke."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.topology.document import Document
from colsynth.topology.quantities import no_unit

Form = TypeVar("Form", bound=msgspec.Struct)

_AT = re.compile(r" - at `(?:key in )?(?P<path>\$[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[\w-]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")
_TYPE = re.compile(r"`([^`]*)`")
_PLAIN = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_UNITS = ("bandwidth", "latency")

Path_ = tuple[str | int, ...]


def convert(document: Document, form: type[Form]) -> Form:
    """Return the data of a document as a schema value.

    Raises
    ------
    InputError
        CS106 to CS110: a key is unknown or missing, or a value is of the wrong kind.
    """
    try:
        return msgspec.convert(document.data, form)
    except msgspec.ValidationError as error:
        raise _diagnose(document, form, str(error)) from None


def unknown_key(document: Document, path: Path_, key: str, known: list[str]) -> InputError:
    """Return the error for a key that the schema does not have at `path`."""
    phrase = f"unknown key {key!r}"
    span = document.key(*path, key)
    return InputError(Diagnostic("CS106", phrase, span, help=did_you_mean(key, known)))


def keys_of(form: type, path: Path_) -> list[str]:
    """Return the keys that the schema allows at `path`."""
    structs = [t for t in _types_at(form, path) if isinstance(t, inspect.StructType)]
    return [field.encode_name for struct in structs for field in struct.fields]


def _diagnose(document: Document, form: type, message: str) -> InputError:
    found = _AT.search(message)
    path = _path(found["path"]) if found else ()
    text = _AT.sub("", message)
    if unknown := _UNKNOWN.match(text):
        return unknown_key(document, path, unknown["key"], keys_of(form, path))
    if missing := _MISSING.match(text):
        return _missing_key(document, path, missing["key"])
    if path == ("version",):
        return _version(document, form)
    if path and path[-1] in _UNITS and text.startswith("Expected `str`"):
        return no_unit(str(path[-1]), _value(document.data, path), document.at(*path))
    value = _value(document.data, path)
    choices = _choices_of(form, path)
    hint = did_you_mean(str(value), choices) if choices else None
    phrase = f"unknown value {value!r}" if choices else _TYPE.sub(_plain, text)
    phrase = phrase[:1].lower() + phrase[1:]
    return InputError(Diagnostic("CS108", phrase, document.at(*path), help=hint))


def _missing_key(document: Document, path: Path_, key: str) -> InputError:
    where = f" in {_spell(path)}" if path else ""
    return InputError(Diagnostic("CS107", f"key {key!r} is missing{where}", document.at(*path)))


def _version(document: Document, form: type) -> InputError:
    phrase = f"version {document.data['version']!r} of the format is not known"
    span = document.at("version")
    advice = f"write `version: {' or '.join(_choices_of(form, ('version',)))}`"
    return InputError(Diagnostic("CS109", phrase, span, help=advice))


def _plain(match: re.Match[str]) -> str:
    """Return msgspec's ```int | str``` as ``a whole number or text``."""
    return " or ".join(_PLAIN.get(word, word) for word in match[1].split(" | "))


def _path(text: str) -> Path_:
    steps: list[str | int] = []
    for step in _STEP.finditer(text[1:]):
        if step["name"] is not None:
            steps.append(step["name"])
        elif step["index"] is not None:
            steps.append(int(step["index"]))
        else:
            break  # any value of a mapping: which one is not told
    return tuple(steps)


def _spell(path: Path_) -> str:
    return "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in path).lstrip(".")


def _value(data: Any, path: Path_) -> Any:
    for step in path:
        data = data[step]
    return data


def _types_at(form: type, path: Path_) -> list[inspect.Type]:
    """Return the types that the schema allows at `path`."""
    types = _alternatives(inspect.type_info(form))
    for step in path:
        inner: list[inspect.Type] = []
        for kind in types:
            if isinstance(kind, inspect.StructType):
                inner += [f.type for f in kind.fields if f.encode_name == step]
            elif isinstance(kind, inspect.ListType):
                inner.append(kind.item_type)
        types = [x for kind in inner for x in _alternatives(kind)]
    return types


def _alternatives(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [x for option in kind.types for x in _alternatives(option)]
    return [kind]


def _choices_of(form: type, path: Path_) -> list[str]:
    literals = [t for t in _types_at(form, path) if isinstance(t, inspect.LiteralType)]
    return [str(value) for literal in literals for value in literal.values]
