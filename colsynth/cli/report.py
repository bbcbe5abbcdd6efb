"""``colsynth report``: one page that shows a schedule, a bundle, a survey or a comparison."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli._options import AnyCollectiveOption
from colsynth.cli.bundles import bundled
from colsynth.cli.compile_options import SearchOptions
from colsynth.cli.constants import ModelOption
from colsynth.cli.evaluations import DEFAULT_SIZES, EngineOptions, SizesOption, split
from colsynth.cli.machine import MachineOptions
from colsynth.cli.members import GroupOption
from colsynth.cli.places import PAGE, check_file
from colsynth.cli.progress import progress
from colsynth.cli.report_subjects import Wish, values_of
from colsynth.cli.simulate import AnyRuntimeOption, OnOption
from colsynth.cli.sizes import read_sizes
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError
from colsynth.writing import write_files

SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY|FILE|DIR",
        autocompletion=complete.topologies,
        help="What to show: a topology to compile for (dgx-a100), a schedule file (a.xml), a "
        "bundle of tune, a folder of survey, or what compare --json printed (c.json).",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE.html", help="Page to write.", show_default=False),
]
AgainstOption = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="NAMES",
        autocompletion=complete.several(complete.algorithms),
        help="Algorithms of libraries to show beside the schedule, e.g. ring,tree; none skips "
        "them; all takes every baseline of the collective.",
    ),
]
RootOption = Annotated[
    int | None,
    typer.Option(
        "--root",
        metavar="R",
        help="Root rank of a broadcast, reduce, scatter or gather, e.g. 3.",
        show_default="0",
    ),
]
FileOption = Annotated[
    str | None,
    typer.Option(
        "--file",
        metavar="NAME",
        help="File of a bundle whose schedule is shown.",
        show_default="the one for the largest messages",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing page.")]

_BUDGET = 12
"""Programs made for the algorithms of libraries: their usual settings, not a search."""


@bundled
def report(
    *,
    subject: SubjectArgument,
    topology: OnOption = None,
    collective: AnyCollectiveOption = None,
    runtime: AnyRuntimeOption = None,
    output: OutputOption = None,
    sizes: SizesOption = DEFAULT_SIZES,
    machine: MachineOptions,
    group: GroupOption = None,
    root: RootOption = None,
    search: SearchOptions,
    against: AgainstOption = "all",
    file: FileOption = None,
    model: ModelOption = None,
    engine: EngineOptions,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page: topology, schedule, times and limits."""
    from colsynth.cli.report_values import Asked
    from colsynth.report import check_installed, heading, render
    from colsynth.search.wish import configured

    wanted = read_sizes("--sizes", sizes)
    if output is None and not json:
        advice = "give -o report.html, or --json"
        raise InputError(Diagnostic("CS641", "where should the page go?", help=advice))
    if output is not None:
        check_installed()
        check_file("--output", output, PAGE, force)
    rivals = {"all": None, "none": ()}.get(against, split(against))
    for name in rivals or ():
        configured(name, {})  # refuses unknown algorithms
    with progress() as show, engine.started(show) as started:
        asked = Asked(wanted, rivals, _BUDGET, started, root, show)
        subjects = (topology, collective, runtime, root, machine, group, search)
        wish = Wish(*subjects, model, file, asked)
        values, inputs = values_of(subject, wish)
        values = heading(values, _command(subject, wish, sizes, against), inputs)
        if output is not None:
            show("drawing", 0, 0)
            write_files({output: render(values)}, replace=force)
    if json:
        emit_json(values)
    else:
        answer_console().print(f"{values['title']}: {output}", soft_wrap=True)
        for note in values.get("notes", ()):
            tell(f"note: {note}")


def _command(subject: str, wish: Wish, sizes: str, against: str) -> str:
    """Return the command that makes the page again; its place is not part of it."""
    words = ["colsynth", "report", subject]
    short = {
        "-t": wish.topology,
        "-c": wish.collective,
        "-r": wish.runtime,
        "-O": wish.search.level,
    }
    given: dict[str, Any] = {"group": wish.group, "root": wish.root}
    given |= {"file": wish.file, "model": wish.model}
    for bundle in (wish.machine, wish.search):
        given |= {one.name: getattr(bundle, one.name) for one in fields(bundle)}
    del given["level"]
    settings = given.pop("settings")
    usual = {"--sizes": (sizes, DEFAULT_SIZES), "--against": (against, "all")}
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    flags |= {name: value for name, (value, default) in usual.items() if value != default}
    for flag, value in {**short, **flags, "--set": settings}.items():
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None else [flag, str(each)]
    return shlex.join([*words, "-o", "report.html"])
