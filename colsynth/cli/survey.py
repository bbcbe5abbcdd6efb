"""``colsynth survey``: the cost of every single failure, with a schedule for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._help import SEARCH
from colsynth.cli._options import (
    CollectiveOption,
    ProtocolOption,
    RuntimeOption,
    SeedOption,
    TreesOption,
)
from colsynth.cli.bundles import bundled
from colsynth.cli.constants import ModelOption, given_model
from colsynth.cli.evaluations import EngineOptions
from colsynth.cli.failure import report
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import OneGroupOptions, grouped
from colsynth.cli.places import check_folder
from colsynth.cli.progress import RESUMES, progress
from colsynth.errors import Diagnostic, NegativeFinding
from colsynth.text import listed
from colsynth.units import format_bandwidth, percent, plural

if TYPE_CHECKING:
    from fractions import Fraction

    from colsynth.survey import Bottleneck, Row, Survey

_COLUMNS = ("failure", "bound", "algbw", "loss", "bottleneck")
_SHOWN = 2
"""Names that a cell lists before the rest is counted."""

FailuresOption = Annotated[
    str,
    typer.Option(
        "--failures",
        metavar="KIND:1",
        autocompletion=complete.several(complete.words("links:1", "gpus:1", "nics:1")),
        help="Kinds of parts that fail, one part at a time: links:1, gpus:1, nics:1, or "
        "several, e.g. links:1,gpus:1.",
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Directory for schedules and table; the same command resumes an interrupted "
        "survey from it.",
        show_default=False,
    ),
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "-a",
        "--algorithm",
        metavar="ALGORITHM",
        autocompletion=complete.algorithms,
        help="Algorithm, as for compile, e.g. ring.",
        show_default="forest, or ten where trees cannot serve the collective",
        rich_help_panel=SEARCH,
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace a survey of another case in --output.")
]


@bundled
def survey(
    *,
    topology: TopologyArgument,
    collective: CollectiveOption,
    failures: FailuresOption = "links:1",
    runtime: RuntimeOption = "msccl",
    output: FolderOption = None,
    machine: MachineOptions,
    members: OneGroupOptions,
    algorithm: AlgorithmOption = None,
    trees: TreesOption = None,
    protocol: ProtocolOption = None,
    model: ModelOption = None,
    engine: EngineOptions,
    seed: SeedOption = 0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Compile a schedule for every single failure; print what each costs, worst first."""
    from colsynth import api

    if output is not None:
        check_folder("--output", output)
    constants = given_model(runtime, model)
    damage = machine.read(topology)
    group, told = grouped(damage.topology, members.group)
    kept = "nothing was kept; a survey with --output DIR can be resumed"
    outcome = kept if output is None else RESUMES
    with progress(outcome) as show, engine.started(show) as started:
        found = api.survey(
            api.make_problem(group, collective, members.root),
            failures,
            runtime=runtime,
            algorithm=algorithm,
            trees=trees,
            protocol=protocol,
            model=constants,
            seed=seed,
            folder=output,
            force=force,
            **started,
        )
    if json:
        place = {"folder": None if output is None else str(output)}
        emit_json({**found.describe(), **place, **failures_field(damage), **told})
    else:
        _show(found, output)
    without = tuple(row for row in (found.healthy, *found.rows) if row.refusal is not None)
    if without:  # the answer is complete; what follows goes to stderr
        raise typer.Exit(report(_unserved(without), as_json=False))


def _unserved(rows: tuple[Row, ...]) -> NegativeFinding:
    """Return the finding that names the failures without a schedule."""
    phrase = f"there is no schedule after {plural(len(rows), 'failure')}"
    notes = tuple(f"{row.failure or 'none'}: {row.refusal}" for row in rows)
    return NegativeFinding(Diagnostic("CS224", phrase, notes=notes))


def _show(found: Survey, output: Path | None) -> None:
    problem = found.case.problem
    console = answer_console()
    console.print(
        f"{problem.collective} on {problem.topology.name}, GB/s for {found.case.runtime}; "
        f"the healthy bound is {format_bandwidth(found.healthy.bound)}",
        soft_wrap=True,
    )
    table = ruled_table(*_COLUMNS, right=slice(1, 4))
    for row in found.rows:
        table.add_row(*_cells(row, found.loss(row)))
    table.add_section()
    table.add_row(*_cells(found.healthy, None))
    console.print(table)
    console.print(_totals(found, output), soft_wrap=True)


def _cells(row: Row, loss: Fraction | None) -> tuple[str, ...]:
    return (
        row.failure or "none",
        _figure(row.bound),
        "-" if row.algbw is None else _figure(row.algbw),
        "" if loss is None else f"{percent(loss):.2f} %",
        _remark(row),
    )


def _figure(bandwidth: Fraction) -> str:
    return f"{float(bandwidth / 10**9):.3f}"


def _remark(row: Row) -> str:
    """Return why there is no schedule; otherwise, where the bound is tight."""
    if row.refusal is not None:
        return row.refusal
    return "" if row.bottleneck is None else _where(row.bottleneck)


def _where(cut: Bottleneck) -> str:
    size = f"{plural(len(cut.links), 'link')}, {format_bandwidth(cut.bandwidth)}"
    if cut.allows is not None:
        size += f", which alone would allow {_figure(cut.allows)}"
    if len(cut.sets) == 1:
        return f"{cut.way} {listed(cut.sets[0], _SHOWN)}: {size}"
    alone = all(len(names) == 1 for names in cut.sets)
    return f"{cut.way} {len(cut.sets)} {'GPUs' if alone else 'sets of GPUs'}: {size}"


def _totals(found: Survey, output: Path | None) -> str:
    without = sum(row.refusal is not None for row in found.rows)
    kept = f", kept in {output}" if output is not None else ""
    made = plural(len(found.rows) - without, "failure")
    rest = f"; {without} without a schedule" if without else ""
    return f"verified schedules for {made}{rest}{kept}"
