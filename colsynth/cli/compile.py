"""``colsynth compile``: from a topology to verified schedule files."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli._options import (
    AnyCollectiveOption,
    ProtocolOption,
    RuntimeOption,
    SeedOption,
    SketchOption,
    TimedOptions,
    read_size,
)
from colsynth.cli.bundles import bundled
from colsynth.cli.compile_answer import show, show_times
from colsynth.cli.compile_options import (
    CopiesOptions,
    InsideOptions,
    MainSizeOption,
    MessagesOptions,
    SearchOptions,
)
from colsynth.cli.constants import ModelOption, given_model
from colsynth.cli.evaluations import JobsOption, jobs_or_cores
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import MembersOptions, told_groups
from colsynth.cli.output import Destination, write_stdout
from colsynth.cli.places import check_file
from colsynth.cli.progress import progress
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.api import Compilation

OutputOption = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="File to write (a.xml), directory for one file per mode (out/), or - for stdout.",
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="auto|both|in-place|out-of-place",
        autocompletion=complete.words("auto", "both", "in-place", "out-of-place"),
        help="Calls that the files serve; auto serves all that they can.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


@bundled
def compile_(
    *,
    topology: TopologyArgument,
    runtime: RuntimeOption,
    output: OutputOption,
    collective: AnyCollectiveOption = None,
    machine: MachineOptions,
    members: MembersOptions,
    sketch: SketchOption = None,
    search: SearchOptions,
    size: MainSizeOption = None,
    timed: TimedOptions,
    mode: ModeOption = "auto",
    copies: CopiesOptions,
    protocol: ProtocolOption = None,
    messages: MessagesOptions,
    inside: InsideOptions,
    model: ModelOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Compile a schedule, verify it, and write its file."""
    from colsynth import api

    destination = Destination.parse(output)
    constants = given_model(runtime, model)
    if json and destination.path is None:
        phrase = "--json and --output - both want stdout"
        raise InputError(Diagnostic("CS214", phrase, help="write the schedule to a file"))
    inside.check(api.pass_names(search.algorithm, inside.passes), destination, force)
    damage = machine.read(topology)
    problem = members.problem(damage.topology, collective, None, sketch, search.algorithm)
    told = told_groups(problem, runtime)
    several = destination.is_directory
    names = api.file_names(problem, runtime, mode, several)
    suffix = Path(names[0]).suffix
    for path in destination.paths(names):
        check_file("--output", path, suffix, force, or_folder=True)
    with progress() as show:
        done = api.compile(
            problem,
            runtime,
            **{**asdict(search), **asdict(timed), **asdict(copies)},
            jobs=jobs_or_cores(jobs),
            min_bytes=messages.least(),
            max_bytes=messages.most(),
            size=read_size("--size", size),
            mode=mode,
            several=several,
            protocol=protocol,
            passes=inside.passes,
            model=constants,
            seed=seed,
            progress=show,
            watch=inside.watch(force),
        )
    _write(done, destination, force)
    _answer(done, destination, {**failures_field(damage), **told}, json, inside.time_passes)


def _write(done: Compilation, destination: Destination, force: bool) -> None:
    if destination.path is None:
        write_stdout(done.artefacts[0].data)
        return
    files = destination.paths(tuple(artefact.name for artefact in done.artefacts))
    contents = (artefact.data for artefact in done.artefacts)
    write_files(dict(zip(files, contents, strict=True)), replace=force)


def _answer(
    done: Compilation,
    destination: Destination,
    extra: dict[str, Any],
    json: bool,
    time_passes: bool,
) -> None:
    """Print the answer."""
    files = destination.paths(tuple(artefact.name for artefact in done.artefacts))
    summary = {**done.summary(), "files": [str(path) for path in files]}
    if json:
        emit_json({**summary, **extra})
    else:
        show(summary, done, answer_console(None if files else sys.stderr))
        for note in done.notes:
            tell(f"note: {note}")
    if time_passes:
        show_times(summary["seconds"])
