"""Options and helpers that several commands share, and how answers are printed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup

from colsynth.cli._help import ReadableHelp
from colsynth.cli.streams import TrimmedStream
from colsynth.errors import did_you_mean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the answer as JSON.", show_default=False)
]

UsageError: Any = typer.BadParameter.__base__


class SuggestingGroup(ReadableHelp, TyperGroup):
    """A group of commands that names the nearest one to a mistyped name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that `args` name; otherwise raise a usage error with a suggestion."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and ctx.resilient_parsing:  # while a shell completes
            return name, None, args[1:]
        if name not in known and not name.startswith("-"):
            raise UsageError(f"there is no command {name!r}; {did_you_mean(name, known)}", ctx)
        return super().resolve_command(ctx, args)


def emit_json(value: Any) -> None:
    """Print a value as JSON on stdout, in ASCII, which every terminal accepts.

    A number that JSON lacks (NaN, infinity) is a defect of the caller: None stands for unknown.
    """
    # DEL is ASCII too, but a terminal should not get it; it only occurs in strings.
    print(json.dumps(value, indent=2, allow_nan=False).replace("\x7f", r"\u007f"))


def answer_console(stream: TextIO | None = None) -> Console:
    """Return a console for answers; it pads no lines and cuts them only on a terminal.

    Parameters
    ----------
    stream : TextIO, optional
        None is stdout.
    """
    from colsynth.cli.console import SafeConsole

    out = sys.stdout if stream is None else stream
    width = None if out.isatty() else 10_000
    file = cast("TextIO", TrimmedStream(out))
    return SafeConsole(file=file, width=width, highlight=False, markup=False, emoji=False)


def ruled_table(
    *heads: str, title: str | None = None, right: slice = slice(0), **style: Any
) -> Table:
    """Return a table with a rule below its heads; numbers stand in the columns on the `right`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # A title may be wider than its table, and would be wrapped to it.
    head = title and Text(title, "table.title", no_wrap=True, overflow="ignore")
    table = Table(*heads, title=head, box=box.SIMPLE_HEAD, pad_edge=False, **style)
    table.title_justify = "left"
    for column in table.columns[right]:
        column.justify = "right"
    return table
