"""``colsynth report``: one page that shows a schedule, a bundle, a survey or a comparison."""

from __future__ import annotations

import json as json_text
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli._options import AnyCollectiveOption
from colsynth.cli.bundles import bundled
from colsynth.cli.compile_options import SearchOptions
from colsynth.cli.constants import ModelOption, read_constants
from colsynth.cli.evaluations import DEFAULT_SIZES, EngineOptions, SizesOption, split
from colsynth.cli.machine import MachineOptions
from colsynth.cli.members import GroupOption, grouped
from colsynth.cli.places import PAGE, check_file
from colsynth.cli.progress import progress
from colsynth.cli.simulate import AnyRuntimeOption, OnOption
from colsynth.cli.sizes import read_sizes
from colsynth.cli.verify import read_schedule
from colsynth.errors import Diagnostic, InputError, Span
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.cli.report_values import Asked, Values
    from colsynth.cost import Model
    from colsynth.model import Problem, Topology
    from colsynth.simulate import Source

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


@dataclass(frozen=True)
class _Wish:
    """The options that say what is shown."""

    topology: str | None
    collective: str | None
    runtime: str | None
    root: int | None
    machine: MachineOptions
    group: str | None
    search: SearchOptions
    model: Path | None
    file: str | None
    asked: Asked

    def place(self, name: str) -> Topology:
        """Return the topology of a name, or of a process group on it."""
        return grouped(self.machine.read(name).topology, self.group)[0]


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
        wish = _Wish(*subjects, model, file, asked)
        values, inputs = _values(subject, wish)
        values = heading(values, _command(subject, wish, sizes, against), inputs)
        if output is not None:
            show("drawing", 0, 0)
            write_files({output: render(values)}, replace=force)
    if json:
        emit_json(values)
    else:
        answer_console().print(f"{values['title']}: {output}", soft_wrap=True)


Found = tuple["Values", dict[str, bytes]]


def _values(subject: str, wish: _Wish) -> Found:
    """Return the values of what a subject is, and the bytes they were made of."""
    from colsynth import reading
    from colsynth.cli.report_values import of_comparison

    path = Path(subject)
    if path.is_dir():
        return _folder(path, wish)
    if path.suffix in {".xml", ".json"} and path.is_file():
        _, data = read_schedule(path)
        if path.suffix == ".json" and (found := _comparison(data)):
            return of_comparison(found), {path.name: data}
        return _of_file(path.name, data, wish)
    if path.suffix in {".xml", ".json"}:
        reading.read_whole(path, reading.SCHEDULE, "CS502")
    if path.suffix == ".npz":
        phrase = f"{subject} is a timed schedule, not a program of a runtime"
        advice = "compile one: colsynth report TOPOLOGY -c allgather -r msccl -a ten -o report.html"
        raise InputError(Diagnostic("CS641", phrase, help=advice))
    return _compiled(subject, wish)


def _comparison(data: bytes) -> Values | None:
    """Return what ``compare --json`` printed; None for another document."""
    try:
        found = json_text.loads(data)
    except ValueError:
        return None
    keys = {"algbw_gb_per_s", "bound_gb_per_s", "sizes_bytes", "best"}
    return found if isinstance(found, dict) and keys <= set(found) else None


def _compiled(subject: str, wish: _Wish) -> Found:
    """Compile for a topology, and show the file."""
    from colsynth import api
    from colsynth.runtimes import profile
    from colsynth.simulate import read_source

    place = wish.place(subject)
    if wish.runtime is None:
        advice = f"colsynth report {subject} -c allreduce -r msccl -o report.html"
        raise InputError(Diagnostic("CS641", "for which runtime?", help=advice))
    constants = read_constants(profile(wish.runtime), wish.model)
    problem = api.make_problem(place, wish.collective, wish.root)
    done = api.compile(
        problem,
        wish.runtime,
        **asdict(wish.search),
        jobs=wish.asked.engine["jobs"],
        several=False,
        model=constants,
        progress=wish.asked.show,
    )
    artefact, summary = done.artefacts[0], done.summary()
    source = read_source(artefact.data, profile(wish.runtime), artefact.name)
    values, inputs = _shown(source, problem, constants, wish, artefact.data, place)
    told = {key: summary[key] for key in ("algorithm", "settings", "algbw_gb_per_s", "gap")}
    notes = [*values.get("notes", []), *(f"compile: {note}" for note in done.notes)]
    return {**values, "compiled": told, "notes": notes}, inputs


def _of_file(name: str, data: bytes, wish: _Wish) -> Found:
    """Show a schedule file, of colsynth or of others."""
    from colsynth.runtimes import profile
    from colsynth.simulate import find_runtime, read_source

    place = _placed(name, wish)
    if wish.runtime is None:
        source = find_runtime(data, name)
    else:
        source = read_source(data, profile(wish.runtime), name)
    constants = read_constants(source.profile, wish.model)
    return _shown(source, _problem_of(source, place, wish), constants, wish, data, place)


