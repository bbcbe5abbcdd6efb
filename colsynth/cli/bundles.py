"""Bundles of options: frozen dataclasses that several commands take as one parameter each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that typer sees with the options of its bundles spelt out.

    Parameters
    ----------
    command : callable
        Takes its own parameters, and bundles: frozen dataclasses whose fields are annotated as
        typer's options. No name may occur twice.
    """
    hints = get_type_hints(command, include_extras=True)
    own = signature(command).parameters
    bundles = {name: hints[name] for name in own if is_dataclass(hints[name])}
    parameters: list[Parameter] = []
    for name, parameter in own.items():
        if name in bundles:
            parameters += _options(bundles[name])
        else:
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: bundle(**{field.name: values.pop(field.name) for field in fields(bundle)})
            for name, bundle in bundles.items()
        }
        command(**made, **values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def _options(bundle: Any) -> Iterator[Parameter]:
    """Yield the fields of a bundle as parameters."""
    hints = get_type_hints(bundle, include_extras=True)
    for field in fields(bundle):
        yield Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default
