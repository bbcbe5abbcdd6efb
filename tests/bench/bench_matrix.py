"""Default files of all presets beside the least time of any file: how far is left to go.

One row for each machine, collective and runtime. A cell is the predicted time of the file that
``compile --size`` makes for that size, over the runtime's bound, and the algorithm. Sizes are
rounded to what calls use in collectives that share a message (768 MiB for 24 GPUs).
``bench_levels`` compares levels and baselines instead. ``--shell`` adds the seconds from the shell
to a verified file without ``--size``. ``--output FILE`` keeps rows, so that an interrupted run goes
on. Takes an hour, so ``make bench`` leaves it out: ``python -m tests.bench.bench_matrix``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from tests.bench.harness import from_shell

MACHINES = (
    *("dgx-a100", "dgx-h100", "dgx-b200", "mi300x", "mi250", "ndv2", "dgx2", "dgx-1v"),
    *("gb200-nvl72:24", "gb200-nvl72"),
)
"""Presets; ``NAME:24`` has 24 GPUs."""
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")
RUNTIMES = ("msccl", "msccl-executor", "rccl")
SIZES = ("1KiB", "64KiB", "1MiB", "1GiB")


def parts(machine: str) -> tuple[str, dict[str, str]]:
    """Return the preset of a machine, and its settings."""
    preset, _, gpus = machine.partition(":")
    return preset, {"gpus": gpus} if gpus else {}


def ratio(machine: str, boxes: int, collective: str, runtime: str, size: int) -> str:
    """Return the predicted time over the bound, or why there is none; and the algorithm."""
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.runtimes.selection import usual_size

    preset, settings = parts(machine)
    topology = api.load_topology(preset, nodes=boxes, settings=settings)
    try:
        problem = api.make_problem(topology, collective)
        size = usual_size(size, problem.collective, topology.size)
        done = api.compile(problem, runtime, size=size, several=False)
    except ColsynthError as refusal:
        return str(refusal.diagnostic.code)
    point = next((p for p in done.predicted if p.size_bytes == size), None)
    if point is None or point.least is None:
        return "none"
    return f"{point.seconds / point.least.seconds:.2f} {done.summary()['algorithm']}"


def shell_seconds(machine: str, boxes: int, collective: str, runtime: str) -> float:
    """Return the seconds of the command."""
    preset, settings = parts(machine)
    given = [word for item in settings.items() for word in ("--set", "=".join(item))]
    return from_shell([preset, "--nodes", str(boxes), *given, "-c", collective, "-r", runtime])


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the cells of every row, as they are found or were kept."""
    from colsynth.units import parse_size

    kept = {}
    if options.output and options.output.exists():
        lines = map(json.loads, options.output.read_text().splitlines())
        kept = {line["case"]: line for line in lines}
    for case in product(options.machines, options.boxes, options.collectives, options.runtimes):
        name = " ".join(map(str, case))
        row = kept.get(name, {"case": name})
        cells: dict[str, str] = {
            size: row.get(size) or ratio(*case, parse_size(size)) for size in options.sizes
        }
        if options.shell:
            cells["shell"] = row.get("shell") or f"{shell_seconds(*case):.1f}"
        if options.output and not cells.items() <= row.items():
            with options.output.open("a") as file:
                file.write(f"{json.dumps(row | cells)}\n")
        yield {"case": name} | cells


def main() -> int:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("machines", nargs="*", default=MACHINES)
    parser.add_argument("--boxes", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES)
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--shell", action="store_true", help="also measure seconds")
    parser.add_argument("--output", type=Path, help="keep rows in this file, and read it")
    options = parser.parse_args()
    for number, row in enumerate(rows(options)):
        if not number:
            print(f"| {' | '.join(row)} |\n{'|---' * len(row)}|")
        print(f"| {' | '.join(row.values())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