def _problem_of(source: Source, place: Topology, wish: _Wish) -> Any:
    """Return what a file is for; None for a collective of its own."""
    from colsynth import api
    from colsynth.model import Collective

    collective = source.program.header.collective
    if collective is Collective.CUSTOM:
        return None
    return api.make_problem(place, collective.value, wish.root)


def _placed(name: str, wish: _Wish) -> Topology:
    """Return the topology that was given for a file or folder."""
    if wish.topology is None:
        advice = f"colsynth report {name} -t dgx-a100 --nodes 2 -o report.html"
        raise InputError(Diagnostic("CS641", "on which topology?", Span(name), help=advice))
    return wish.place(wish.topology)


def _shown(
    source: Source,
    problem: Problem | None,
    constants: Model,
    wish: _Wish,
    data: bytes,
    place: Topology,
) -> Found:
    """Return everything about one program."""
    from colsynth.cli.report_values import of_problem, of_program

    program = of_program(source, place, constants, wish.asked)
    values = {
        "kind": "schedule",
        "title": f"{program['collective']} on {place.name}, for {source.profile.name}",
        **({} if problem is None else of_problem(problem, source, constants, wish.asked)),
    }
    notes = [*values.get("notes", []), *program.get("notes", [])]
    inputs = {f"topology {place.name}": repr(place).encode(), source.subject: data}
    return {**values, **program, "notes": notes}, inputs


def _folder(path: Path, wish: _Wish) -> Found:
    """Show a bundle or a survey."""
    from colsynth import reading

    for name, show in (("manifest.json", _bundle), ("survey.json", _survey)):
        if (path / name).is_file():
            data = reading.read_whole(path / name, reading.MANIFEST, "CS215")
            try:
                found = json_text.loads(data)
                return show(path, found, {name: data}, wish)
            except (ValueError, KeyError, TypeError) as fault:
                phrase = f"cannot read {name}: {fault}"
                raise InputError(Diagnostic("CS215", phrase, Span(str(path / name)))) from fault
    phrase = f"{path} is neither a bundle of tune nor a folder of survey"
    advice = "name a folder with manifest.json or survey.json, or a schedule file"
    raise InputError(Diagnostic("CS641", phrase, help=advice))


def _bundle(path: Path, manifest: Values, inputs: dict[str, bytes], wish: _Wish) -> Found:
    """Show the files of a bundle, and the schedule of one."""
    from colsynth.cli.report_values import files_of
    from colsynth.runtimes import profile
    from colsynth.simulate import read_source

    place, files = _placed(str(path), wish), manifest["files"]
    named = {Path(entry["path"]).name: entry for entry in files}
    entry = max(files, key=lambda one: one["max_bytes"], default=None)
    if wish.file is not None:
        if wish.file not in named:
            advice = f"there are {', '.join(named) or 'none'}"
            raise InputError(Diagnostic("CS641", f"there is no file {wish.file}", help=advice))
        entry = named[wish.file]
    values: Values = {}
    if entry is not None:
        name, data = read_schedule(path / entry["path"])
        source = read_source(data, profile(manifest["inputs"]["runtime"]), Path(name).name)
        constants = read_constants(source.profile, wish.model)
        problem = _problem_of(source, place, wish)
        values, more = _shown(source, problem, constants, wish, data, place)
        inputs |= more
    of = manifest["inputs"]
    title = f"Bundle for {', '.join(of['collectives'])} on {place.name}, {of['runtime']}"
    bundle = {key: manifest[key] for key in ("files", "left_to_library", "left_out")}
    shown = {"kind": "bundle", "title": title, "bundle": bundle}
    if entry is not None:
        shown["predicted"] = files_of(manifest, entry)
    return {**values, **shown, "shown_file": None if entry is None else entry["path"]}, inputs


def _survey(path: Path, table: Values, inputs: dict[str, bytes], wish: _Wish) -> Found:
    """Show what every failure of a survey costs."""
    from colsynth.cli.report_values import losses_of
    from colsynth.report import describe_machine

    place = _placed(str(path), wish)
    title = f"Failures of {place.name}: {table['collective']}"
    inputs |= {f"topology {place.name}": repr(place).encode()}
    values = {"survey": table, "machine": describe_machine(place)}
    return {"kind": "survey", "title": title, **values, "losses": losses_of(table, place)}, inputs


def _command(subject: str, wish: _Wish, sizes: str, against: str) -> str:
    """Return the command that makes the page again; its place is not part of it."""
    words = ["colsynth", "report", subject]
    short = {"-t": wish.topology, "-c": wish.collective, "-r": wish.runtime}
    given: dict[str, Any] = {"group": wish.group, "root": wish.root}
    given |= {"file": wish.file, "model": wish.model}
    for bundle in (wish.machine, wish.search):
        given |= {one.name: getattr(bundle, one.name) for one in fields(bundle)}
    level, settings = given.pop("level"), given.pop("settings")
    usual = {"-O": (level, 1), "--sizes": (sizes, DEFAULT_SIZES), "--against": (against, "all")}
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    flags |= {name: value for name, (value, default) in usual.items() if value != default}
    for flag, value in {**short, **flags, "--set": settings}.items():
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None else [flag, str(each)]
    return shlex.join([*words, "-o", "report.html"])
