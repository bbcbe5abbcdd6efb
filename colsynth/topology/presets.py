"""The machines that come with colsynth: YAML files in ``topologies/``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import colsynth
from colsynth.errors import Diagnostic, InputError, did_you_mean, same_name
from colsynth.topology.decode import decode
from colsynth.topology.document import read_document
from colsynth.topology.graphs.examples import EXAMPLES


@dataclass(frozen=True, slots=True)
class Preset:
    """A shipped machine.

    Parameters
    ----------
    name : str
        Its file is NAME.yaml.
    aliases : tuple of str
    title : str
    path : Path
    parameters : tuple of (str, str)
        What ``--set`` may change, and the default.
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    path: Path
    parameters: tuple[tuple[str, str], ...] = ()


def folder() -> Path:
    """Return the folder of the presets: inside an installed package, or in the source tree."""
    package = Path(colsynth.__file__).resolve().parent
    shipped = package / "_topologies"
    return shipped if shipped.is_dir() else package.parent / "topologies"


def presets() -> tuple[Preset, ...]:
    """Return the shipped machines, by name."""
    return tuple(_describe(path) for path in sorted(folder().glob("*.yaml")))


def preset_path(name: str) -> Path:
    """Return the file of a preset, by name or alias.

    Raises
    ------
    InputError
        No preset is called so.
    """
    known = sorted(folder().glob("*.yaml"))
    for path in known:
        if path.stem == name:
            return path
    described = [_describe(path) for path in known]
    for preset in described:
        if name in preset.aliases:
            return preset.path
    words = [word for preset in described for word in (preset.name, *preset.aliases)]
    raise InputError(
        Diagnostic(
            "CS120",
            f"unknown topology {name!r}",
            notes=("expected a preset, a YAML file, or a generator such as ring:8",),
            help=_advice(name, words),
        )
    )


def _advice(name: str, words: list[str]) -> str:
    if Path(name).is_file():
        return f"write ./{name} to mean the file of this name"
    examples = {example.partition(":")[0]: example for example in EXAMPLES}
    kind = same_name(name, examples)
    return f"give its size, such as {examples[kind]}" if kind else did_you_mean(name, words)


def _describe(path: Path) -> Preset:
    form = decode(read_document(path))
    aliases: tuple[str, ...] = tuple(getattr(form, "aliases", ()))
    parameters = getattr(form, "parameters", {})
    declared = tuple((name, str(value)) for name, value in parameters.items())
    return Preset(form.name, aliases, form.title, path, declared)
