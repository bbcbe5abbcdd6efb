"""``colsynth simulate``: the predicted time of a schedule file, by message size."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._options import RUNTIMES
from colsynth.cli.breakdown import breakdown_object, micro_or_milli, show_breakdown
from colsynth.cli.bundles import bundled
from colsynth.cli.constants import ModelOption, read_constants, show_constants
from colsynth.cli.evaluations import DEFAULT_SIZES, SizesOption
from colsynth.cli.machine import MachineOptions, failures_field
from colsynth.cli.members import GroupOption, grouped
from colsynth.cli.places import TIMELINE, check_file
from colsynth.cli.progress import progress
from colsynth.cli.sizes import read_sizes
from colsynth.cli.streams import require_one_stdin, tell
from colsynth.cli.verify import read_schedule
from colsynth.errors import Diagnostic, InputError
from colsynth.units import format_size, plural
from colsynth.writing import write_files

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.cost import Model
    from colsynth.model import Program, Report, Topology
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.selection import TakenSizes
    from colsynth.simulate import Simulation, Source
    from colsynth.simulate.points import Point
    from colsynth.simulate.trace import Trace


FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="Schedule file, e.g. allreduce.xml; - for stdin.", show_default=False
    ),
]
OnOption = Annotated[
    str | None,
    typer.Option(
        "-t",
        "--topology",
        metavar="TOPOLOGY",
        autocompletion=complete.topologies,
        help="Topology that the file runs on: preset (dgx-a100), YAML file (lab.yaml), - "
        "for stdin, or generator (torus:4x4).",
        show_default=False,
    ),
]

AnyRuntimeOption = Annotated[
    str | None,
    typer.Option(
        "-r",
        "--runtime",
        metavar="RUNTIME",
        autocompletion=complete.runtimes,
        help=f"Runtime that loads the schedule: {RUNTIMES}.",
        show_default="the only one that can run the file",
    ),
]
ShowModelOption = Annotated[
    bool,
    typer.Option(
        "--show-model",
        help="Print the constants with their sources, of --runtime or of all runtimes.",
    ),
]
TimelineOption = Annotated[
    Path | None,
    typer.Option(
        "--timeline",
        metavar="OUT.json",
        help="Write the timeline of the largest size that uses the file as a Chrome trace for "
        "Perfetto, e.g. out.json.",
        show_default=False,
    ),
]
BreakdownOption = Annotated[
    bool,
    typer.Option(
        "--breakdown", help="Show where the time of the largest size goes that uses the file."
    ),
]
AnywayOption = Annotated[
    bool,
    typer.Option(
        "--anyway",
        help="Predict times also for a file that verify calls bad, unless it never finishes.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing timeline.")]


@bundled
def simulate(
    *,
    file: FileArgument = None,
    topology: OnOption = None,
    runtime: AnyRuntimeOption = None,
    sizes: SizesOption = DEFAULT_SIZES,
    machine: MachineOptions,
    group: GroupOption = None,
    model: ModelOption = None,
    show_model: ShowModelOption = False,
    timeline: TimelineOption = None,
    breakdown: BreakdownOption = False,
    anyway: AnywayOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Predict how long a schedule file takes on a topology."""
    if show_model:
        show_constants(runtime, model, json)
        return
    if file is None or topology is None:
        phrase = "which file, on which topology?"
        advice = "colsynth simulate FILE -t dgx-a100 --nodes 2"
        raise InputError(Diagnostic("CS607", phrase, help=advice))
    from colsynth.api import executable
    from colsynth.runtimes import taken_sizes
    from colsynth.simulate import Simulation
    from colsynth.simulate.breakdown import break_down

    wanted = read_sizes("--sizes", sizes)
    if timeline is not None:
        check_file("--timeline", timeline, TIMELINE, force)
    require_one_stdin(file, topology)
    subject, data = read_schedule(file)
    source = _read(data, runtime, subject)
    constants = read_constants(source.profile, model)
    damage = machine.read(topology)
    place, members = grouped(damage.topology, group)
    follow = breakdown or timeline is not None
    with progress("no time was predicted") as show:
        show(f"verify {Path(subject).name}", 0, 0)
        program = executable(source, place, anyway=anyway)
        _warn(source, place, anyway)
        show("simulating", 0, 0)
        header, law = program.header, taken_sizes(program.header, source.profile)
        wanted = tuple(sorted(set(law.called(wanted))))
        points, traced = _played(program, place, source.profile, wanted, constants, follow)
    names = (subject, source.profile.name, place.name)
    selected = tuple(law.takes(size) for size in wanted)
    answer = Simulation(*names, header.ranks, header.collective, points, selected)
    if timeline is not None and traced is not None:
        _write_timeline(timeline, traced, force)
    found = break_down(traced) if breakdown and traced is not None else None
    if json:
        extra = {"breakdown": breakdown_object(found, traced)} if found and traced else {}
        emit_json({**simulation_object(answer), **extra, **failures_field(damage), **members})
        return
    console = answer_console()
    _show_points(console, answer, law)
    if found is not None and traced is not None:
        show_breakdown(console, found, traced)


