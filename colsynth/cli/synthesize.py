"""``colsynth synthesize``: from a topology to a checked timed schedule."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
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
from colsynth.errors import Diagnostic, InputError, require_least
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
    str,
    typer.Option(
        "-a",
        "--algorithm",
        metavar="ten|exact",
        autocompletion=complete.words("ten", "exact"),
        help="Algorithm: ten matches chunks to links; exact finds the shortest schedule of few "
        "steps and proves it.",
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
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@bundled
def synthesize(
    *,
    topology: TopologyArgument,
    collective: AnyCollectiveOption = None,
    size: SizeOption = None,
    members: MembersOptions,
    sketch: SketchOption = None,
    shards: ShardsOption = None,
    algorithm: AlgorithmOption = "ten",
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

    if timed.steps is not None:
        require_least("--steps", timed.steps, 1)
    if schedule is not None:
        check_file("--schedule", schedule, TIMED, force)
    damage = machine.read(topology)
    problem = members.problem(damage.topology, collective, shards, sketch, algorithm)
    if pareto:
        if schedule is not None:
            phrase = "--pareto and --schedule do not go together"
            raise InputError(Diagnostic("CS214", phrase, help="the walk makes no schedule to keep"))
        _walk(problem, timed, seed, json)
        return
    with progress() as show:
        done = api.synthesize(
            problem,
            size=read_size("--size", size),
            **asdict(timed),
            algorithm=algorithm,
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
        "time": f"{format_duration(schedule.seconds)}, {nearness(summary['gap'])} "
        f"{format_duration(schedule.bound.seconds)}",
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


def nearness(gap: float) -> str:
    """Return text for the distance of a result from its bound, to be followed by the bound."""
    return f"{100 * gap:.2f} % from the bound" if gap else "proven optimal: the bound"


def _bytes(size: Fraction) -> str:
    if size.denominator == 1:
        return plural(int(size), "byte")
    return f"{float(size):.10g} bytes"
