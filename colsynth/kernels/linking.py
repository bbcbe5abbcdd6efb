"""Less work for numba, with the same results: what is compiled once need not be again.

numba optimises every function by itself and translates it into machine code, then copies it
into each caller and does all that again there. Most functions are never called from Python:
kernels that kernels call, and what numba compiles for those of numpy. Here a function is
linked, optimised and translated when somebody asks for its address, and all that it calls
with it. That takes half of LLVM's work away, and kernels run as fast as before.

This concerns all that numba compiles for the processor from now on.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

_ENVIRONMENT = "_ZN08NumbaEnv"
_OF_ENTRIES = {"no_cpython_wrapper", "no_cfunc_wrapper", "release_gil"}


class LateLibrary(JITCodeLibrary):
    """Functions that are linked, optimised and translated when an address is asked for."""

    _translated = False

    def finalize(self) -> None:
        """Take no more functions."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)  # noqa: SLF001
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, 0 where the library defines none of this name."""
        self._ensure_finalized()
        if not self._defines(name):
            return 0
        if not self._translated:
            self._translated = True
            self._translate()
        address: int = super().get_pointer_to_function(name)
        return address

    def _defines(self, name: str) -> bool:
        """Whether a function is among the library's; of a kept kernel, there is a copy."""
        try:
            function = (self._shared_module or self._final_module).get_function(name)
        except NameError:
            return False
        return not function.is_declaration

    def _translate(self) -> None:
        if not self._kept():
            self._shared_module = None
            # LLVM takes from a module only what is missing so far: first callers, then callees.
            for library in reversed(_called(self, set())[:-1]):
                module = library._get_module_for_linking()  # noqa: SLF001
                self._final_module.link_in(module, preserve=True)
            self._optimize_final_module()
            self._final_module.verify()
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)

    def _kept(self) -> bool:
        """Whether an earlier run has translated the library."""
        return self._object_caching_enabled and self._compiled_object is not None

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplify what a module defines; numba prepares that for all functions it names."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001
        for function in ll_module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager()  # noqa: SLF001
                manager.run(function, builder)

    def _finalize_final_module(self) -> None:
        """Leave that to `_translate`; numba calls this for a kept library."""
        self._finalized = True


def _called(library: CPUCodeLibrary, known: set[CPUCodeLibrary]) -> list[CPUCodeLibrary]:
    """Return a library and what it calls, directly or not, without those known; callers last."""
    found: list[CPUCodeLibrary] = []
    known.add(library)
    for called in library._linking_libraries:  # noqa: SLF001
        if called not in known:
            found += _called(called, known)
    return [*found, library]


def _same(one: Any, other: object) -> Any:
    """Whether two compilations have the same options, but for entries from outside.

    numba keeps what it has compiled of numpy by the flags of the caller. Its own comparison
    sees entries too, so it compiles much twice, and takes a tenth of all time.
    """
    if not isinstance(other, Flags):
        return NotImplemented
    mine, theirs = one._values, other._values  # noqa: SLF001 - what is not set has its default
    return mine == theirs or all(
        getattr(one, name) == getattr(other, name)
        for name in (mine.keys() | theirs.keys()) - _OF_ENTRIES
    )


@cache
def compile_less() -> None:
    """Let numba use `LateLibrary` and `_same` from now on."""
    codegen = cpu_target.target_context.codegen()
    set_environment = codegen.set_env

    def set_env(name: str, environment: Any) -> None:
        """Do what numba does, where there is machine code that refers to it."""
        if codegen._engine.is_symbol_defined(name):  # noqa: SLF001
            set_environment(name, environment)

    codegen._library_class = LateLibrary  # noqa: SLF001
    codegen.set_env = set_env
    flags: Any = Flags
    flags.__eq__ = _same
    flags.__hash__ = lambda _: hash(Flags)  # numba's does not depend on the options either
