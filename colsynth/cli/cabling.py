"""``colsynth topology search``: which cabling for so many GPUs with so many ports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._help import SEARCH, TOPOLOGY
from colsynth.cli._options import SeedOption
from colsynth.cli.bundles import bundled
from colsynth.cli.output import refuse_to_overwrite
from colsynth.cli.places import TABLE, YAML, check_file, check_plot, refuse_stdout
from colsynth.cli.progress import progress
from colsynth.cli.sizes import read_sizes
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError, Span
from colsynth.units import format_duration, format_size, microseconds, parse_fraction
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.cabling.ranking import Ranking
    from colsynth.cabling.request import Request


@dataclass(frozen=True)
class FabricOptions:
    """What is cabled."""

    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="Number of GPUs, e.g. 1024.")]
    ports: Annotated[
        int | None,
        typer.Option(
            "--ports",
            metavar="D",
            help="Ports of every GPU (of every box, with --box): so many links out and in, e.g. 4.",
            show_default="the NICs of the box",
        ),
    ] = None
    duplex: Annotated[
        bool, typer.Option("--duplex", help="Let every cable carry both directions.")
    ] = False
    reserve: Annotated[
        int,
        typer.Option(
            "--reserve",
            metavar="N",
            help="Ports kept for something else, e.g. 1.",
            rich_help_panel=TOPOLOGY,
        ),
    ] = 0
    box: Annotated[
        str | None,
        typer.Option(
            "--box",
            metavar="PRESET",
            autocompletion=complete.topologies,
            help="Cable boxes of this preset by their NICs, e.g. dgx-a100.",
            rich_help_panel=TOPOLOGY,
            show_default=False,
        ),
    ] = None
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth",
            metavar="RATE",
            help="Bandwidth of a port in one direction, e.g. '25 GB/s'.",
            rich_help_panel=TOPOLOGY,
            show_default="that of the box's NICs, else 50 GB/s",
        ),
    ] = None
    latency: Annotated[
        str,
        typer.Option(
            "--latency",
            metavar="TIME",
            help="Latency of a step, e.g. '10 us'.",
            rich_help_panel=TOPOLOGY,
        ),
    ] = "0.7 us"


@dataclass(frozen=True)
class WorkOptions:
    """What runs on it, and how hard to search."""

    sizes: Annotated[
        str,
        typer.Option("--sizes", metavar="LIST", help="Message sizes, e.g. 1MB,64MB or 1KB..1GB."),
    ] = "1MB,64MB,1GB"
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="LIST",
            help="Weight of every size, in ascending order, e.g. 1,4,2.",
            show_default="all the same",
        ),
    ] = None
    tries: Annotated[
        int,
        typer.Option(
            "--tries",
            metavar="N",
            help="Work budget: random graphs that are evaluated. 0 tries known constructions only.",
            rich_help_panel=SEARCH,
        ),
    ] = 20_000


@dataclass(frozen=True)
class ExportOptions:
    """What becomes of the result."""

    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the fabric as YAML, e.g. best.yaml.",
            show_default=False,
        ),
    ] = None
    cables: Annotated[
        Path | None,
        typer.Option(
            "--cables",
            metavar="FILE",
            help="Write the cables as CSV, panel by panel, e.g. cables.csv.",
            show_default=False,
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg|FILE.png",
            help="Write a plot of steps against time, e.g. front.svg.",
            show_default=False,
        ),
    ] = None
    pick: Annotated[
        int | None,
        typer.Option(
            "--pick",
            metavar="ROW",
            help="Row of the table to write, e.g. 1.",
            show_default="the best for all sizes",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False


@bundled
def search(
    *,
    fabric: FabricOptions,
    collective: Annotated[
        str,
        typer.Option(
            "-c",
            "--collective",
            metavar="COLLECTIVE",
            autocompletion=complete.collectives,
            help="Collective: allgather, reduce-scatter or allreduce.",
        ),
    ] = "allreduce",
    work: WorkOptions,
    export: ExportOptions,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Find the best direct-connect cabling for a number of GPUs and ports."""
    from colsynth import api

    refuse_stdout("--output", export.output)
    refuse_stdout("--cables", export.cables)
    paths = tuple(path for path in (export.output, export.cables) if path is not None)
    refuse_to_overwrite(paths, export.force)
    if export.output is not None:
        check_file("--output", export.output, YAML, export.force)
    if export.cables is not None:
        check_file("--cables", export.cables, TABLE, export.force)
    if export.plot is not None:
        check_plot(export.plot, export.force)
    request = _request(fabric, collective, work, seed)
    with progress() as show:
        ranking = api.cablings(request, show)
    place = _picked(ranking, export.pick)
    if json:
        emit_json(_as_object(request, ranking))
    else:
        _show(request, ranking)
    chosen = ranking.fabrics[place]
    if paths:
        made = f"{chosen.text}; --gpus {fabric.gpus}{' --duplex' if fabric.duplex else ''}"
        api.write_cabling(
            *(chosen, request, export.output, export.cables),
            provenance=f"colsynth topology search: {made} --seed {seed}",
            replace=export.force,
        )
        for path in paths:
            tell(f"note: {path}: {chosen.text}")
    if export.plot is not None:
        drawn = _plot(request, ranking, export.plot.suffix.lower())
        write_files({export.plot: drawn}, replace=export.force)