def _played(
    program: Program,
    place: Topology,
    target: Profile,
    wanted: tuple[int, ...],
    constants: Model,
    follow: bool,
) -> tuple[tuple[Point, ...], Trace | None]:
    """Return the time at every size and, on request, the trace of the largest that is selected."""
    from colsynth.model import RoundProgram
    from colsynth.runtimes import taken_sizes
    from colsynth.simulate import simulate as execute
    from colsynth.simulate.trace import trace

    if not follow:
        return execute(program, place, target, wanted, constants), None
    rounds = isinstance(program, RoundProgram)
    if isinstance(program, RoundProgram) or program.multicasts:
        what = "rounds have none" if rounds else "data over a switch takes no steps between two"
        phrase = f"--breakdown and --timeline follow threadblocks, and {what}"
        advice = "'colsynth compile' says what limits such a schedule"
        raise InputError(Diagnostic("CS610", phrase, help=advice))
    law = taken_sizes(program.header, target)
    largest = law.largest(wanted)
    if largest is None:
        phrase = "--breakdown and --timeline follow the largest of --sizes that uses the file"
        notes, advice = (f"none does; it is for {law}",), "give such a size with --sizes"
        raise InputError(Diagnostic("CS212", phrase, notes=notes, help=advice))
    points = execute(program, place, target, wanted, constants)
    return points, trace(program, place, target, largest, constants)


def simulation_object(answer: Simulation) -> dict[str, Any]:
    """Return a simulation for ``--json``."""
    return {
        "file": answer.file,
        "runtime": answer.runtime,
        "topology": answer.topology,
        "ranks": answer.ranks,
        "collective": answer.collective.value,
        "points": [
            {
                "size_bytes": point.size_bytes,
                "selected": selected,
                "time_us": round(point.seconds * 1e6, 6) if selected else None,
                "algbw_gb_per_s": round(point.algbw / 1e9, 6) if selected else None,
                "busbw_gb_per_s": round(point.busbw / 1e9, 6) if selected else None,
            }
            for point, selected in zip(answer.points, answer.selected, strict=True)
        ],
    }


def _read(data: bytes, runtime: str | None, subject: str) -> Source:
    """Return the file as read by the given runtime, or by the only one that can run it."""
    from colsynth.runtimes import profile
    from colsynth.simulate import find_runtime, read_source

    if runtime is None:
        return find_runtime(data, subject)
    return read_source(data, profile(runtime), subject)


def _warn(source: Source, machine: Topology, anyway: bool) -> None:
    """Warn on stderr of a bad file, of one for another topology, and of ways it does not take."""
    from colsynth.runtimes.titles import fits, made_for
    from colsynth.simulate.passed import passed_notes

    if anyway:
        _warn_of_errors(source.report)
    for note in passed_notes(source.program, machine, source.profile):
        tell(f"note: {note}")
    header = source.program.header
    if not fits(header, machine.name):
        tell(f"note: the file was made for {made_for(header)}; the times are for {machine.name}")


def _warn_of_errors(report: Report) -> None:
    """Warn on stderr if a file is bad: times do not show what its errors do to a job."""
    if not report.ok:
        errors = plural(len(report.errors), "error")
        command = f"`colsynth verify FILE -r {report.runtime}`"
        text = f"note: the file is bad on {report.runtime} ({errors}); a job that runs it may fail"
        tell(f"{text}, whatever the times. {command} lists what is wrong")


def _write_timeline(path: Path, traced: Trace, force: bool) -> None:
    from colsynth.simulate.timeline import timeline

    write_files({path: json_text.dumps(timeline(traced)).encode()}, replace=force)


def _show_points(console: Console, answer: Simulation, law: TakenSizes) -> None:
    head = f"{answer.collective} of {answer.ranks} ranks on {answer.topology}"
    console.print(f"{answer.file}: {head}, as {answer.runtime} runs it", soft_wrap=True)
    heads = ("size", "time", "algbw", "busbw")
    table = ruled_table(*heads, right=slice(None), show_edge=False)
    for point, selected in zip(answer.points, answer.selected, strict=True):
        if not selected:
            table.add_row(format_size(point.size_bytes), "not selected")
            continue
        table.add_row(
            format_size(point.size_bytes),
            micro_or_milli(point.seconds),
            f"{point.algbw / 1e9:.3f} GB/s",
            f"{point.busbw / 1e9:.3f} GB/s",
        )
    console.print(table)
    if not all(answer.selected):
        text = f"not selected: {answer.runtime} uses the file for messages in {law}, and its own"
        console.print(f"{text} algorithm for others", soft_wrap=True)
