"""``make bench``: seconds to predict one message size, for programs of 8 to 64 GPUs.

Every case runs in a process of its own, with kernels compiled. ``build`` turns the program
into arrays, once for all sizes; ``run`` is one message of 1 GiB; ``slices`` is how much of it
was played, tile by tile; ``trace`` is the same with a row for each slice, as for
``--breakdown`` and ``--timeline``. Issue 4 asks for 1 s at 16 GPUs and 10 s at 64.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.harness import in_process_of_its_own, peak_mebibytes, show

if TYPE_CHECKING:
    from rich.table import Table

SIZE = 2**30
RUNTIME = "msccl"
STAGES = ("build", "run", "trace")
CASES = (
    ("dgx-a100", 1, "ring", 2),
    *(("dgx-a100", boxes, algorithm, 1) for boxes in (2, 8) for algorithm in ("forest", "ring")),
    ("mi250", 1, "forest", 1),
    ("mi250", 4, "forest", 1),
)


def measure(preset: str, boxes: int, algorithm: str, instances: int) -> dict[str, Any]:
    """Simulate one case in this process and return its figures."""
    from colsynth import api
    from colsynth.cost import default_model
    from colsynth.runtimes import profile
    from colsynth.simulate import Point, simulate
    from colsynth.simulate.machine import build
    from colsynth.simulate.run import run

    topology, target = api.load_topology(preset, nodes=boxes), profile(RUNTIME)
    problem = api.make_problem(topology, "allreduce")
    options: dict[str, Any] = {"algorithm": algorithm, "instances": instances}
    done = api.compile(problem, RUNTIME, several=False, **options)
    program = done.artefacts[0].program
    simulate(program, topology, target, [1024])  # loads numba and the kernels
    marks = [time.perf_counter()]
    machine = build(program, topology, default_model(target))
    marks.append(time.perf_counter())
    found = run(machine, target, SIZE)
    marks.append(time.perf_counter())
    traced = run(machine, target, SIZE, trace=True)
    marks.append(time.perf_counter())
    point = Point(SIZE, found.seconds, topology.size, problem.collective)
    return {
        "ranks": topology.size,
        "steps": len(machine.units),
        "slices": len(traced.times),
        "tiles": [found.tiling.simulated, found.tiling.tiles],
        "seconds": dict(zip(STAGES, (b - a for a, b in pairwise(marks)), strict=True)),
        "busbw_gb_per_s": point.busbw / 1e9,
        "peak_mib": peak_mebibytes(),
    }


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return one row for each case."""
    from rich.table import Table

    title = f"simulation of an allreduce of 1 GiB as {RUNTIME} runs it; seconds, MiB, GB/s"
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    for name in ("GPUs", "steps", "tiles", "slices", *STAGES, "peak", "busbw"):
        table.add_column(name, justify="right", no_wrap=True)
    for figures in results:
        table.add_row(*row(figures))
    return table


def row(figures: dict[str, Any]) -> list[str]:
    """Return the cells of one case; a failure says so instead of figures."""
    preset, boxes, algorithm, instances = figures["case"]
    name = f"{preset} x{boxes} {algorithm}" + (f", {instances} instances" if instances > 1 else "")
    if "failed" in figures:
        return [name, "failed", str(figures["failed"])]
    cells = [name, str(figures["ranks"]), f"{figures['steps']:,}"]
    cells += ["{} of {}".format(*figures["tiles"]), f"{figures['slices']:,}"]
    cells += [f"{figures['seconds'][stage]:.3f}" for stage in STAGES]
    return [*cells, f"{figures['peak_mib']:.0f}", f"{figures['busbw_gb_per_s']:.1f}"]


def main() -> int:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        preset, boxes, algorithm, instances = options.one
        print(json.dumps(measure(preset, int(boxes), algorithm, int(instances))))
        return 0
    results = []
    for case in CASES:
        print(" ".join(map(str, case)), "...", file=sys.stderr)
        arguments = ["--one", *map(str, case)]
        figures = in_process_of_its_own("tests.bench.bench_simulate", arguments)
        results.append({"case": list(case), **figures})
    show(table_of(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return int(any("failed" in figures for figures in results))


if __name__ == "__main__":
    sys.exit(main())
