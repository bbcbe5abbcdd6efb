"""Values of options that need no conversion, so that what converts them is not loaded.

typer converts every value, the default of an option too, and from 0.29 on builds a converter of
pydantic for each. That takes 0.1 s of every command, and most options keep their default.
"""

from __future__ import annotations

from functools import partial
from typing import Any

_DIGITS = 10
"""Longer numbers are left to typer."""


def convert_less(param: Any) -> None:
    """Let a parameter of a command convert only values that are not of its type already.

    Parameters
    ----------
    param : click.Parameter
        Of typer. Versions that do not say the type convert all but missing values.
    """
    if "process_value" not in vars(param):
        param.process_value = partial(_process, param, param.process_value)


def _process(param: Any, convert: Any, ctx: Any, value: Any) -> Any:
    """Return what typer would give, at once where that is plain."""
    several = param.multiple or param.nargs != 1
    if value is None and not param.required:
        value = () if several else None
    elif several or not _is_plain(param, ctx, value):
        return convert(ctx, value)
    elif type(value) is not _type(param):
        value = int(value)
    return param.callback(ctx, param, value) if param.callback else value


def _is_plain(param: Any, ctx: Any, value: Any) -> bool:
    """Whether a value is right as it is, or is a number of digits alone that may be any."""
    wanted = _type(param)
    if type(value) is wanted:
        return wanted is str or ctx.get_parameter_source(param.name).name == "DEFAULT"
    if wanted is not int or type(value) is not str or not (value.isascii() and value.isdigit()):
        return False
    about = param.type_descriptor.parameter_info
    return len(value) < _DIGITS and (about.min or 0) <= int(value) and about.max is None


def _type(param: Any) -> Any:
    return getattr(getattr(param, "type_descriptor", None), "annotation", None)
