"""The constants of the simulator with their sources: ``colsynth simulate --show-model``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._common import answer_console, emit_json

if TYPE_CHECKING:
    from colsynth.cost import Model
    from colsynth.runtimes import Profile

ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE.yaml",
        help="YAML file with constants that replace those of the runtime, e.g. lab-model.yaml; "
        "'colsynth calibrate' writes one.",
        show_default=False,
    ),
]

UNITS = {
    "rate": "GB/s",
    "local_rate": "GB/s",
    "launch": "us",
    "step": "us",
    "hop": "us",
    "network_hop": "us",
    "wait": "us",
    "round": "us",
    "post": "us",
    "least_slice": "bytes",
}


def read_constants(target: Profile, path: Path | None) -> Model:
    """Return the model of a runtime, with the replacements of a ``--model`` file."""
    from colsynth.cost import default_model
    from colsynth.cost.model_file import read_model

    base = default_model(target)
    return base if path is None else read_model(path, base, target.name)


def given_model(runtime: str, path: Path | None) -> Model | None:
    """Return the model of a ``--model`` file for a runtime; None without a file."""
    from colsynth.runtimes import profile

    return None if path is None else read_constants(profile(runtime), path)


def show_constants(runtime: str | None, path: Path | None, json: bool) -> None:
    """Print the constants of the model of one runtime, or of all; as JSON, a list of models."""
    from colsynth.runtimes import profile, profiles

    shown = profiles() if runtime is None else (profile(runtime),)
    models = [(found.name, read_constants(found, path)) for found in shown]
    if json:
        objects = [_as_object(*pair) for pair in models]
        emit_json(objects if runtime is None else objects[0])
        return
    for name, model in models:
        _show(name, model)


def _as_object(runtime: str, found: Model) -> dict[str, Any]:
    from colsynth.cost import NAMES

    constants = {
        name: {
            "value": getattr(found, name),
            "unit": UNITS.get(name),
            "source": found.sources[name],
        }
        for name in NAMES
    }
    return {"runtime": runtime, "model": constants}


def _show(runtime: str, found: Model) -> None:
    from rich.table import Table

    from colsynth.cost import NAMES

    table = Table.grid(padding=(0, 2))
    for name in NAMES:
        value = getattr(found, name)
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for place, (protocol, number) in enumerate(rows):
            words = f"{number:g} {UNITS.get(name, '')}".strip()
            source = "" if place else found.sources[name]
            table.add_row("" if place else name, protocol, words, source)
    answer_console().print(f"model of {runtime}")
    answer_console().print(table)
