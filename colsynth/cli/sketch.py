"""``colsynth sketch``: proposes sketches for a topology."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colsynth.cli import complete
from colsynth.cli._common import ForceOption, JsonOption, SuggestingGroup, answer_console, emit_json
from colsynth.cli._help import Command
from colsynth.cli.bundles import bundled
from colsynth.cli.machine import MachineOptions, TopologyArgument
from colsynth.cli.places import YAML, check_file
from colsynth.errors import Diagnostic, InputError, did_you_mean

if TYPE_CHECKING:
    from colsynth.sketches.suggest import Proposal

app = typer.Typer(
    name="sketch",
    help="Propose sketches of timed schedules.",
    cls=SuggestingGroup,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _group() -> None:
    """Propose sketches of timed schedules."""


@app.command(cls=Command)
@bundled
def suggest(
    *,
    topology: TopologyArgument,
    machine: MachineOptions,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick",
            metavar="NAME",
            autocompletion=complete.words("rails", "relays", "all", "box"),
            help="Proposal to print as YAML, e.g. rails.",
            show_default="a table of all",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the proposal to this file, e.g. rails.yaml; the first, without --pick.",
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Propose sketches from the rails, NICs and symmetries of a topology."""
    from colsynth.sketches.suggest import suggest as proposals
    from colsynth.writing import write_files

    if output is not None:
        check_file("--output", output, YAML, force)
    found = proposals(machine.read(topology).topology)
    chosen = _chosen(found, pick)
    if output is not None:
        write_files({output: chosen.text.encode()}, replace=force)
    if json:
        shown = found if pick is None else (chosen,)
        emit_json(
            {
                "sketches": [{"name": x.name, **_figures(x), "yaml": x.text} for x in shown],
                "file": None if output is None else str(output),
            }
        )
    elif output is not None:
        answer_console().print(f"{output}: {chosen.name}", soft_wrap=True)
    elif pick is not None:
        print(chosen.text, end="")
    else:
        _show(found)


def _chosen(found: tuple[Proposal, ...], name: str | None) -> Proposal:
    names = [proposal.name for proposal in found]
    if name is not None and name not in names:
        phrase = f"there is no proposal {name!r} for this topology"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(name, names)))
    return found[0 if name is None else names.index(name)]


def _figures(proposal: Proposal) -> dict[str, int | None]:
    sketch = proposal.sketch
    pairs = sketch.between
    return {
        "senders": None if pairs is None else len({source for source, _ in pairs}),
        "receivers": None if pairs is None else len({target for _, target in pairs}),
        "connections": None if pairs is None else len(pairs),
        "symmetries": len(sketch.symmetries),
    }


def _show(found: tuple[Proposal, ...]) -> None:
    """Print one line for each proposal."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_row("sketch", *_figures(found[0]))
    for proposal in found:
        cells = ("any" if x is None else str(x) for x in _figures(proposal).values())
        table.add_row(proposal.name, *cells)
    answer_console().print(table)
