"""Whether a class is a pass, as :mod:`colsynth.pipeline.interface` says."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from colsynth.errors import Diagnostic, InputError
from colsynth.pipeline.options import options_of
from colsynth.runtimes.choice import Choice

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ADVICE = "colsynth.pipeline.interface says what a pass has; 'colsynth guide extending' has one"
_UNFROZEN = "it is no frozen dataclass; write @dataclass(frozen=True) above the class"


def is_name(text: str) -> bool:
    """Whether a text is in kebab-case, as names of passes and algorithms are."""
    return _NAME.fullmatch(text) is not None


def check_pass(pass_type: Any) -> None:
    """Refuse a class that is no pass.

    Raises
    ------
    InputError
        CS225, naming what is missing or wrong.
    """
    if not isinstance(pass_type, type):
        phrase = f"an object of type {type(pass_type).__name__} is no pass: it is no class"
        advice = "give the class of the pass itself, not an object made of it"
        raise InputError(Diagnostic("CS225", phrase, help=advice))
    wrong = _fault(pass_type)
    if wrong is not None:
        phrase = f"{pass_type.__name__} is no pass: {wrong}"
        raise InputError(Diagnostic("CS225", phrase, help=_ADVICE))


@functools.cache
def _fault(pass_type: type[Any]) -> str | None:
    """Return what a class lacks to be a pass, None where it is one."""
    params = getattr(pass_type, "__dataclass_params__", None)
    if params is None or not params.frozen:
        return _UNFROZEN
    name = getattr(pass_type, "name", None)
    if not isinstance(name, str) or not is_name(name):
        return 'it needs a name in kebab-case, such as name: ClassVar[str] = "build-ring"'
    for end in ("takes", "gives"):
        if not isinstance(getattr(pass_type, end, None), type):
            return f"it needs a type that it {end}, such as {end}: ClassVar[type] = Problem"
    run = inspect.getattr_static(pass_type, "run", None)
    if not inspect.isfunction(run) or not _takes_two(run):
        return "it needs a method run(self, value, target)"
    return _fault_of_options(pass_type)


def _fault_of_options(pass_type: type[Any]) -> str | None:
    """Return what is wrong with the options of a pass, and with what it says of choices."""
    try:
        options = {option.field for option in options_of(pass_type)}
    except (TypeError, NameError) as fault:
        return str(fault)
    choices = getattr(pass_type, "choices", ())
    if not isinstance(choices, tuple) or not all(isinstance(item, Choice) for item in choices):
        return "its choices must be a tuple of Choice"
    unknown = [item.option for item in choices if item.option not in options]
    return f"its choices name {unknown[0]!r}, which is none of its options" if unknown else None


def _takes_two(run: Any) -> bool:
    """Whether a method can be called with a value and a target."""
    try:
        inspect.signature(run).bind(None, None, None)
    except TypeError:
        return False
    return True
