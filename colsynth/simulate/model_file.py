"""Reads ``--model FILE.yaml``: constants that replace those of the default model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.simulate.model import NAMES, PROTOCOLS, Model
from colsynth.topology.document import Document, Wording, read_document

WORDING = Wording(
    "model file",
    "a model: a mapping of constants to numbers",
    "`colsynth simulate --show-model` lists the constants",
    "give a YAML file such as `network_efficiency: 0.9`",
)

_SHARES = ("link_efficiency", "network_efficiency", "payload")
_WHOLE = ("slices", "least_slice")
_RATES = ("rate", "local_rate")


def read_model(path: Path, base: Model) -> Model:
    """Return `base` with the constants of a file.

    A constant that is one number for each protocol takes a mapping that names some of
    them, or one number for all.

    Raises
    ------
    InputError
        CS606: an unknown constant or protocol, or a value out of range; and whatever is
        wrong with the file as YAML.
    """
    document = read_document(path, WORDING)
    values: dict[str, Any] = {}
    sources = dict(base.sources)
    for name, value in document.data.items():
        if name not in NAMES:
            phrase = f"the model has no constant {name!r}"
            span = document.key(name)
            raise InputError(Diagnostic("CS606", phrase, span, help=did_you_mean(name, NAMES)))
        values[name] = _value(document, name, value, getattr(base, name))
        sources[name] = str(path)
    return replace(base, **values, sources=sources)


def _value(document: Document, name: str, value: Any, before: Any) -> Any:
    """Return a constant, checked against what it was."""
    if not isinstance(before, dict):
        return _number(document, (name,), value)
    if not isinstance(value, dict):
        return dict.fromkeys(PROTOCOLS, _number(document, (name,), value))
    after = dict(before)
    for protocol, number in value.items():
        if protocol not in PROTOCOLS:
            phrase = f"there is no protocol {protocol!r}"
            span = document.key(name, protocol)
            advice = did_you_mean(protocol, PROTOCOLS)
            raise InputError(Diagnostic("CS606", phrase, span, help=advice))
        after[protocol] = _number(document, (name, protocol), number)
    return after


def _number(document: Document, path: tuple[str, ...], value: Any) -> int | float:
    name = path[0]
    expected = "a number, zero or more"
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if name in _SHARES:
        expected, fits = "a share above 0, at most 1", fits and 0 < value <= 1
    elif name in _WHOLE:
        expected, fits = "a whole number from 1 on", fits and isinstance(value, int) and value >= 1
    elif name in _RATES:
        expected, fits = "a number above zero", fits and value > 0
    elif fits:
        fits = value >= 0
    if not fits:
        phrase = f"{'.'.join(path)} cannot be {value!r}"
        raise InputError(Diagnostic("CS606", phrase, document.at(*path), (f"expected {expected}",)))
    number: int | float = value
    return number
