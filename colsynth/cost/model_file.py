"""Reads ``--model FILE.yaml``: constants that replace those of the default model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from colsynth.cost.model import NAMES, PROTOCOLS, Model, defaults_of
from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.topology.document import Document, Wording, read_document

WORDING = Wording(
    "model file",
    "a model: a mapping of constants to numbers",
    "`colsynth simulate --show-model` lists the constants",
    "give a YAML file such as `network_efficiency: 0.9`",
)

_SHARE = (0.001, 1, "a share from 0.001 to 1")
_RATE = (0.001, 10**6, "a number of GB/s from 0.001 to 1000000")
_TIME = (0, 10**6, "a number of microseconds from 0 to 1000000")
_RANGES: dict[str, tuple[float, float, str]] = {
    "link_efficiency": _SHARE,
    "network_efficiency": _SHARE,
    "payload": _SHARE,
    "rate": _RATE,
    "local_rate": _RATE,
    "operand": _SHARE,
    "slices": (1, 64, "a whole number from 1 to 64"),
    "least_slice": (1, 2**30, "a whole number of bytes from 1 to 2**30"),
}
"""Least, most and what to expect, of all that are no times; what is far outside is a slip."""
_WHOLE = ("slices", "least_slice")


def read_model(path: Path, base: Model, runtime: str | None = None) -> Model:
    """Return `base` with the constants of a file.

    What ``about`` holds is no constant: which runtime it was fitted for, and to which logs.
    A constant that is one number for each protocol takes a mapping that names some of
    them, or one number for all.

    Raises
    ------
    InputError
        CS606: an unknown constant or protocol, a value out of range, or constants of another
        runtime than `runtime`; and whatever is wrong with the file as YAML.
    """
    document = read_document(path, WORDING)
    values: dict[str, Any] = {}
    sources = dict(base.sources)
    for name, value in document.data.items():
        if name == "about":
            _check_runtime(document, base, runtime)
            continue
        if name not in NAMES:
            phrase = f"the model has no constant {name!r}"
            span = document.key(name)
            raise InputError(Diagnostic("CS606", phrase, span, help=did_you_mean(name, NAMES)))
        values[name] = _value(document, name, value, getattr(base, name))
        sources[name] = str(path)
    return replace(base, **values, sources=sources)


def _check_runtime(document: Document, base: Model, runtime: str | None) -> None:
    """Refuse constants that were fitted for a runtime whose own are others."""
    about = document.data["about"]
    fitted = about.get("runtime") if isinstance(about, dict) else None
    if runtime is None or fitted is None or defaults_of(str(fitted)) in (None, base):
        return
    phrase = f"the model was fitted for {fitted}, not for {runtime}"
    advice = f"give -r {fitted}, or calibrate with -r {runtime}"
    raise InputError(Diagnostic("CS606", phrase, document.at("about", "runtime"), help=advice))


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
    least, most, expected = _RANGES.get(path[0], _TIME)
    kinds = int if path[0] in _WHOLE else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        phrase = f"{'.'.join(path)} cannot be {value!r}"
        raise InputError(Diagnostic("CS606", phrase, document.at(*path), (f"expected {expected}",)))
    number: int | float = value
    return number
