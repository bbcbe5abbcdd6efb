"""Checks of the objects that functions of the API are given, which type checkers may not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from colsynth.errors import Diagnostic, InputError, is_whole, require_whole
from colsynth.model import Problem, Topology

Given = TypeVar("Given")
Item = TypeVar("Item")


def require_topology(given: object, caller: str) -> None:
    """Refuse another object than a topology, such as the name of one (CS200)."""
    if not isinstance(given, Topology):
        raise _refusal(given, f"{caller} takes a topology", "api.load_topology makes one")


def require_problem(given: object, caller: str) -> None:
    """Refuse another object than a problem, such as a topology (CS200)."""
    if not isinstance(given, Problem):
        raise _refusal(given, f"{caller} takes a problem", "api.make_problem makes one")


def require_request(given: object) -> None:
    """Refuse another object than a request for cablings, such as a number of GPUs (CS200)."""
    from colsynth.cabling.request import Request

    if not isinstance(given, Request):
        advice = "colsynth.cabling.request.Request is one"
        raise _refusal(given, "cablings takes a request", advice)


def require_kind(given: object, kind: type, expected: str, advice: str) -> None:
    """Refuse an object of another type (CS200); `expected` says which function takes what."""
    if not isinstance(given, kind):
        raise _refusal(given, expected, advice)


def require_bytes(given: bytes | bytearray | memoryview, caller: str) -> bytes:
    """Return the bytes of a file; refuse another object, such as its name (CS200)."""
    asked: object = given  # from Python it may be anything
    if not isinstance(asked, bytes | bytearray | memoryview):
        advice = "Path(NAME).read_bytes() returns the bytes of a file"
        raise _refusal(given, f"{caller} takes the bytes of a file", advice)
    return bytes(asked)


def require_callable(name: str, given: object) -> None:
    """Refuse what is neither a function nor None, which stands for none (CS200)."""
    if given is not None and not callable(given):
        raise _refusal(given, f"{name} takes a function", f"leave {name} out, or give one")


def require_executor(given: object) -> None:
    """Refuse what is neither an executor nor None, which stands for processes here (CS200)."""
    if given is not None and not callable(getattr(given, "submit", None)):
        advice = "leave executor out for processes on this machine"
        raise _refusal(given, "executor takes one of concurrent.futures", advice)


def require_text(name: str, given: object, example: str) -> None:
    """Refuse an option that is neither text nor left out, which is None (CS200)."""
    if given is not None:
        require_kind(given, str, f"{name} takes text", f"write {name}={example!r}")


def require_path(given: str | Path, caller: str) -> Path:
    """Return the path of a name; refuse another object (CS200)."""
    return _path(given, f"{caller} takes the name of a file")


def require_optional_path(name: str, given: str | Path | None) -> Path | None:
    """Return the path that an option gives, None without one; refuse another object (CS200)."""
    return None if given is None else _path(given, f"{name} takes a path")


def _path(given: object, expected: str) -> Path:
    if not isinstance(given, str | Path):
        raise _refusal(given, expected, "give a text or a Path")
    return Path(given)


def require_model(given: object) -> None:
    """Refuse what is neither a model of the simulator nor None, which stands for the default."""
    from colsynth.cost import Model

    if given is not None and not isinstance(given, Model):
        advice = "leave model out for the constants of the runtime"
        raise _refusal(given, "model takes a colsynth.cost.Model", advice)


def require_several(name: str, given: Iterable[Item], example: str) -> list[Item]:
    """Return the items of a sequence (CS200).

    A lone text, whose items are letters, is refused, and a mapping, whose items are keys alone.
    """
    asked: object = given  # from Python it may be anything
    if isinstance(asked, str | bytes | Mapping) or not isinstance(asked, Iterable):
        raise _refusal(given, f"{name} takes a sequence", f"write {name}={example}")
    return list(given)


def require_names(name: str, given: Iterable[str], example: str) -> list[str]:
    """Return the names of a sequence; refuse other items, and a lone name (CS200)."""
    names = require_several(name, given, example)
    for item in names:
        require_kind(item, str, f"{name} takes names", f"write {name}={example}")
    return names


def plain(given: Given) -> Given:
    """Return an integer of numpy as an int, which neither overflows nor lacks methods of ints."""
    return int(given) if is_whole(given) else given  # type: ignore[return-value]


def plain_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with integers of numpy as ints."""
    return {name: plain(value) for name, value in options.items()}


def whole_sizes(given: Iterable[int]) -> tuple[int, ...]:
    """Return message sizes as ints, ascending, each once; refuse what is no integer (CS210)."""
    sizes = require_several("sizes", given, "[2**20]")
    for size in sizes:
        require_whole("--sizes", size)
    return tuple(sorted({int(size) for size in sizes}))


def _refusal(given: object, expected: str, advice: str) -> InputError:
    seen = repr(given) if isinstance(given, str) else f"an object of type {type(given).__name__}"
    return InputError(Diagnostic("CS200", f"{expected}, not {seen}", help=advice))
