"""``colsynth compare``: algorithms beside each other and the bound, by message size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._options import CollectiveOption, RuntimeOption
from colsynth.cli.bundles import bundled
from colsynth.cli.constants import ModelOption, given_model
from colsynth.cli.evaluations import (
    DEFAULT_SIZES,
    EngineOptions,
    EvaluationOptions,
    SizesOption,
)
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import OneGroupOptions, grouped
from colsynth.cli.places import check_plot
from colsynth.cli.progress import progress
from colsynth.cli.sizes import read_sizes
from colsynth.runtimes.selection import ELEMENT_BYTES
from colsynth.units import format_bandwidth, format_most, format_size, gb_per_s, plural
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.tuning import Comparison


@bundled
def compare(
    *,
    topology: TopologyArgument,
    collective: CollectiveOption,
    runtime: RuntimeOption = "msccl",
    sizes: SizesOption = DEFAULT_SIZES,
    machine: MachineOptions,
    members: OneGroupOptions,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg|FILE.png",
            help="Write a plot of bandwidth over message size, e.g. allreduce.svg.",
            show_default=False,
        ),
    ] = None,
    evaluations: EvaluationOptions,
    engine: EngineOptions,
    model: ModelOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing plot.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare the predicted bandwidth of all algorithms at every message size."""
    from colsynth import api

    wanted = read_sizes("--sizes", sizes)
    if plot is not None:
        check_plot(plot, force)
    constants = given_model(runtime, model)
    damage = machine.read(topology)
    group, told = grouped(damage.topology, members.group)
    problem = api.make_problem(group, collective, members.root)
    with progress() as show, engine.started(show) as started:
        found = api.compare(
            problem,
            wanted,
            runtime=runtime,
            algorithms=evaluations.names(),
            budget=evaluations.budget,
            model=constants,
            seed=evaluations.seed,
            **started,
        )
    if plot is not None:
        write_files({plot: _plot(found, plot.suffix.lower())}, replace=force)
    if json:
        emit_json({**comparison_object(found), **failures_field(damage), **told})
    else:
        _show(found)


def comparison_object(found: Comparison) -> dict[str, Any]:
    """Return a comparison for ``--json``."""
    case = found.case
    return {
        "topology": case.problem.topology.name,
        "collective": case.problem.collective.value,
        "sizes_bytes": list(case.sizes),
        "algbw_gb_per_s": {
            name: [None if x is None else gb_per_s(Fraction(x)) for x in found.algbw(name)]
            for name in found.winners
        },
        "bound_gb_per_s": gb_per_s(found.bound),
        "best": list(found.best),
        "over_library": [found.over_library(i) for i in range(len(case.sizes))],
        "settings": {
            name: [None if m is None else str(m.plan) for m in row]
            for name, row in found.winners.items()
        },
        "not_selected": {name: list(row) for name, row in found.unselected.items()},
        "left_out": found.left_out,
        "untried": list(found.untried),
        "unfit": list(found.unfit),
        "budget_spent": list(found.spent),
        "runtime": case.runtime,
    }


def _show(found: Comparison) -> None:
    case = found.case
    console = answer_console()
    console.print(
        f"{case.problem.collective} on {case.problem.topology.name}, algbw in GB/s as predicted "
        f"for {case.runtime}; the bound is {format_bandwidth(found.bound)}"
    )
    table = ruled_table("size", *found.winners, "best", "gain")
    for place, size in enumerate(case.sizes):
        cells = (_cell(found, name, place) for name in found.winners)
        table.add_row(format_size(size), *cells, found.best[place] or "-", _gain(found, place))
    console.print(table)
    for text in _unselected(found):
        console.print(text, soft_wrap=True)
    names = ", ".join(found.library)
    where = f"; as {case.profile.library} runs them" if found.elsewhere else ""
    theirs = f"of the best over the library's own algorithms ({names}{where})"
    unknown = "unknown, since no algorithm of the library is among these"
    console.print(f"gain: {theirs if found.library else unknown}")
    if any(found.spent):
        where = f"{sum(found.spent)} of {plural(len(found.spent), 'size')}"
        early = ", before the library's algorithms had all protocols" if any(found.starved) else ""
        console.print(f"budget: it ended the search at {where}{early}; --budget N sets another")
    for name, reason in found.left_out.items():
        console.print(f"left out: {name}: {reason}", soft_wrap=True)
    for kept, why in (
        (found.unfit, "not for this runtime, machine or collective, or never the fastest there"),
        (found.untried, "tried only if --algorithms names it"),
    ):
        if kept:
            console.print(f"not tried: {', '.join(kept)}: {why}", soft_wrap=True)


def _unselected(found: Comparison) -> Iterator[str]:
    """Yield why no call of some sizes would use a file."""
    case = found.case
    most = case.profile.default_max_bytes
    beyond = [most is not None and size > most for size in case.sizes]
    rows = list(zip(*found.unselected.values(), strict=True))
    if most is not None and any(beyond):
        yield f"not selected: {case.runtime} uses files for messages {format_most(most)}"
    if any(any(row) and not far for row, far in zip(rows, beyond, strict=True)):
        text = f"not selected: {case.runtime} uses none of its files for such a message, since"
        yield f"{text} their chunks do not divide its {ELEMENT_BYTES}-byte elements"


def _cell(found: Comparison, name: str, place: int) -> str:
    if found.unselected[name][place]:
        return "not selected"
    algbw = found.algbw(name)[place]
    return "-" if algbw is None else f"{algbw / 1e9:.4g}"


def _gain(found: Comparison, place: int) -> str:
    gain = found.over_library(place)
    return "-" if gain is None else f"{100 * gain:+.1f} %"


def _plot(found: Comparison, suffix: str) -> bytes:
    """Return bandwidth over size as a picture, with the bound as a level line."""
    from colsynth.report import Series, picture, plot

    sizes = found.case.sizes
    ceiling = float(found.bound) / 1e9
    series = [Series("bound", tuple((float(size), ceiling) for size in sizes), marked=False)]
    for number, name in enumerate(found.winners, 1):
        pairs = zip(sizes, found.algbw(name), strict=True)
        points = tuple((float(size), x / 1e9) for size, x in pairs if x)
        series.append(Series(name, points, colour=number))
    problem = found.case.problem
    title = f"{problem.collective} on {problem.topology.name}"
    note = f"predicted for {found.case.runtime}, each algorithm with its best settings"
    spec = plot(title, note, ("message size", "algbw, GB/s"), tuple(series), sizes=True)
    return picture(spec, suffix)
