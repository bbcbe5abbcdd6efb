"""The decorator of every kernel: numba's, compiling less and keeping code more safely."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba import types
from numba.core.targetconfig import ConfigStack

from colsynth.gc_pause import gc_paused
from colsynth.kernels.forks import follow_forks
from colsynth.kernels.kept import Kept
from colsynth.kernels.linking import compile_less

_numba_njit: Any = numba.njit  # its types leave out some options


def njit(
    *, cache: bool, allocates: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel when it is first called.

    A kernel whose name begins with an underscore is called by kernels alone. It gets no entry
    for Python and no file, which halves what it costs to compile. Of any other kernel, Python
    calls one version and kernels another, and only what is called is compiled.

    Of the kernels that kernels call, only those that make or return arrays count references to
    arrays; others borrow all arrays from their callers. To count took four fifths of the time of
    `colsynth.kernels.allocation`. What has to count and does not is refused when it is compiled.

    Parameters
    ----------
    cache : bool
        Whether to keep compiled code between runs, see `colsynth.kernels.kept`.
    allocates : bool
        Whether the kernel makes or returns arrays where another calls it.
    options
        Those of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        inner = _numba_njit(
            no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=allocates, **options
        )(function)
        if inner is function:  # NUMBA_DISABLE_JIT is set
            return function
        compile_less()
        inner.get_call_template = partial(_template, inner, inner.get_call_template, allocates)
        if function.__name__.startswith("_"):
            return inner
        kernel = _numba_njit(no_cfunc_wrapper=True, **options)(function)
        if cache:
            kernel._cache = Kept(function)  # noqa: SLF001 - numba has no public way
        kernel.get_call_template, kernel.get_overload = inner.get_call_template, inner.get_overload
        kernel._compile_for_args = gc_paused()(kernel._compile_for_args)  # noqa: SLF001 - 5 %
        if options.get("parallel"):
            follow_forks(kernel)
        return kernel

    return decorate


def _template(
    inner: Any, original: Callable[..., Any], allocates: bool, args: Any, kws: Any
) -> Any:
    """Return how a kernel is called from another, with constants seen as numbers.

    numba would compile it once more for every constant that an argument begins with.
    """
    plain = {name: types.unliteral(kind) for name, kind in kws.items()}
    found = original(tuple(types.unliteral(kind) for kind in args), plain)
    # numba refuses arrays that are made, but not those that are passed on, to callers or from them.
    models, caller = inner.targetctx.data_model_manager, ConfigStack.top_or_none()
    for version in inner.overloads.values():
        if not models[version.signature.return_type].contains_nrt_meminfo():
            continue
        if not allocates:
            raise TypeError(f"{inner.__name__} returns arrays: say allocates=True")
        if caller is not None and not caller.nrt:
            raise TypeError(f"what calls {inner.__name__} gets arrays: say allocates=True")
    return found
