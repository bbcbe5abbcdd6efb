"""Reads ``profiles.yaml``: the runtimes colsynth can write for."""

from __future__ import annotations

from functools import cache
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Collective
from colsynth.runtimes.data import read_data
from colsynth.runtimes.profile import Profile


@cache
def profiles() -> tuple[Profile, ...]:
    """Return every runtime, in the order of ``profiles.yaml``."""
    document = read_data("runtimes", "profiles.yaml")
    return tuple(_profile(name, entry) for name, entry in document.items())


def profile(name: str) -> Profile:
    """Return one runtime by name.

    Raises
    ------
    InputError
        CS501 when there is no such runtime.
    """
    for candidate in profiles():
        if candidate.name == name:
            return candidate
    names = [candidate.name for candidate in profiles()]
    raise InputError(
        Diagnostic("CS501", f"unknown runtime {name!r}", help=did_you_mean(name, names))
    )


def _profile(name: str, entry: dict[str, Any]) -> Profile:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, item in entry.items():
        sourced = isinstance(item, dict)
        values[key] = item["is"] if sourced else item
        if sourced:
            sources[key] = item["source"]
    for key in ("ops", "attributes", "required", "warnings", "notes"):
        values[key] = tuple(values[key])
    values["collectives"] = {Collective(k): v for k, v in values["collectives"].items()}
    built_in = values["built_in"].items()
    values["built_in"] = {Collective(k): tuple(names) for k, names in built_in}
    for key in ("out_of_place_only", "counts_bytes"):
        values[key] = tuple(map(Collective, values[key]))
    values["exports"] = tuple(values["exports"].items())
    return Profile(name=name, sources=sources, **values)
