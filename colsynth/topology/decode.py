"""Document -> Compact or Flat: which form a topology file has, and its own rules."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.document import Document
from colsynth.topology.schema import Compact, Flat
from colsynth.topology.shape import convert, keys_of, unknown_key


def decode(document: Document) -> Compact | Flat:
    """Return what a topology file says.

    Raises
    ------
    InputError
        A key is unknown or missing, or a value has the wrong type.
    """
    data = document.data
    form: type[Compact | Flat] = Compact if "box" in data else Flat
    if "box" not in data and "nodes" not in data:
        _check_keys(document)
        raise InputError(
            Diagnostic(
                "CS107",
                "neither 'box' nor 'nodes' is given",
                document.at(),
                ("'box' opens the compact form, 'nodes' and 'links' the flat form",),
            )
        )
    _check_parameters(document)
    found = convert(document, form)
    _check_name(document, found.name)
    return found


def _check_name(document: Document, name: str) -> None:
    """Refuse what would change the terminal or the lines of every answer."""
    if not name.isprintable() or name != name.strip():
        phrase = f"name {name!r} is not plain printable text"
        raise InputError(Diagnostic("CS108", phrase, document.at("name")))


def _check_keys(document: Document) -> None:
    known = sorted({*keys_of(Compact, ()), *keys_of(Flat, ())})
    for key in document.data:
        if key not in known:
            raise unknown_key(document, (), key, known)


def _check_parameters(document: Document) -> None:
    """Check values here: msgspec does not name the key of a mapping's bad value."""
    parameters = document.data.get("parameters")
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        kinds = "a number, a bandwidth, a latency or an expression"
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InputError(
                Diagnostic(
                    "CS108",
                    f"expected {kinds} for parameter {name!r}",
                    document.at("parameters", name),
                )
            )
