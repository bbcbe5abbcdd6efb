"""Shell completion: the values of options and arguments, and the scripts of shells.

A callback runs at every press of the tab key, so it imports only what it needs.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from textwrap import shorten
from typing import Annotated, Any

import typer

Words = list[str] | list[tuple[str, str]]
Callback = Callable[[], Words]

_SHOW, _INSTALL = "--show-completion", "--install-completion"
_VARIABLE = "_COLSYNTH_COMPLETE"
"""Set by the scripts; the program then answers with words instead of running a command."""


_LONGEST = 72
"""Letters of what stands beside a word."""


class Shell(StrEnum):
    """The shells that have a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def topologies() -> Words:
    """Return presets, their aliases, and generators; the shell completes files."""
    from colsynth.topology import presets
    from colsynth.topology.graphs.examples import EXAMPLES

    found = presets()
    named = [
        (word, brief(preset.title)) for preset in found for word in (preset.name, *preset.aliases)
    ]
    return [*named, *((example, "generator") for example in EXAMPLES)]


def collectives() -> Words:
    """Return the named collectives."""
    from colsynth.model import Collective

    return [item.value for item in Collective if item is not Collective.CUSTOM]


def runtimes() -> Words:
    """Return the runtimes with their titles."""
    from colsynth.runtimes import profiles

    return [(found.name, brief(found.title)) for found in profiles()]


def algorithms() -> Words:
    """Return the algorithms that have a pipeline."""
    from colsynth.pipeline.registry import ALGORITHMS

    return list(ALGORITHMS)


def any_algorithm() -> Words:
    """Return the algorithms, and auto."""
    return ["auto", *(str(word) for word in algorithms())]


def passes() -> Words:
    """Return the passes."""
    from colsynth.pipeline.registry import DEFAULT

    return list(DEFAULT.names())


def codes() -> Words:
    """Return the codes of diagnostics and rules with their titles."""
    from colsynth.cli.codes import explanations

    return [(code, brief(page["title"])) for code, page in explanations().items()]


def words(*choices: str) -> Callback:
    """Return a callback that returns fixed words."""
    return lambda: list(choices)


def brief(text: str) -> str:
    """Return the first sentence, on one line. typer breaks longer text, and shells would take the
    rest for further words.
    """
    return shorten(text.partition(". ")[0], _LONGEST, placeholder=" ...")


def several(callback: Callback) -> Callable[[str], list[str]]:
    """Return a callback that completes the last name of a comma-separated list."""

    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",")
        named = _names(callback())
        return [f"{before}{comma}{name}" for name in named if name not in before.split(",")]

    return complete


def _names(found: Iterable[Any]) -> list[str]:
    return [item if isinstance(item, str) else item[0] for item in found]


def prepare_completion() -> None:
    """Answer a shell that asks for completions; otherwise do nothing."""
    if _VARIABLE in os.environ:
        for name in ("COMP_WORDS", "COMP_CWORD", "_TYPER_COMPLETE_ARGS"):
            os.environ.setdefault(name, "0" if name == "COMP_CWORD" else "")  # typer needs them
        _typer().completion_init()


def with_shell(arguments: list[str]) -> list[str]:
    """Return arguments; an option that lacks its shell gets the name of the current one."""
    if len(arguments) != 1 or arguments[0] not in (_SHOW, _INSTALL):
        return arguments
    shellingham: Any = importlib.import_module("shellingham")  # typer's, and without types
    with suppress(shellingham.ShellDetectionFailure):
        return [*arguments, shellingham.detect_shell()[0]]
    return arguments


def _show(context: typer.Context, shell: Shell | None) -> None:
    """Print the script of a shell, and exit."""
    if shell is not None and not context.resilient_parsing:
        script = _typer().get_completion_script
        typer.echo(script(prog_name="colsynth", complete_var=_VARIABLE, shell=shell.value))
        raise typer.Exit


def _install(context: typer.Context, shell: Shell | None) -> None:
    """Install the script of a shell, and exit."""
    if shell is not None and not context.resilient_parsing:
        found = _typer().install(shell.value, prog_name="colsynth", complete_var=_VARIABLE)
        typer.echo(f"{shell} completion is in {found[1]}; shells that you start now use it")
        raise typer.Exit


def _typer() -> Any:
    """Return typer's module for shells, whose names are not declared as exports."""
    return importlib.import_module("typer.completion")


ShowOption = Annotated[
    Shell | None,
    typer.Option(
        _SHOW,
        metavar="[SHELL]",
        callback=_show,
        is_eager=True,
        help="Print the completion script of bash, zsh, fish or powershell; of this shell "
        "without SHELL.",
        show_default=False,
    ),
]
InstallOption = Annotated[
    Shell | None,
    typer.Option(
        _INSTALL,
        metavar="[SHELL]",
        callback=_install,
        is_eager=True,
        help="Install the completion script of SHELL.",
        show_default=False,
    ),
]
