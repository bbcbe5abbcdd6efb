"""The layout of ``--help``: usage lines that can be typed, without types of Python."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any, TextIO, cast

from typer.core import TyperCommand

from colsynth.cli._values import convert_less
from colsynth.cli.complete import brief
from colsynth.cli.streams import TrimmedStream

TOPOLOGY, FAILURES = "Topology", "Failures"
MEMBERS, SEARCH, INSIDE = "Roots, groups and shards", "Search", "Look inside"
"""Headings of options; those with none come first."""

_UNLESS = {"collective": "custom", "file": "show_model", "topology": "show_model"}
"""Parameters that a command needs unless another one is given, by name."""


class ReadableHelp:
    """A mixin for commands and groups of commands; comes before their base class."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._needed: list[Any] = []
        """Options without which the command does not run."""
        params = {param.name: param for param in cast("Any", self).params}
        for name, param in params.items():
            _spell(param)
            convert_less(param)
            other = params.get(_UNLESS.get(name, ""))
            if other is not None and not param.required:
                param.help += f" Required unless {other.opts[0]} is given."
            if param.required or other is not None:
                self._needed.append(param)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option that shows the help."""
        option = cast("Any", super()).get_help_option(ctx)
        if option is not None:
            option.metavar = ""
            convert_less(option)
        return option

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return a usage line that works as typed: required options first, then the others."""
        pieces = cast("Any", super()).collect_usage_pieces(ctx)
        arguments = [x for x in cast("Any", self).params if x.param_type_name == "argument"]
        rest = pieces[1 + len(arguments) :]
        needed = [_needed_piece(x) for x in self._needed if x.param_type_name == "option"]
        return [*map(_argument_piece, arguments), *needed, pieces[0], *rest]

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the options and commands with this prefix, and the first sentence of each."""
        items = cast("Any", super()).shell_complete(ctx, incomplete)
        for item in items:
            item.help = brief(item.help or "")
        return items

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without trailing blanks."""
        with redirect_stdout(cast("TextIO", TrimmedStream(sys.stdout))):
            cast("Any", super()).format_help(ctx, formatter)


class Command(ReadableHelp, TyperCommand):
    """A command of the program."""


def _spell(param: Any) -> None:
    """Remove a metavar that repeats the type, and brackets around a default in words."""
    if param.param_type_name == "argument":
        param.display_type_rich = _nothing  # "FILE...", not "<list[Path]> FILE..."
    elif param.is_flag:
        param.metavar = ""
    if isinstance(param.show_default, str):
        param.help += rf" \[default: {param.show_default}]"
        param.show_default = False


def _nothing(ctx: Any) -> None:
    """Return no type to be shown."""


def _argument_piece(param: Any) -> str:
    name = str(param.display_name_raw)
    return name if param.required or param.name in _UNLESS else f"[{name}]"


def _needed_piece(param: Any) -> str:
    return f"{min(param.opts, key=len)} {param.metavar}"
