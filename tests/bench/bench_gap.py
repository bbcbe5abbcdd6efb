"""How far the default file is from what no file can beat, and from every other algorithm.

One row for each machine, collective, runtime and message size: the predicted time of what
``compile --size SIZE`` writes by default, over the runtime's bound. Messages are the largest usual
ones up to a size: for 24 GPUs, three times a power of two. ``--rivals`` also compiles
every algorithm by itself with 1 to 8 instances at -O0 and prints the fastest. ``--output FILE``
keeps rows, so that an interrupted run goes on. Takes an hour:
``python -m tests.bench.bench_gap --output out/gap.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.bench.harness import show

MACHINES = (
    *("dgx-a100", "dgx-h100", "mi300x", "mi250", "ndv2", "dgx2", "dgx-1v"),
    *("gb200-nvl72:24", "gb200-nvl72"),
)
BOXES = (1, 2)
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")
RUNTIMES = ("msccl", "msccl-executor", "rccl")
SIZES = ("1KiB", "64KiB", "1MiB", "1GiB")
INSTANCES = (1, 2, 4, 8)

Case = tuple[str, int, str, str, str]
"""Machine, boxes, collective, runtime, size."""


def measure(case: Case, rivals: bool) -> dict[str, Any]:
    """Return predicted seconds, the bound's, and the fastest other algorithm's."""
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.runtimes.selection import usual_size
    from colsynth.units import parse_size

    machine, boxes, collective, runtime, text = case
    name, _, gpus = machine.partition(":")
    settings = {"gpus": gpus} if gpus else {}
    problem = api.make_problem(api.load_topology(name, nodes=boxes, settings=settings), collective)
    size = usual_size(parse_size(text), problem.collective, problem.topology.size)
    begun = time.process_time()
    try:
        done = api.compile(problem, runtime, size=size, several=False)
    except ColsynthError as refusal:
        return {"refused": refusal.diagnostic.code}
    point = done.predicted[-1]
    found: dict[str, Any] = {
        "size": size,
        "seconds": point.seconds,
        "least": point.least.seconds,
        "binds": point.least.binds,
        "plan": f"{done.algorithm} {done.summary()['settings']}",
        "cpu": time.process_time() - begun,
    }
    if rivals:
        found["rival"], found["rival_seconds"] = fastest(problem, runtime, size)
    return found


def fastest(problem: Any, runtime: str, size: int) -> tuple[str, float]:
    """Return the fastest algorithm with some number of instances, and its seconds."""
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.search.wish import algorithm_names

    best = ("none", float("inf"))
    for algorithm, instances in product(algorithm_names(problem), INSTANCES):
        if algorithm == "exact":
            continue
        try:
            done = api.compile(
                problem, runtime, algorithm=algorithm, instances=instances, level=0, size=size,
                several=False,
            )  # fmt: skip
        except ColsynthError:
            continue
        seconds = done.predicted[-1].seconds
        if seconds < best[1]:
            best = f"{algorithm} x{instances}", seconds
    return best


def rows(cases: Sequence[Case], rivals: bool, kept: Path | None) -> Iterator[tuple[str, Any]]:
    """Yield every case with its figures, those that are kept first."""
    known: dict[str, Any] = {}
    if kept is not None and kept.exists():
        known = json.loads(kept.read_text())
    for case in cases:
        name = " ".join(map(str, case))
        if name not in known or (
            rivals and "seconds" in known[name] and "rival" not in known[name]
        ):
            known[name] = measure(case, rivals)
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(known, indent=1))
            print(name, known[name], file=sys.stderr, flush=True)
        yield name, known[name]


def main() -> None:
    """Measure and print."""
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__)
    for option, values in (
        *(("machines", MACHINES), ("boxes", BOXES), ("collectives", COLLECTIVES)),
        *(("runtimes", RUNTIMES), ("sizes", SIZES)),
    ):
        parser.add_argument(f"--{option}", default=",".join(map(str, values)))
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    lists = [given.machines, given.collectives, given.runtimes, given.sizes]
    machines, collectives, runtimes, sizes = (text.split(",") for text in lists)
    boxes = [int(text) for text in given.boxes.split(",")]
    cases = list(product(machines, boxes, collectives, runtimes, sizes))
    table = Table("case", "GB/s", "at most", "ratio", "binds", "CPU s", "fastest other", "plan")
    for name, row in rows(cases, given.rivals, given.output):
        if "refused" in row:
            table.add_row(name, "", "", "", row["refused"])
            continue
        rates = [row["size"] / row[key] / 1e9 for key in ("seconds", "least")]
        other = ""
        if "rival" in row:
            other = f"{row['rival']} {row['rival_seconds'] / row['seconds']:.2f}"
        figures = (*(f"{rate:.4g}" for rate in rates), f"{row['seconds'] / row['least']:.2f}")
        table.add_row(name, *figures, row["binds"], f"{row['cpu']:.1f}", other, row["plan"])
    show(table)


if __name__ == "__main__":
    main()
