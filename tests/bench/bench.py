"""``make bench``: seconds of each stage and peak memory, beside the proven bound.

Every case runs in a process of its own, so that its peak memory is its own. Kernels
are compiled before the first case; ``start`` is loading Python and the packages, and
the first use of the compiled kernels, in ``bound``, loads numba. ``total`` is one process alone,
and ``shell`` what ``colsynth compile`` takes, which shares the work with a second one.
Pass names of presets to run those alone, and ``--json FILE`` to keep the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.harness import from_shell, in_process_of_its_own, peak_mebibytes, show

if TYPE_CHECKING:
    from rich.table import Table

CASES = (
    *(("dgx-a100", boxes) for boxes in (1, 2, 4, 8)),
    *(("mi250", boxes) for boxes in (1, 2, 4)),
    *(("ndv2", boxes) for boxes in (1, 2)),
    ("mi300x", 1),
    ("dgx-h100", 2),
)
COLLECTIVES = ("allgather", "allreduce")
RUNTIME = "msccl"

STAGES = {
    "topology": ("topology",),
    "bound": ("bound",),
    "trees": ("choose-trees", "pack-trees"),
    "proof": ("check-forest",),
    "lower": (
        "lower-forest",
        "coalesce-chunks",
        "order-transfers",
        "place-slots",
        "assign-threadblocks",
        "spell-dependencies",
    ),
    "write": ("write",),
    "verify": ("verify",),
}
"""Columns of the table, and the timings that add up to each."""

COLUMNS = (*STAGES, "other")


def measure(preset: str, boxes: int, collective: str) -> dict[str, Any]:
    """Compile one case in this process and return its figures."""
    from colsynth import api
    from colsynth.errors import NegativeFinding
    from colsynth.pipeline.clock import Clock

    clock = Clock()
    with clock.measure("topology"):
        topology = api.load_topology(preset, nodes=boxes)
    problem = api.make_problem(topology, collective)
    with clock.measure("bound"):
        optimum = api.bound(problem)
    figures: dict[str, Any] = {"bound_gb_per_s": float(optimum.algbw / 10**9)}
    try:
        done = api.compile(problem, RUNTIME, several=False)
    except NegativeFinding as refusal:
        figures["refused"] = refusal.diagnostic.phrase
        seconds = clock.seconds()
    else:
        summary = done.summary()
        figures |= {
            key: summary[key] for key in ("ranks", "trees_per_gpu", "algbw_gb_per_s", "gap")
        }
        seconds = {**clock.seconds(), **done.seconds}
    figures["seconds"] = {
        stage: sum(seconds.pop(name, 0.0) for name in names) for stage, names in STAGES.items()
    }
    figures["seconds"]["other"] = sum(seconds.values())
    figures["peak_mib"] = peak_mebibytes()
    return figures


def run(preset: str, boxes: int, collective: str) -> dict[str, Any]:
    """Return the figures of one case."""
    case = (preset, str(boxes), collective)
    return {
        "case": [preset, boxes, collective],
        **in_process_of_its_own("tests.bench.bench", ["--one", *case]),
        "shell": from_shell([preset, "--nodes", str(boxes), "-c", collective, "-r", RUNTIME]),
    }


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return one row for each case."""
    from rich.table import Table

    table = Table(title=f"{RUNTIME}, one in-place file; seconds, MiB, GB/s", title_justify="left")
    table.add_column("case", no_wrap=True)
    figures_of = ("GPUs", "start", *COLUMNS, "total", "shell", "peak", "trees", "algbw", "bound")
    for name in (*figures_of, "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    for figures in results:
        table.add_row(*row(figures))
    return table


def row(figures: dict[str, Any]) -> list[str]:
    """Return the cells of one case; a refusal or a failure says so instead of figures."""
    if "failed" in figures:
        return [" ".join(map(str, figures["case"])), "failed", str(figures["failed"])]
    preset, boxes, collective = figures["case"]
    seconds = figures["seconds"]
    start = figures["wall"] - sum(seconds.values())
    cells = [f"{preset} x{boxes} {collective}", str(figures.get("ranks", "")), f"{start:.2f}"]
    cells += [f"{seconds[stage]:.3f}" for stage in COLUMNS]
    cells += [f"{figures[name]:.2f}" for name in ("wall", "shell")]
    cells += [f"{figures['peak_mib']:.0f}"]
    if "refused" in figures:
        return [*cells, "", "refused", f"{figures['bound_gb_per_s']:.3f}", ""]
    cells += [str(figures["trees_per_gpu"]), f"{figures['algbw_gb_per_s']:.3f}"]
    return [*cells, f"{figures['bound_gb_per_s']:.3f}", f"{100 * figures['gap']:.2f} %"]


def main() -> int:
    """Run the cases asked for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("presets", nargs="*", help="presets to run (all)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        preset, boxes, collective = options.one
        print(json.dumps(measure(preset, int(boxes), collective)))
        return 0
    cases = [case for case in CASES if not options.presets or case[0] in options.presets]
    print("compiling kernels, first run only ...", file=sys.stderr)
    run("dgx-a100", 2, "allreduce")
    results = []
    for preset, boxes in cases:
        for collective in COLLECTIVES:
            print(f"{preset} x{boxes} {collective} ...", file=sys.stderr)
            results.append(run(preset, boxes, collective))
    show(table_of(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return int(any("failed" in figures for figures in results))


if __name__ == "__main__":
    sys.exit(main())
