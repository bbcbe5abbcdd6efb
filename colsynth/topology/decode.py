"""Document -> schema value: msgspec checks the shape, this page says where it broke."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import inspect

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.topology.document import Document
from colsynth.topology.quantities import no_unit
from colsynth.topology.schema import VERSION, Compact, Flat

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


def decode(document: Document) -> Compact | Flat:
    """Return what a topology file says.

    Raises
    ------
    InputError
        A key is unknown or missing, or a value has the wrong type.
    """
    data = document.data
    form: type[Compact | Flat] = Compact if "box" in data else Flat
    if "box" not in data and "nodes" not in data:
        _check_keys(document)
        raise InputError(
            Diagnostic(
                "CS107",
                "neither 'box' nor 'nodes' is given",
                document.at(),
                ("'box' opens the compact form, 'nodes' and 'links' the flat form",),
            )
        )
    _check_parameters(document)
    try:
        found = msgspec.convert(data, form)
    except msgspec.ValidationError as error:
        raise _diagnose(document, form, str(error)) from None
    _check_name(document, found.name)
    return found


def _check_name(document: Document, name: str) -> None:
    """Refuse what would change the terminal or the lines of every answer."""
    if not name.isprintable() or name != name.strip():
        phrase = f"name {name!r} is not plain printable text"
        raise InputError(Diagnostic("CS108", phrase, document.at("name")))


def _check_keys(document: Document) -> None:
    known = sorted({*_keys_of(Compact, ()), *_keys_of(Flat, ())})
    for key in document.data:
        if key not in known:
            raise _unknown_key(document, (), key, known)


def _check_parameters(document: Document) -> None:
    """Check values here: msgspec does not name the key of a mapping's bad value."""
    parameters = document.data.get("parameters")
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise InputError(
                Diagnostic(
                    "CS108",
                    f"expected a whole number, a bandwidth or a latency for parameter {name!r}",
                    document.at("parameters", name),
                )
            )


def _diagnose(document: Document, form: type, message: str) -> InputError:
    found = _AT.search(message)
    path = _path(found["path"]) if found else ()
    text = _AT.sub("", message)
    if unknown := _UNKNOWN.match(text):
        return _unknown_key(document, path, unknown["key"], _keys_of(form, path))
    if missing := _MISSING.match(text):
        return _missing_key(document, path, missing["key"])
    if path == ("version",):
        return _version(document)
    if path and path[-1] in _UNITS and text.startswith("Expected `str`"):
        return no_unit(str(path[-1]), _value(document.data, path), document.at(*path))
    value = _value(document.data, path)
    choices = _choices_of(form, path)
    hint = did_you_mean(str(value), choices) if choices else None
    phrase = f"unknown value {value!r}" if choices else _TYPE.sub(_plain, text)
    phrase = phrase[:1].lower() + phrase[1:]
    return InputError(Diagnostic("CS108", phrase, document.at(*path), help=hint))


def _unknown_key(document: Document, path: Path_, key: str, known: list[str]) -> InputError:
    phrase = f"unknown key {key!r}"
    span = document.key(*path, key)
    return InputError(Diagnostic("CS106", phrase, span, help=did_you_mean(key, known)))


def _missing_key(document: Document, path: Path_, key: str) -> InputError:
    where = f" in {_spell(path)}" if path else ""
    return InputError(Diagnostic("CS107", f"key {key!r} is missing{where}", document.at(*path)))


def _version(document: Document) -> InputError:
    phrase = f"version {document.data['version']!r} of the format is not known"
    span = document.at("version")
    return InputError(Diagnostic("CS109", phrase, span, help=f"write `version: {VERSION}`"))


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


def _keys_of(form: type, path: Path_) -> list[str]:
    structs = [t for t in _types_at(form, path) if isinstance(t, inspect.StructType)]
    return [field.encode_name for struct in structs for field in struct.fields]


def _choices_of(form: type, path: Path_) -> list[str]:
    literals = [t for t in _types_at(form, path) if isinstance(t, inspect.LiteralType)]
    return [str(value) for literal in literals for value in literal.values]
