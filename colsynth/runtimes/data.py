"""Data files that come with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def read_data(*path: str) -> Any:
    """Return what a YAML file of the package says; `path` is below ``colsynth/``."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("colsynth").joinpath(*path).read_text("utf-8")
    return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader, with or without libyaml
