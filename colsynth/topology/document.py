"""A YAML file as plain data that remembers the line and column of every value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from colsynth.errors import Diagnostic, InputError, Span

MAX_BYTES = 64 * 2**20
"""Larger files are refused unread: 64 MiB hold about half a million links."""

Path_ = tuple[str | int, ...]
Mark = tuple[int, int]

# libyaml reads large files ten times faster, where PyYAML was built with it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data of a file, and where each of its values and keys stands.

    Parameters
    ----------
    file : str
        As the user named it.
    data : dict
    values, keys : dict
        (line, column), both from 1, by path: ``("box", "links", 0, "from")``.
    """

    file: str
    data: dict[str, Any]
    values: dict[Path_, Mark] = field(repr=False)
    keys: dict[Path_, Mark] = field(repr=False)

    def at(self, *path: str | int) -> Span:
        """Return the place of the value at `path`, or of the nearest one around it."""
        while path not in self.values:
            path = path[:-1]
        return Span(self.file, *self.values[path])

    def key(self, *path: str | int) -> Span:
        """Return the place of the key that `path` ends with."""
        return Span(self.file, *self.keys[path]) if path in self.keys else self.at(*path)


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises
    ------
    InputError
        The file cannot be read, is no text, is no YAML, or is no mapping.
    """
    return parse_document(_read_text(path), str(path))


def parse_document(text: str, file: str) -> Document:
    """Return the data of a YAML text; `file` is what diagnostics call it."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(file, error) from None
    except yaml.reader.ReaderError as error:
        raise _not_text(file, f"character {error.position} is {error.reason}") from None
    except RecursionError:
        raise _too_deep(Span(file)) from None
    walk = _Walk(file)
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            Diagnostic(
                "CS108",
                "expected a topology: a mapping with version, name, and box or nodes",
                Span(file, 1, 1) if root is None else walk.span(root),
                notes=(f"found {'nothing' if root is None else _SHAPES[type(root)]}",),
                help="`colsynth topology export dgx-a100` prints a complete example",
            )
        )
    data = walk.convert(root, ())
    return Document(file, data, walk.values, walk.keys)


_SHAPES: dict[type, str] = {yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list"}


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            Diagnostic("CS101", f"cannot read the topology file: {reason}", Span(str(path)))
        ) from None
    if len(raw) > MAX_BYTES:
        limit = f"the limit is {MAX_BYTES} bytes"
        raise InputError(
            Diagnostic("CS125", "the topology file is too large", Span(str(path)), (limit,))
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_text(str(path), f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise _not_text(str(path), f"character {text.index(chr(0))} is NUL")
    return text


def _not_text(file: str, note: str) -> InputError:
    return InputError(
        Diagnostic(
            "CS102",
            "not a YAML file: it holds binary data",
            Span(file),
            (note,),
            "give a preset, a generator such as ring:8, or a YAML topology file",
        )
    )


def _too_deep(span: Span) -> InputError:
    return InputError(Diagnostic("CS103", "the YAML is nested too deeply", span))


def _syntax_error(file: str, error: yaml.MarkedYAMLError) -> InputError:
    mark = error.problem_mark or error.context_mark
    span = Span(file) if mark is None else Span(file, mark.line + 1, mark.column + 1)
    notes = [text for text in (error.problem, error.context) if text]
    return InputError(Diagnostic("CS103", "the file is not valid YAML", span, tuple(notes)))


class _Walk:
    """Turns composed nodes into plain data and notes their places."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.values: dict[Path_, Mark] = {}
        self.keys: dict[Path_, Mark] = {}
        self._seen: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def span(self, node: yaml.Node) -> Span:
        return Span(self.file, *_mark(node))

    def convert(self, node: yaml.Node, path: Path_) -> Any:
        if id(node) in self._seen:
            # A handful of aliases can spell out gigabytes, and one place would have two meanings.
            raise InputError(
                Diagnostic(
                    "CS105",
                    "anchors and aliases are not part of the format",
                    self.span(node),
                    help="declare a parameter and use it as $NAME",
                )
            )
        self._seen.add(id(node))
        self.values[path] = _mark(node)
        if len(path) > _MAX_DEPTH:
            raise _too_deep(self.span(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise InputError(Diagnostic("CS108", "expected a word as key", self.span(key_node)))
            if key in data:
                line, column = self.keys[*path, key]
                raise InputError(
                    Diagnostic(
                        "CS104",
                        f"key {key!r} is given twice",
                        self.span(key_node),
                        (f"first given at line {line}, column {column}",),
                    )
                )
            self.keys[*path, key] = _mark(key_node)
            data[key] = self.convert(value_node, (*path, key))
        return data

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            text = getattr(error, "problem", None) or str(error)
            raise InputError(
                Diagnostic("CS108", "not a plain value", self.span(node), (text,))
            ) from None


def _mark(node: yaml.Node) -> Mark:
    return node.start_mark.line + 1, node.start_mark.column + 1
