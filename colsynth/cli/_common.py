"""Options that several commands share, and how answers are printed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup

from colsynth.cli import complete
from colsynth.cli._help import TOPOLOGY, ReadableHelp
from colsynth.cli.streams import STDIN, TrimmedStream, is_stdin, read_stdin, tell
from colsynth.errors import Diagnostic, InputError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.model import Topology

TopologyArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        autocompletion=complete.topologies,
        help="Preset (dgx-a100), YAML file (lab.yaml), - for stdin, or generator (torus:4x4).",
        show_default=False,
    ),
]
NodesOption = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        metavar="N",
        help="Number of boxes, e.g. 4.",
        rich_help_panel=TOPOLOGY,
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Override a declared parameter of the topology, e.g. nic='50 GB/s'; bandwidths are "
        "wire rates in one direction. Repeatable.",
        rich_help_panel=TOPOLOGY,
        show_default=False,
    ),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="RATE",
        help="Wire rate of a generator's links in one direction, e.g. '25 GB/s', or one for each "
        "axis: '100,200,400 GB/s'.",
        rich_help_panel=TOPOLOGY,
        show_default="50 GB/s",
    ),
]
LatencyOption = Annotated[
    str | None,
    typer.Option(
        "--latency",
        metavar="TIME",
        help="Latency of a generator's links, e.g. '0.5 us', or one for each axis: '0.5,1,2 us'.",
        rich_help_panel=TOPOLOGY,
        show_default="0.7 us",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the answer as JSON.", show_default=False)
]

UsageError: Any = typer.BadParameter.__base__


class SuggestingGroup(ReadableHelp, TyperGroup):
    """A group of commands that names the nearest one to a mistyped name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return what `args` name; raise a usage error that suggests where they name nothing."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and ctx.resilient_parsing:  # while a shell completes
            return name, None, args[1:]
        if name not in known and not name.startswith("-"):
            raise UsageError(f"there is no command {name!r}; {did_you_mean(name, known)}", ctx)
        return super().resolve_command(ctx, args)


def load_topology(
    spec: str,
    nodes: int | None = None,
    settings: list[str] | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
) -> Topology:
    """Return the topology that the options of a command ask for.

    Raises
    ------
    InputError
        Whatever is wrong with them, or with the file.
    """
    from colsynth.cli.progress import progress
    from colsynth.reading import DESCRIPTION
    from colsynth.topology import load

    data = read_stdin(DESCRIPTION) if is_stdin(spec) else None
    given = parse_settings(settings or [])
    with progress("nothing was done", late=True) as show:
        found = load(
            spec if data is None else STDIN,
            nodes=nodes,
            settings=given,
            bandwidth=bandwidth,
            latency=latency,
            data=data,
            watch=show,
        )
    for note in found.notes:
        tell(f"note: {note}")
    return found


def parse_settings(texts: list[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a mapping; the last of equal names wins."""
    settings: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InputError(
                Diagnostic(
                    "CS128",
                    f"cannot read the setting {text!r}",
                    help="write --set NAME=VALUE, such as --set nic='12.5 GB/s'",
                )
            )
        settings[name.strip()] = value.strip()
    return settings


def emit_json(value: Any) -> None:
    """Print a value as JSON on stdout; ASCII, so that every terminal and file name will do."""
    # DEL is ASCII, but no terminal should get it either; it can only stand in a text.
    print(json.dumps(value, indent=2).replace("\x7f", r"\u007f"))


def answer_console(stream: TextIO | None = None) -> Console:
    """Return a console for answers, which pads no line and is only cut to a terminal's width.

    Parameters
    ----------
    stream : TextIO, optional
        Stdout without.
    """
    from colsynth.cli.console import SafeConsole

    out = sys.stdout if stream is None else stream
    width = None if out.isatty() else 10_000
    file = cast("TextIO", TrimmedStream(out))
    return SafeConsole(file=file, width=width, highlight=False, markup=False, emoji=False)
