"""``colsynth synthesize``: from a topology to a checked timed schedule."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from colsynth.cli._options import (
    AnyCollectiveOption,
    BudgetOption,
    ChunksOption,
    CustomOption,
    GroupOption,
    GroupsOption,
    PolicyOption,
    RootsOption,
    SeedOption,
    ShardsOption,
    SizeOption,
    TransitOption,
    TriesOption,
    asked_ranks,
    make_problem,
    read_size,
)
from colsynth.cli.damage import (
    DegradeOption,
    DropGpuOption,
    DropLinkOption,
    DropNicOption,
    damaged,
    failures_field,
)
from colsynth.cli.places import TIMED, check_file
from colsynth.cli.progress import progress
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
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def synthesize(
    topology: TopologyArgument,
    collective: AnyCollectiveOption = None,
    size: SizeOption = None,
    chunks_per_gpu: ChunksOption = None,
    root: RootsOption = None,
    group: GroupOption = None,
    groups: GroupsOption = None,
    transit: TransitOption = False,
    custom: CustomOption = None,
    shards: ShardsOption = None,
    schedule: ScheduleOption = None,
    force: ForceOption = False,
    policy: PolicyOption = None,
    tries: TriesOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    nodes: NodesOption = None,
    settings: SetOption = None,
    bandwidth: BandwidthOption = None,
    latency: LatencyOption = None,
    drop_link: DropLinkOption = None,
    drop_gpu: DropGpuOption = None,
    drop_nic: DropNicOption = None,
    degrade: DegradeOption = None,
    json: JsonOption = False,
) -> None:
    """Find a timed schedule for any collective, group and size, and check it."""
    from colsynth import api

    if schedule is not None:
        check_file("--schedule", schedule, TIMED, force)
    healthy = load_topology(topology, nodes, settings, bandwidth, latency)
    damage = damaged(healthy, drop_link, drop_gpu, drop_nic, degrade)
    problem = make_problem(
        damage.topology, collective, root, group, groups, transit, custom, shards
    )
    with progress() as show:
        done = api.synthesize(
            problem,
            size=read_size("--size", size),
            chunks_per_gpu=chunks_per_gpu,
            policy=policy,
            tries=tries,
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
    """Return how far a result is from its bound, to be followed by the bound."""
    return f"{100 * gap:.2f} % from the bound" if gap else "proven optimal: the bound"


def _bytes(size: Fraction) -> str:
    if size.denominator == 1:
        return plural(int(size), "byte")
    return f"{float(size):.10g} bytes"