def _request(fabric: FabricOptions, collective: str, work: WorkOptions, seed: int) -> Request:
    from colsynth.cabling.boxes import ports_of
    from colsynth.cabling.request import Request, make_job
    from colsynth.topology.generators import DEFAULT_BANDWIDTH
    from colsynth.topology.quantities import read_bandwidth, read_latency

    if fabric.bandwidth is None and fabric.box is not None:
        bandwidth = ports_of(fabric.box)[1]
    else:
        given = fabric.bandwidth or DEFAULT_BANDWIDTH
        bandwidth = read_bandwidth(given, Span("--bandwidth"))
    latency = read_latency(fabric.latency, Span("--latency"))
    try:
        weights = tuple(
            parse_fraction(word.strip()) for word in (work.weights or "").split(",") if word
        )
    except ValueError as fault:
        raise InputError(
            Diagnostic("CS141", f"--weights {work.weights}", notes=(str(fault),))
        ) from None
    job = make_job(collective, read_sizes("--sizes", work.sizes), weights, bandwidth, latency)
    return Request(
        *(fabric.gpus, fabric.ports, job, fabric.duplex, fabric.reserve, fabric.box),
        *(work.tries, seed),
    )


def _picked(ranking: Ranking, pick: int | None) -> int:
    """Return the place of the fabric to write."""
    if pick is None:
        return ranking.overall
    if not 1 <= pick <= len(ranking.fabrics):
        phrase = f"--pick {pick}: the table has rows 1 to {len(ranking.fabrics)}"
        raise InputError(Diagnostic("CS141", phrase))
    return pick - 1


def _as_object(request: Request, ranking: Ranking) -> dict[str, Any]:
    job = ranking.job
    return {
        "nodes": ranking.fabrics[0].size,
        "ports": ranking.fabrics[0].ports,
        "duplex": request.duplex,
        "collective": job.collective,
        "sizes_bytes": list(job.sizes),
        "best": ranking.overall,
        "winners": list(ranking.winners),
        "fabrics": [
            {
                "fabric": found.text,
                "steps": job.phases * found.steps,
                "bandwidth_time": str(job.time(found)),
                "pipelined_time": str(job.phases * found.pipelined),
                "least_time": str(job.phases * found.best),
                "alltoall_ratio": float(found.spread(duplex=request.duplex)),
                "times_us": [microseconds(job.seconds(found, size)) for size in job.sizes],
                "loss": loss,
            }
            for found, loss in zip(ranking.fabrics, ranking.losses, strict=True)
        ],
    }


def _show(request: Request, ranking: Ranking) -> None:
    job, first = ranking.job, ranking.fabrics[0]
    console = answer_console()
    what = "GPUs" if request.box is None else f"boxes of {request.box}"
    kind = "duplex" if request.duplex else "simplex"
    least = f"{float(job.phases * first.best):.5f}"
    head = f"{job.collective} on {first.size} {what}, {first.ports} {kind} ports"
    console.print(f"{head}; no fabric needs less than {least} M/B", soft_wrap=True)
    table = ruled_table()
    names = ("", "steps", "M/B", "pipelined", "all-to-all", *map(format_size, job.sizes), "loss")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fabric", no_wrap=True, overflow="fold")
    for place, found in enumerate(ranking.fabrics):
        table.add_row(*_row(request, ranking, place), found.text)
    console.print(table, soft_wrap=True)
    best = ranking.fabrics[ranking.overall]
    console.print(f"best for all sizes: {best.text}", soft_wrap=True)


def _row(request: Request, ranking: Ranking, place: int) -> list[str]:
    job, found = ranking.job, ranking.fabrics[place]
    times = []
    for size, winner in zip(job.sizes, ranking.winners, strict=True):
        text = format_duration(job.seconds(found, size))
        times.append(f"{text} *" if winner == place else text)
    return [
        str(place + 1),
        str(job.phases * found.steps),
        _figure(job.time(found)),
        _figure(job.phases * found.pipelined),
        f"{float(found.spread(duplex=request.duplex)):.3f}",
        *times,
        f"{100 * ranking.losses[place]:.1f} %",
    ]


def _figure(value: Fraction) -> str:
    return f"{float(value):.5f}"


def _plot(request: Request, ranking: Ranking, suffix: str) -> bytes:
    """Return steps against time as a picture, beside what known constructions reach."""
    from colsynth import api
    from colsynth.report import Series, picture, plot

    job, first = ranking.job, ranking.fabrics[0]
    known = api.cablings(replace(request, tries=0))

    def points(found: Ranking) -> tuple[tuple[float, float], ...]:
        return tuple((float(job.phases * x.steps), float(job.time(x))) for x in found.fabrics)

    def notes(found: Ranking) -> tuple[str, ...]:
        return tuple(f"{a:g} steps, {b:.4f}" for a, b in points(found))

    series = (
        Series("found by the search", points(ranking), notes=notes(ranking)),
        Series("known constructions", points(known), False, 1, notes(known), left=True),
    )
    kind = "duplex" if request.duplex else "simplex"
    title = f"{job.collective} on {first.size} nodes with {first.ports} {kind} ports"
    least = float(job.phases * first.best)
    note = f"lower left is better; no fabric takes less than {least:.5f} M/B"
    return picture(plot(title, note, ("steps", "time by bytes, M/B"), series), suffix)
