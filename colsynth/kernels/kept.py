"""Machine code that earlier runs have compiled, one file per kernel and types of arguments.

A file is found by its name, which holds a digest of all that the code depends on: the source
of the kernel and of the kernels it calls, numba, Python and the processor. It begins with a
checksum of its content. So a file is either right or not used, whatever happened to it, and
a folder can serve several versions and machines at once.

numba's own cache is not used: its index and its data are separate files that a full disk, a
kill or two processes at once can leave in disagreement, it ignores changes of called kernels
in other modules, and a damaged file ends the program.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
from llvmlite.binding import add_symbol, parse_assembly, parse_bitcode
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.serialize import dumps

from colsynth.kernels.folders import VARIABLE, folders, is_temporary, prepare

COMPILING = "compiling kernels, first run only"
LOG = logging.getLogger("colsynth.kernels")
"""Says at level INFO that a kernel is being compiled, and as a warning where it cannot be kept."""

_CHECKSUM = sha256().digest_size
_IMPORT = re.compile(rb"^from colsynth\.kernels\.(\w+) import", re.MULTILINE)


class Kept:
    """The compiled versions of one kernel, as numba's dispatchers expect their cache.

    Parameters
    ----------
    function : callable
        The kernel's Python function.
    threads : bool
        Whether a kernel with `parallel` is compiled for threads (`colsynth.kernels.forks`).
    """

    def __init__(self, function: Callable[..., Any], *, threads: bool = True) -> None:
        self.function, self.threads = function, threads
        self.cache_path: str | None = None  # numba's statistics ask for it

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return the compiled kernel for arguments of these types, None if no file holds it.

        It needs nothing of what numba knows of Python and numpy, which takes a tenth of a second
        to load: numba does so where it compiles.
        """
        _offer_memory()
        name = self._name(types, context.codegen())
        for folder in folders():
            content = _read(folder / name)
            if content is not None:
                # A file with the right checksum fails only where numba itself has changed.
                with suppress(Exception):
                    return CompileResult._rebuild(context, *_Unpickler(BytesIO(content)).load())  # noqa: SLF001
        LOG.info(COMPILING)
        return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Keep a compiled kernel in the first folder that takes it; warn where none does."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        library, *rest = result._reduce()  # noqa: SLF001
        content = dumps((_without_bodies(library), *rest))
        name = self._name(types, result.codegen)
        reason = ""
        for folder in folders():
            try:
                _write(folder, name, content)
            except OSError as fault:
                reason = reason or f"{folder}: {fault.strerror or fault}"
                continue
            if is_temporary(folder):
                _warn(f"no other folder can be written, so compiled kernels are kept in {folder}")
            return
        _warn(f"compiled kernels cannot be kept ({reason}), so every run compiles them again")

    def flush(self) -> None:
        """Forget nothing: a file is used for exactly the source it was made from."""

    def _name(self, types: Any, codegen: Any) -> str:
        module = self.function.__module__
        about: tuple[object, ...] = (str(types), codegen.magic_tuple(), _versions())
        about += (_sources(module),) if self.threads else (_sources(module), "one thread")
        digest = sha256(repr(about).encode()).hexdigest()
        return f"{module.rpartition('.')[2]}.{self.function.__name__}.{digest[:32]}.kernel"


class _Unpickler(pickle.Unpickler):
    """Loads a kernel without the modules of numba whose functions are compiled into it."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a pickle names."""
        if (module, name) == (_rebuild_env.__module__, _rebuild_env.__name__):
            return _environment
        return super().find_class(module, name)


@cache
def _offer_memory() -> None:
    """Let machine code call the allocator of numba's runtime.

    numba does so too before it compiles, and then translates functions for other code that is
    compiled, for 30 ms. A kept kernel holds all that it needs of them.
    """
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _without_bodies(library: tuple[str, str, Any]) -> tuple[str, str, Any]:
    """Return a library whose bitcode has names alone, which takes a third of the time to load.

    numba keeps bitcode so that other code can inline it. Nothing does that: kernels call another
    version of a kernel (`colsynth.kernels.compiled`). The machine code holds the functions.
    """
    name, kind, (code, bitcode) = library
    module = parse_bitcode(bitcode)
    functions, variables = (
        [f'"{item.name}"' for item in items if _is_visible(item)]
        for items in (module.functions, module.global_variables)
    )
    text = "".join(f"define void @{item}() {{ unreachable }}\n" for item in functions)
    text += "".join(f"@{item} = common global i64 0\n" for item in variables)
    return name, kind, (code, parse_assembly(text).as_bitcode())


def _is_visible(item: Any) -> bool:
    """Whether a module defines a name for others."""
    return not item.is_declaration and item.linkage.name != "internal"


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """Return the environment of a function; compiled code never looks up its module's names."""
    if module in sys.modules:
        return _rebuild_env(module, constants, name)
    found = lookup_environment(name)
    if found is None:
        found = Environment({"__name__": module})
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found  # noqa: SLF001 - where numba looks for it
    return found


def _read(path: Path) -> bytes | None:
    """Return the content of a file, None where there is none or it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_CHECKSUM:]
    return content if sha256(content).digest() == data[:_CHECKSUM] else None


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a file whole; raise OSError where that cannot be done."""
    prepare(folder)
    draft = folder / f".{name}.{uuid4().hex}.tmp"
    try:
        with draft.open("xb") as stream:
            stream.write(sha256(content).digest() + content)
        draft.replace(folder / name)
    finally:
        draft.unlink(missing_ok=True)


@cache
def _warn(text: str) -> None:
    """Warn once in a process."""
    LOG.warning("%s; set %s to a folder of yours to keep them there", text, VARIABLE)


@cache
def _versions() -> tuple[str, ...]:
    return numba.__version__, llvmlite.__version__, platform.python_version(), os.name


@cache
def _sources(module: str) -> str:
    """Return a digest of the sources of a kernel's module and of all that it imports from here."""
    reached, found = {module.rpartition(".")[2]}, {}
    while reached:
        name = reached.pop()
        found[name] = (Path(__file__).parent / f"{name}.py").read_bytes()
        imported = {match.decode() for match in _IMPORT.findall(found[name])}
        reached |= imported - set(found)
    return sha256(b"".join(found[name] for name in sorted(found))).hexdigest()
