"""Checks of the objects that functions of the API are given, which type checkers may not see."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Problem, Topology


def require_topology(given: object, caller: str) -> None:
    """Refuse another object than a topology, such as the name of one (CS200)."""
    if not isinstance(given, Topology):
        raise _refusal(given, f"{caller} takes a topology", "api.load_topology makes one")


def require_problem(given: object, caller: str) -> None:
    """Refuse another object than a problem, such as a topology (CS200)."""
    if not isinstance(given, Problem):
        raise _refusal(given, f"{caller} takes a problem", "api.make_problem makes one")


def require_request(given: object, caller: str) -> None:
    """Refuse another object than a request for cablings, such as a number of GPUs (CS200)."""
    from colsynth.cabling.request import Request

    if not isinstance(given, Request):
        raise _refusal(
            given, f"{caller} takes a request", "colsynth.cabling.request.Request is one"
        )


def _refusal(given: object, expected: str, advice: str) -> InputError:
    seen = repr(given) if isinstance(given, str) else f"an object of type {type(given).__name__}"
    return InputError(Diagnostic("CS200", f"{expected}, not {seen}", help=advice))
