"""Reads ``profiles.yaml``: the runtimes colsynth can write for."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from colsynth.errors import Diagnostic, InputError, close_names, did_you_mean, same_name
from colsynth.model import Collective
from colsynth.runtimes.data import read_data
from colsynth.runtimes.profile import Profile


@cache
def profiles() -> tuple[Profile, ...]:
    """Return every runtime at its usual version, in the order of ``profiles.yaml``."""
    document = read_data("runtimes", "profiles.yaml")
    return tuple(_profile(name, entry) for name, entry in document.items())


def profile(name: str) -> Profile:
    """Return one runtime by name.

    Raises
    ------
    InputError
        CS501 when there is no such runtime; of a library that reads no schedule files, which
        ones do.
    """
    for candidate in (*profiles(), *_pinned()):
        if candidate.name == name:
            return candidate
    raise _unknown(name)


@cache
def _pinned() -> tuple[Profile, ...]:
    """Return the runtimes as of certain versions, such as ``mscclpp@0.8``."""
    found = []
    for name, entry in read_data("runtimes", "profiles.yaml").items():
        for version, changes in entry.get("pins", {}).items():
            found.append(_profile(f"{name}@{version}", {**entry, **changes}))
    return tuple(found)


def _unknown(given: object) -> InputError:
    """Return the refusal of a name; one vendor's runtime is never proposed for another's."""
    name = str(given)  # from Python it may be anything
    known = (*profiles(), *_pinned()) if "@" in name else profiles()
    names = [candidate.name for candidate in known]
    others = read_data("runtimes", "others.yaml")
    called = {word: key for key, other in others.items() for word in (key, *other["also"])}
    spelt = name.replace("+", "p")  # MSCCL++ is mscclpp
    nearest = close_names(spelt, (*names, *called))
    phrase = f"unknown runtime {given!r}"
    if not nearest or nearest[0] in names:
        return InputError(Diagnostic("CS501", phrase, help=did_you_mean(spelt, names)))
    library = same_name(_VERSION.sub("", spelt), called)
    notes = () if library is None else (others[called[library]]["why"],)
    return InputError(Diagnostic("CS501", phrase, notes=notes, help=_READERS))


_VERSION = re.compile(r"[-@ ]?v?[0-9.]+$")

_READERS = (
    "these read schedule files: -r msccl-executor and -r msccl, forks of NCCL for NVIDIA GPUs; "
    "-r rccl, for AMD GPUs; -r mscclpp, for both; "
    "-r torch, for any of them from PyTorch; see 'colsynth runtimes'"
)


def _profile(name: str, entry: dict[str, Any]) -> Profile:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, item in entry.items():
        if key == "pins":
            continue
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
