"""``make bench``: predicted time over the bound for every preset, collective and size decade.

The bound is bytes over the bandwidth that no schedule beats, without any latency and with the
full bandwidth of every link: small messages are far from it, large ones as near as the
protocols and threadblocks of a runtime let them. Settings are those that tuning chooses with
a small budget, once for all sizes of a row; where they change within it, the cell says how.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.harness import show

if TYPE_CHECKING:
    from rich.table import Table

    from colsynth.jobs.workers import Workers
    from colsynth.tuning import Comparison, Measured

SIZES = tuple(10**power for power in range(3, 10))
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")
ALGORITHMS = ("forest", "ten")
BUDGET = 12
AMD = ("mi250", "mi300x")


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets."""
    from colsynth.topology import presets

    return tuple(item.name for item in presets())


def runtime_of(preset: str) -> str:
    """Return the runtime that a machine would use."""
    return "rccl" if preset in AMD else "msccl"


def measure(
    preset: str, boxes: int, collective: str, workers: Workers, budget: int = BUDGET
) -> dict[str, Any]:
    """Return the best predicted time over the bound at every size, and by what settings."""
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.tuning import Case, Means
    from colsynth.tuning import compare as measured

    problem = api.make_problem(api.load_topology(preset, nodes=boxes), collective)
    ceiling = api.bound(problem).algbw
    begun = time.perf_counter()
    figures: dict[str, Any] = {"case": [preset, boxes, collective]}
    try:
        case = Case(problem, runtime_of(preset), SIZES, limited=True)
        found = measured(case, ceiling, Means(budget, workers), ALGORITHMS)
    except ColsynthError as refusal:
        return {**figures, "refused": str(refusal.diagnostic.phrase)}
    figures["bound_gb_per_s"] = float(ceiling) / 1e9
    figures["sizes"] = [cell(found, place) for place in range(len(SIZES))]
    return {**figures, "seconds": time.perf_counter() - begun}


def cell(found: Comparison, place: int) -> dict[str, Any]:
    """Return the figures of one size; empty where nothing serves it."""
    name = found.best[place]
    winner: Measured | None = None if name is None else found.winners[name][place]
    seconds = None if winner is None else winner.seconds[place]
    if winner is None or seconds is None:
        return {}
    ideal = found.case.sizes[place] / float(found.bound)
    return {
        "time_us": seconds * 1e6,
        "over_bound": seconds / ideal,
        "settings": str(winner.plan),
    }


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return one row for each preset and collective."""
    from rich.table import Table

    title = "predicted time over the bound, and by which algorithm and protocol"
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    for size in SIZES:
        table.add_column(f"{size:.0e}".replace("e+0", "e"), justify="right")
    for figures in results:
        table.add_row(*row(figures))
    return table


def row(figures: dict[str, Any]) -> list[str]:
    """Return the cells of one case; a refusal says so instead of figures."""
    preset, boxes, collective = figures["case"]
    head = f"{preset} x{boxes} {collective}"
    if "refused" in figures:
        return [head, figures["refused"]]
    return [head, *(_short(entry) for entry in figures["sizes"])]


def _short(entry: dict[str, Any]) -> str:
    if not entry:
        return "-"
    algorithm, protocol, *_ = entry["settings"].split()
    digits = 2 if entry["over_bound"] < 100 else 0
    return f"{entry['over_bound']:,.{digits}f} {algorithm} {protocol}"


def main() -> int:
    """Run the presets asked for and print the table."""
    from colsynth.jobs.workers import Workers

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("presets", nargs="*", help="presets to run (all)")
    parser.add_argument("--boxes", type=int, nargs="*", default=[1], help="numbers of boxes (1)")
    parser.add_argument("--budget", type=int, default=BUDGET, help="evaluations per row")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    results = []
    with Workers(os.cpu_count() or 1) as workers:
        for preset in options.presets or preset_names():
            for boxes in options.boxes:
                for collective in COLLECTIVES:
                    print(f"{preset} x{boxes} {collective} ...", file=sys.stderr)
                    results.append(measure(preset, boxes, collective, workers, options.budget))
    show(table_of(results))
    if options.json:
        options.json.write_text(f"{json.dumps(results, indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
