"""Options that several commands share, and how answers are printed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from colsynth.cli.streams import STDIN, is_stdin, read_stdin
from colsynth.errors import Diagnostic, InputError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.model import Topology

TopologyArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        help="A preset (dgx-a100), a YAML file, - for stdin, or a generator (torus:4x4).",
        show_default=False,
    ),
]
NodesOption = Annotated[
    int | None,
    typer.Option("--nodes", metavar="N", help="Number of boxes.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Override a declared parameter; may be repeated.",
        show_default=False,
    ),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="TEXT",
        help='Of every link of a generator, such as "25 GB/s".',
        show_default="50 GB/s",
    ),
]
LatencyOption = Annotated[
    str | None,
    typer.Option(
        "--latency",
        metavar="TEXT",
        help='Of every link of a generator, such as "0.5 us".',
        show_default="0.7 us",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print a machine-readable answer.", show_default=False)
]

UsageError: Any = typer.BadParameter.__base__


class SuggestingGroup(TyperGroup):
    """A group of commands that names the nearest one to a mistyped name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return what `args` name; raise a usage error that suggests where they name nothing."""
        name, known = args[0], self.list_commands(ctx)
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
    from colsynth.topology import load
    from colsynth.topology.document import MAX_BYTES

    data = read_stdin(MAX_BYTES + 1) if is_stdin(spec) else None
    return load(
        spec if data is None else STDIN,
        nodes=nodes,
        settings=parse_settings(settings or []),
        bandwidth=bandwidth,
        latency=latency,
        data=data,
    )


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
    print(json.dumps(value, indent=2))


def answer_console() -> Console:
    """Return a console for answers: stdout, never cut to a width when it is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    return Console(width=width, highlight=False, markup=False, emoji=False)
