"""What a problem takes from its sketch where nobody says otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective, Problem, Sketch

_IN_SHARES = (
    Collective.ALLGATHER,
    Collective.REDUCE_SCATTER,
    Collective.SCATTER,
    Collective.GATHER,
)
"""Collectives whose message is made of the shares of all GPUs."""


def sketched(problem: Problem, sketch: Sketch) -> Problem:
    """Return a problem that keeps to a sketch.

    Raises
    ------
    InputError
        CS217 beside process groups.
    """
    if problem.groups:
        phrase = "a sketch is about all GPUs of a topology, and does not go with process groups"
        raise InputError(Diagnostic("CS217", phrase, help="leave --group or --sketch out"))
    return replace(problem, sketch=sketch)


def defaults(problem: Problem) -> dict[str, Any]:
    """Return the options ``size`` and ``chunks_per_gpu`` that a sketch states."""
    sketch = problem.sketch
    if sketch is None:
        return {}
    found = {} if sketch.chunks is None else {"chunks_per_gpu": sketch.chunks}
    if sketch.share is not None:
        times = problem.topology.size if problem.collective in _IN_SHARES else 1
        found["size"] = sketch.share * times
    return found


def unused(sketch: Sketch, algorithm: str | None) -> str | None:
    """Return the wishes of a sketch that an algorithm does not look at; None if there are none."""
    wishes = {
        "in-order": sketch.in_order,
        "inside-boxes: connections": sketch.connections is not None,
        "symmetries": bool(sketch.symmetries) and algorithm != "exact",
    }
    left = [name for name, wished in wishes.items() if wished]
    return (
        f"{sketch.name}: -a {algorithm or 'ten'} does not look at {', '.join(left)}"
        if left
        else None
    )
