"""A hash of the code that a pass of a user consists of, to tell its versions apart.

That is its module and the modules of the user that this one imports, since a pass may call what
they hold. Python and other packages that are installed are not followed; `fingerprint` has the
versions of those that decide schedules, and the sources of colsynth.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from inspect import isfunction
from pathlib import Path
from sysconfig import get_paths
from types import FunctionType

_PLAIN = (bool, int, float, str, bytes, Fraction, type(None))
"""Types of values that say by themselves what they are, in every process alike."""

_INSTALLED = tuple(
    Path(get_paths()[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")
)


def hash_of(pass_type: type) -> str:
    """Return a hash of the code of a pass.

    Where a module has no file, as in an interactive session, no two calls return the same.
    """
    digest = hashlib.sha256(repr(list(_traits(pass_type))).encode())
    waiting = [item.__module__ for item in pass_type.__mro__ if _is_followed(item.__module__)]
    seen, package = set(waiting), _package(pass_type.__module__)
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if path is None or not path.is_file():
            return hashlib.sha256(os.urandom(16)).hexdigest()
        stat = path.stat()
        text, imported = _read(path, name, stat.st_mtime_ns, stat.st_size)
        digest.update(text.encode())
        fresh = [other for other in imported if other not in seen and _is_own(other, package)]
        seen.update(fresh)
        waiting += fresh
    return digest.hexdigest()


def _traits(pass_type: type) -> Iterator[tuple[str, ...]]:
    """Yield what tells classes of the same modules apart, such as those that a function makes."""
    for item in pass_type.__mro__:
        for name, value in vars(item).items():
            if name.startswith("__"):  # what Python and dataclasses make
                continue
            if isfunction(value):
                yield name, *_places(value)
            elif isinstance(value, _PLAIN):
                yield name, repr(value)


def _places(function: FunctionType, around: tuple[FunctionType, ...] = ()) -> Iterator[str]:
    """Yield where a function stands and what it was given there, functions likewise."""
    code = function.__code__
    yield f"{function.__module__}:{code.co_qualname}:{code.co_firstlineno}"
    for value in _given(function):
        if not isfunction(value):
            yield repr(value)
        elif value is not function and value not in around:  # not one that calls itself
            yield from _places(value, (*around, function))


def _given(function: FunctionType) -> Iterator[object]:
    """Yield the values that a function holds: its defaults, and those of the one around it."""
    yield from function.__defaults__ or ()
    for item in (function.__kwdefaults__ or {}).items():
        yield from item
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not given yet
            yield cell.cell_contents


def _package(module: str) -> str:
    return module.partition(".")[0]


def _is_followed(module: str) -> bool:
    return _package(module) not in ("builtins", "colsynth")


def _is_own(module: str, package: str) -> bool:
    """Whether a module is a file of the user's, or of the package that the pass is from."""
    path = _file_of(module) if _is_followed(module) else None
    if path is None or _package(module) == package:
        return path is not None
    return not any(path.is_relative_to(place) for place in _INSTALLED)


def _file_of(module: str) -> Path | None:
    """Return the file of a module, whether it was imported yet or not; None without one."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        found = getattr(loaded, "__file__", None)
    else:
        try:
            spec = _spec(module)
        except (ImportError, AttributeError, KeyError, ValueError):
            return None
        found = spec.origin if spec is not None and spec.has_location else None
    return None if found is None else Path(found).resolve()


def _spec(module: str) -> ModuleSpec | None:
    """Return where a module is; import no package around it, which runs code of the user's."""
    package = module.rpartition(".")[0]
    if not package:
        return find_spec(module)
    loaded = sys.modules.get(package)
    around = _spec(package) if loaded is None else loaded.__spec__
    places = None if around is None else around.submodule_search_locations
    return None if places is None else PathFinder.find_spec(module, places)


@lru_cache(maxsize=256)
def _read(path: Path, module: str, _changed: int, _size: int) -> tuple[str, tuple[str, ...]]:
    """Return a hash of a file, and the names that may be modules that it imports."""
    data = path.read_bytes()
    text = hashlib.sha256(data).hexdigest()
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):  # a compiled module
        return text, ()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return text, tuple(dict.fromkeys(_imports(tree, package)))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _above(alias.name)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # beyond the package: the import itself would fail
                continue
            yield from _above(base)
            yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _above(name: str) -> Iterator[str]:
    """Yield a module and the packages around it, which are imported first."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))
