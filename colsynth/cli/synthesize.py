"""``colsynth synthesize``: from a topology to a checked timed schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import ForceOption, JsonOption, answer_console, emit_json
from colsynth.cli._options import (
    AnyCollectiveOption,
    BudgetOption,
    SeedOption,
    SizeOption,
    SketchOption,
    TimedOptions,
    read_size,
)
from colsynth.cli.bundles import bundled
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import MembersOptions, ShardsOption, asked_ranks
from colsynth.cli.places import TIMED, check_file
from colsynth.cli.progress import progress
from colsynth.errors import Diagnostic, InputError, Span
from colsynth.pipeline.options import spelt
from colsynth.units import format_duration, plural

if TYPE_CHECKING:
    from colsynth.compile.synthesize import Synthesis
    from colsynth.model import Problem, TimedSchedule


ScheduleOption = Annotated[
    Path | None,
    typer.Option(
        "--schedule",
        metavar="FILE.npz",
        help="Write the timed schedule to this file, e.g. schedule.npz.",
        show_default=False,
    ),
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "-a",
        "--algorithm",
        metavar="ten|exact",
        autocompletion=complete.words("ten", "exact"),
        help="Algorithm: ten matches chunks to links; exact finds the shortest schedule of few "
        "steps and proves it.",
        show_default="ten; --pareto: exact",
    ),
]
ParetoOption = Annotated[
    bool,
    typer.Option(
        "--pareto",
        help="Walk the frontier of steps and rounds (SCCL) up to --chunks-per-gpu chunks, 6 unless "
        "given, and prove what lies between.",
    ),
]


@bundled
def synthesize(
    *,
    topology: TopologyArgument,
    collective: AnyCollectiveOption = None,
    size: SizeOption = None,
    members: MembersOptions,
    sketch: SketchOption = None,
    shards: ShardsOption = None,
    algorithm: AlgorithmOption = None,
    pareto: ParetoOption = False,
    schedule: ScheduleOption = None,
    force: ForceOption = False,
    timed: TimedOptions,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    machine: MachineOptions,
    json: JsonOption = False,
) -> None:
    """Find a timed schedule for any collective, group and size, and check it."""
    from colsynth import api

    if schedule is not None:
        check_file("--schedule", schedule, TIMED, force)
    damage = machine.read(topology)
    chosen = algorithm or ("exact" if pareto else "ten")
    problem = members.problem(damage.topology, collective, shards, sketch, chosen)
    if pareto:
        other = None if chosen == "exact" else algorithm
        given = {"algorithm": other, "schedule": schedule, "size": size, "budget": budget}
        _refuse_beside_pareto(given, timed)
        _walk(problem, timed, seed, json)
        return
    wanted = _size(size, shards, problem)
    with progress() as show:
        done = api.synthesize(
            problem,
            size=wanted,
            **asdict(timed),
            algorithm=chosen,
            budget=budget,
            seed=seed,
            progress=show,
        )
        if schedule is not None:
            api.write_schedule(done.schedule, schedule, show, replace=force)
    summary = done.summary(schedule)
    if json:
        emit_json({**summary, **failures_field(damage)})
    else:
        _show(done, summary)


def _refuse_beside_pareto(given: Mapping[str, object], timed: TimedOptions) -> None:
    """Refuse options that say nothing to the walk of the frontier (CS217)."""
    own = {name: x for name, x in asdict(timed).items() if name not in ("chunks_per_gpu", "work")}
    for name, value in {**given, **own}.items():
        if value is not None:
            phrase = f"--pareto and --{spelt(name)} do not go together"
            advice = "the walk takes --chunks-per-gpu, --work and --seed; it keeps no schedule"
            raise InputError(Diagnostic("CS217", phrase, help=advice))


def _size(text: str | None, shards: Path | None, problem: Problem) -> int | None:
    """Return the bytes of the message, which shards in bytes state too (CS217)."""
    from colsynth.topology.shards import bytes_of_shards

    size = read_size("--size", text)
    if shards is None:
        return size
    (members,) = problem.members
    stated = bytes_of_shards(shards, problem.topology, members)
    if stated is not None and size not in (None, stated):
        phrase = f"--size {text} differs from the {stated} bytes of all shards"
        advice = "leave --size out, or give shards a weight instead of bytes"
        raise InputError(Diagnostic("CS217", phrase, Span(str(shards)), help=advice))
    return size if stated is None else stated


def _walk(problem: Problem, timed: TimedOptions, seed: int, json: bool) -> None:
    """Print the frontier, question by question."""
    from rich.table import Table

    from colsynth import api

    chunks, work = timed.chunks_per_gpu, timed.work
    points = list(
        api.frontier(
            problem,
            most_chunks=6 if chunks is None else chunks,
            work=10 if work is None else work,
            seed=seed,
        )
    )
    if json:
        rows = [{**asdict(point), "rounds_per_chunk": float(point.rate)} for point in points]
        emit_json({"collective": problem.collective.value, "frontier": rows})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("chunks", "steps", "rounds", "per chunk"):
        table.add_column(name, justify="right")
    table.add_column("proven")
    for point in points:
        counts = map(str, (point.chunks, point.steps, point.rounds, point.rate))
        table.add_row(*counts, point.status)
    answer_console().print(table)


def _show(done: Synthesis, summary: dict[str, Any]) -> None:
    """Print the figures as a small table."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, value in _rows(done.asked, done.schedule, summary).items():
        table.add_row(name, value)
    answer_console().print(table)


def _rows(asked: Problem, schedule: TimedSchedule, summary: dict[str, Any]) -> dict[str, str]:
    moved = f"{plural(schedule.chunks, 'chunk')} of {_bytes(schedule.chunk_bytes)}"
    rows = {
        "schedule": f"{_asked(asked)} on {summary['topology']} ({summary['ranks']} GPUs)",
        "size": f"{plural(schedule.size, 'byte')}, {moved}, "
        f"{plural(schedule.transfers, 'transfer')}",
        "time": f"{format_duration(schedule.seconds)}, "
        + nearness(summary["gap"], format_duration(schedule.bound.seconds), chunking=True),
        "bound by": summary["bound_reason"],
        **({"sketch": f"kept to {summary['sketch']}"} if "sketch" in summary else {}),
        **({"proven": schedule.claim} if schedule.claim else {}),
        "algbw": f"{summary['algbw_gb_per_s']:.3f} GB/s",
        "verified": "yes",
    }
    if summary["schedule"] is not None:
        rows["file"] = summary["schedule"]
    return rows


def _asked(problem: Problem) -> str:
    """Return the collective, its roots and its groups in words."""
    unequal = problem.shards and not problem.has_several_roots
    parts = " of unequal shards" if unequal else ""
    return f"{problem.collective}{parts}{asked_ranks(problem)}"


def nearness(gap: float, bound: str, *, chunking: bool = False) -> str:
    """Return text for the distance of a result from its bound.

    Parameters
    ----------
    gap : float
    bound : str
        As it is printed.
    chunking : bool, optional
        Whether the bound is that of schedules whose chunks are cut in the same way.
    """
    if gap:
        return f"{100 * gap:.2f} % from the bound {bound}{' of this chunking' * chunking}"
    return f"proven optimal{' for this chunking' * chunking}: the bound {bound}"


def _bytes(size: Fraction) -> str:
    if size.denominator == 1:
        return plural(int(size), "byte")
    return f"{float(size):.10g} bytes"
