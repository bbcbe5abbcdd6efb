"""``colsynth compile``: from a topology to verified schedule files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import (
    BandwidthOption,
    JsonOption,
    LatencyOption,
    NodesOption,
    SetOption,
    TopologyArgument,
    answer_console,
    emit_json,
    load_topology,
)
from colsynth.cli._help import INSIDE, SEARCH
from colsynth.cli._options import (
    AnyCollectiveOption,
    ChunksOption,
    CustomOption,
    GroupOption,
    GroupsOption,
    PolicyOption,
    ProtocolOption,
    RootsOption,
    RuntimeOption,
    SeedOption,
    SizeOption,
    TransitOption,
    TreesOption,
    TriesOption,
    make_problem,
    read_size,
    told_groups,
)
from colsynth.cli.damage import (
    DegradeOption,
    DropGpuOption,
    DropLinkOption,
    DropNicOption,
    damaged,
    failures_field,
)
from colsynth.cli.output import Destination, write_stdout
from colsynth.cli.places import SCHEDULE, check_file, check_folder
from colsynth.cli.progress import progress
from colsynth.cli.streams import tell
from colsynth.cli.synthesize import nearness
from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.units import format_size, plural
from colsynth.writing import write_files

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.api import Compilation
    from colsynth.runtimes.limits import Usage


def compile_(
    topology: TopologyArgument,
    runtime: RuntimeOption,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="File to write (a.xml), directory for one file per mode (out/), or - for stdout.",
        ),
    ],
    collective: AnyCollectiveOption = None,
    nodes: NodesOption = None,
    settings: SetOption = None,
    bandwidth: BandwidthOption = None,
    latency: LatencyOption = None,
    drop_link: DropLinkOption = None,
    drop_gpu: DropGpuOption = None,
    drop_nic: DropNicOption = None,
    degrade: DegradeOption = None,
    root: RootsOption = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "-a",
            "--algorithm",
            metavar="ALGORITHM",
            autocompletion=complete.any_algorithm,
            help="Algorithm: forest packs spanning trees; roots packs those of an allreduce with "
            "free roots; ten assigns each chunk a link and a time slot; the others are baselines, "
            "e.g. ring ('colsynth passes' lists them). auto is short for -O3.",
            show_default="the fastest that the search tries",
        ),
    ] = None,
    level: Annotated[
        int,
        typer.Option(
            "-O",
            metavar="0|1|2|3",
            help="How hard to search for a faster program: 0 compiles as the pipeline stands, "
            "1 tries quick variants, 2 tries more, 3 tries all algorithms and protocols.",
            rich_help_panel=SEARCH,
        ),
    ] = 1,
    trees: TreesOption = None,
    size: SizeOption = None,
    chunks_per_gpu: ChunksOption = None,
    policy: PolicyOption = None,
    tries: TriesOption = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Limit of the search: the number of programs that are made and simulated. For "
            "-a ten, the number of placed transfers after which no new try starts (0 for no "
            "limit).",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="auto|both|in-place|out-of-place",
            autocompletion=complete.words("auto", "both", "in-place", "out-of-place"),
            help="Calls that the files serve; auto serves all that they can.",
        ),
    ] = "auto",
    instances: Annotated[
        int | None,
        typer.Option(
            "--instances",
            metavar="N",
            help="Number of parallel copies of the program, e.g. 2.",
            show_default="1",
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            metavar="N",
            help="Number of parallel rings of a baseline, e.g. 4.",
            show_default="the fastest",
        ),
    ] = None,
    protocol: ProtocolOption = None,
    min_bytes: Annotated[
        str | None,
        typer.Option(
            "--min-bytes",
            metavar="SIZE",
            help="Smallest message that the file serves, e.g. 64KiB.",
        ),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-bytes",
            metavar="SIZE",
            help="Largest message that the file serves, inclusive, e.g. 1GiB.",
            show_default="all that the runtime counts",
        ),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(
            "--passes",
            metavar="PIPELINE",
            autocompletion=complete.several(complete.passes),
            help="Run this pipeline instead of the algorithm's, e.g. pack-trees,lower-forest,.... "
            "'colsynth passes' lists passes and pipelines.",
            rich_help_panel=INSIDE,
        ),
    ] = None,
    dump_ir: Annotated[
        str | None,
        typer.Option(
            "--dump-ir",
            metavar="PASS",
            autocompletion=complete.passes,
            help="Print the value after a pass, e.g. pack-trees, or after 'all', on stderr.",
            rich_help_panel=INSIDE,
        ),
    ] = None,
    dump_dir: Annotated[
        Path | None,
        typer.Option(
            "--dump-dir",
            metavar="DIR",
            help="Write the value after every pass to this directory.",
            rich_help_panel=INSIDE,
        ),
    ] = None,
    time_passes: Annotated[
        bool,
        typer.Option(
            "--time-passes",
            help="Print the seconds of every pass on stderr.",
            rich_help_panel=INSIDE,
        ),
    ] = False,
    seed: SeedOption = 0,
    group: GroupOption = None,
    groups: GroupsOption = None,
    transit: TransitOption = False,
    custom: CustomOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    json: JsonOption = False,
) -> None:
    """Compile a schedule, verify it, and write its file."""
    from colsynth import api

    destination = Destination.parse(output)
    if json and destination.path is None:
        phrase = "--json and --output - both want stdout"
        raise InputError(Diagnostic("CS214", phrase, help="write the schedule to a file"))
    _check_dump_name(dump_ir, api.pass_names(algorithm, passes))
    _check_dump_dir(dump_dir, destination)
    healthy = load_topology(topology, nodes, settings, bandwidth, latency)
    damage = damaged(healthy, drop_link, drop_gpu, drop_nic, degrade)
    problem = make_problem(damage.topology, collective, root, group, groups, transit, custom)
    members = told_groups(problem, runtime)
    several = destination.is_directory
    names = api.file_names(problem, runtime, mode, several)
    for path in destination.paths(names):
        check_file("--output", path, SCHEDULE, force)
    if dump_dir is not None:
        check_folder("--dump-dir", dump_dir)
    with progress() as show:
        done = api.compile(
            problem,
            runtime,
            algorithm=algorithm,
            level=level,
            trees=trees,
            size=read_size("--size", size),
            chunks_per_gpu=chunks_per_gpu,
            policy=policy,
            tries=tries,
            budget=budget,
            mode=mode,
            several=several,
            instances=instances,
            channels=channels,
            protocol=protocol,
            min_bytes=read_size("--min-bytes", min_bytes),
            max_bytes=read_size("--max-bytes", max_bytes),
            passes=passes,
            seed=seed,
            progress=show,
            watch=_Dumps(dump_ir, dump_dir) if dump_ir or dump_dir else None,
        )
    _write(done, destination, force)
    _answer(done, destination, {**failures_field(damage), **members}, json, time_passes)


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
    """Say what was written."""
    files = destination.paths(tuple(artefact.name for artefact in done.artefacts))
    summary = {**done.summary(), "files": [str(path) for path in files]}
    if json:
        emit_json({**summary, **extra})
    else:
        _show(summary, done, answer_console(None if files else sys.stderr))
        for note in done.notes:
            tell(f"note: {note}")
    if time_passes:
        _show_times(summary["seconds"])


class _Dumps:
    """Shows or writes intermediate values, as ``--dump-ir`` and ``--dump-dir`` ask."""

    def __init__(self, name: str | None, directory: Path | None) -> None:
        self.name, self.directory = name, directory

    def __call__(self, mode: str, place: int, name: str, value: Any) -> None:
        """Take one value; see `colsynth.compile.run.Watch`."""
        from colsynth.pipeline import dump

        if self.directory is not None:
            dump.write(self.directory / mode, place, name, value)
        if self.name in (name, "all"):
            head = f"{place:02} {name}" + (f" ({mode})" if mode else "")
            tell(f"# {head}\n{dump.pretty(value)}", keep="\n")


def _check_dump_name(name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in (*known, "all"):
        phrase = f"the pipeline has no pass {name!r} to show the result of"
        raise InputError(Diagnostic("CS202", phrase, help=did_you_mean(name, (*known, "all"))))


def _check_dump_dir(dumps: Path | None, destination: Destination) -> None:
    """Refuse a folder of dumps where schedules will lie, or below what will be a file (CS251)."""
    if dumps is None or destination.path is None:
        return
    folder, place = dumps.resolve(), destination.path.resolve()
    if folder == place or (not destination.is_directory and place in folder.parents):
        phrase = f"--dump-dir {dumps} and --output {destination.path} are in each other's way"
        note = "runtimes read every file of a directory of schedules, dumps too"
        notes = (note,) if destination.is_directory else ()
        advice = "give the dumps a directory of their own"
        raise InputError(Diagnostic("CS251", phrase, notes=notes, help=advice))


_SIZES = ("chunk", "channel", "threadblock", "step")


def _show(summary: dict[str, Any], done: Compilation, console: Console) -> None:
    """Print the figures as a small table."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    root = "" if summary["root"] is None else f" from rank {summary['root']}"
    modes = " and ".join(summary["modes"]).replace("both", "in-place and out-of-place")
    rows = {
        "schedule": f"{summary['collective']}{root} on {summary['topology']}",
        "runtime": f"{summary['runtime']}, {summary['protocol']}, {modes}",
        "algorithm": " ".join([summary["algorithm"], *_settings(summary["settings"])]),
        **_of_schedule(summary),
        **_of_prediction(summary),
        "size": ", ".join(plural(summary[f"{word}s"], word) for word in _SIZES),
        "messages": f"{done.taken()}; the library runs others itself",
        "limits": "\n".join(_lines_of_limits(done.limits())),
        "verified": "yes",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    for path in summary["files"]:
        table.add_row("file", path)
    console.print(table)


def _lines_of_limits(limits: tuple[Usage, ...]) -> Iterator[str]:
    """Yield what is used of every limit, a few to a line; what only repeats one is left out."""
    pairs = zip((None, *limits[:-1]), limits, strict=True)
    told = [
        item
        for before, item in pairs
        if not (item.advisory and before is not None and item.limit == before.limit)
    ]
    for first in range(0, len(told), 4):
        some = told[first : first + 4]
        yield ", ".join(f"{item.title} {item.used} of {item.limit}" for item in some)


def _of_schedule(summary: dict[str, Any]) -> dict[str, str]:
    """Return rows on what the algorithm knows of its schedule, which may be nothing."""
    if summary["algbw_gb_per_s"] is None:
        return {"transfers": f"as -a {summary['algorithm']} has them; their speed is not proven"}
    figures = f"{summary['algbw_gb_per_s']:.3f} GB/s, {nearness(summary['gap'])} "
    rows = _of_trees(summary) if summary["trees"] is not None else _of_time(summary)
    return {**rows, "links": f"{figures}{summary['bound_gb_per_s']:.3f}"}


def _settings(settings: dict[str, Any]) -> Iterator[str]:
    """Yield the options that differ from those of the algorithm."""
    for name, value in settings.items():
        yield f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _of_prediction(summary: dict[str, Any]) -> dict[str, str]:
    """Return a row on what the simulator says of the file, the largest message first."""
    points = [
        f"{point['algbw_gb_per_s']:.4g} GB/s at {format_size(point['size_bytes'])}"
        for point in reversed(summary["predicted"])
    ]
    return {"predicted": ", ".join(points)} if points else {}


def _of_trees(summary: dict[str, Any]) -> dict[str, str]:
    height = f"height {summary['max_height']} at most, {summary['mean_height']:.2f} on average"
    if summary["trees_per_gpu"] is None:
        return {"trees": f"{summary['trees']} with {plural(summary['roots'], 'root')}, {height}"}
    different, whole = summary["different_trees"], summary["trees_per_gpu"]
    number = f"{whole} per GPU"
    if different < whole:
        number = f"{different} per GPU with weights that add up to {whole}"
    return {"trees": f"{number}, {height}"}


def _of_time(summary: dict[str, Any]) -> dict[str, str]:
    cut = f"{plural(summary['chunks_per_gpu'], 'chunk')} per GPU"
    times = f"{summary['time_us']:.6g} us, at least {summary['bound_us']:.6g} us are needed"
    return {"time": f"{times} ({summary['size_bytes']} bytes, {cut})"}


def _show_times(seconds: dict[str, float]) -> None:
    for name, value in seconds.items():
        tell(f"{value:10.4f} s  {name}")
