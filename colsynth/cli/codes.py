"""The codes of diagnostics and rules, with their explanations."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

_RULES = "rules.yaml"


def explanations() -> dict[str, dict[str, Any]]:
    """Return every page by code, from all files of ``colsynth/explanations``."""
    return {code: page for pages in pages_by_room().values() for code, page in pages.items()}


def pages_by_room() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the pages by room, the part of colsynth that gives their codes; rules come last."""
    from colsynth.runtimes.data import read_data

    folder = files("colsynth").joinpath("explanations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    names.sort(key=lambda name: name == _RULES)
    return {name.removesuffix(".yaml"): read_data("explanations", name) or {} for name in names}
