"""Constants of MSCCL++ plans on a GPU, and what the simulator predicts with them.

``python -m tests.gpu.plan_compare FOLDER TIMES`` prints what the small plans say of ``step``,
``hop``, ``wait``, ``rate`` and ``local_rate``, then measured and predicted times of the plans whose
threadblocks each had an SM. FOLDER and TIMES are those of `tests.gpu.cases` and
`tests.gpu.run_plans`.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from colsynth.cost import Model, default_model, ideal_model
from colsynth.runtimes import profile
from tests.bench.harness import show
from tests.gpu.compare import files_table
from tests.gpu.plan_micro import BYTES, COUNTS, MOVES, TURNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = Sequence[dict[str, Any]]

RUNTIME = "mscclpp"
SLOPE = 256 << 10, 1 << 20
"""Chunks between which GB/s are taken, so that what a repetition costs by itself drops out."""


def each(row: dict[str, Any]) -> float:
    """Return microseconds of one repetition, or of each of its turns."""
    return float(row["us"]) / row["many"] / TURNS.get(row["program"], 1)


def constants(rows: Rows, threads: int) -> dict[str, float]:
    """Return microseconds of short work, and GB/s of long work, with so many threads."""
    mine = {(r["program"], r["chunk"]): each(r) for r in rows if r["threads"] == threads}
    found = {name: us for (name, chunk), us in mine.items() if chunk == BYTES[0]}
    first, last = SLOPE
    for name in MOVES:
        if (name, first) in mine and (name, last) in mine:
            us = mine[name, last] - mine[name, first]
            found[f"{name}, GB/s"] = (last - first) / us / 1e3 if us > 0 else math.nan
    return found


def model_of(rows: Rows) -> Model:
    """Return the simulator's model of what ran on the GPU: no wires, and no launch."""
    seen = constants(rows, 1024)
    model, stated = ideal_model(), default_model(profile(RUNTIME))

    def both(simple: float, packets: float) -> dict[str, float]:
        return {"Simple": simple, "LL": packets, "LL128": packets}

    return replace(
        model,
        rate=both(seen["relay, GB/s"], seen["packet relay, GB/s"]),
        local_rate=both(seen["add, GB/s"], seen["add, GB/s"]),
        step=both(seen["message"], seen["packet message"]),
        hop=both(
            max(0.0, seen["handover"] - seen["message"]),
            max(0.0, seen["packet lap"] - seen["packet message"]),
        ),
        wait=seen["semaphore"],
        slices=stated.slices,
        least_slice=stated.least_slice,
    )


def constants_table(seen: dict[str, Any]) -> Table:
    """Return the constants that were measured."""
    widths = sorted({r["threads"] for r in seen["micro"]}, reverse=True)
    table = Table("of", *(f"{threads} threads" for threads in widths), title=seen["gpu"])
    found = [constants(seen["micro"], threads) for threads in widths]
    for name in found[0]:
        table.add_row(name, *(f"{own.get(name, math.nan):.2f}" for own in found))
    table.caption = "us each with chunks of 16 B, or GB/s of data"
    return table


def sizes_table(rows: Rows) -> Table:
    """Return microseconds and GB/s of each small plan by the size of its chunks."""
    table = Table("us, GB/s of", *map(str, BYTES), title="1024 threads, chunks in bytes")
    for name in MOVES:
        mine = {r["chunk"]: each(r) for r in rows if (r["program"], r["threads"]) == (name, 1024)}
        cells = [
            f"{mine[chunk]:.2f} {chunk / max(mine[chunk], 1e-9) / 1e3:.1f}" if chunk in mine else ""
            for chunk in BYTES
        ]
        table.add_row(name, *cells)
    return table


def model_table(model: Model) -> Table:
    """Return the constants that were measured beside those that the simulator has."""
    stated = default_model(profile(RUNTIME))
    table = Table("constant", "Simple, here", "Simple", "LL, here", "LL", title="the model")
    for name in ("rate", "local_rate", "step", "hop"):
        here, there = getattr(model, name), getattr(stated, name)
        cells = (f"{one[p]:.2f}" for p in ("Simple", "LL") for one in (here, there))
        table.add_row(name, *cells)
    table.add_row("wait", f"{model.wait:.2f}", f"{stated.wait:.2f}", "", "")
    return table


def main(folder: Path, times: Path) -> None:
    """Print all tables."""
    seen = json.loads(times.read_text())
    missing = [name for name in COUNTS if name not in {r["program"] for r in seen["micro"]}]
    if missing:
        print("these small plans did not run:", ", ".join(missing))
    model = model_of(seen["micro"])
    for table in (constants_table(seen), sizes_table(seen["micro"]), model_table(model)):
        show(table)
    show(files_table(folder, seen["files"], model, lambda program: program.header.protocol))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
