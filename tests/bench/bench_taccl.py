"""``python -m tests.bench.bench_taccl``: our schedules beside those of TACCL and TE-CCL.

Their published times are in ``taccl.yaml``. Ours are times of checked schedules on the same
machines with the same constants, in the model of TE-CCL: the presets state its bandwidths and
latencies. Of several numbers of chunks the best schedule counts, and the seconds of all. Seconds
are processor time of one thread, kernels loaded before. Name cases (a part of the name is enough)
to run those alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from colsynth import api
from colsynth.model import Problem
from colsynth.units import format_size
from tests.bench.harness import show

DATA = Path(__file__).parent / "taccl.yaml"

Solve = Callable[[Problem, int, int], tuple[float, float]]
"""From a problem, bytes and chunks per GPU to microseconds and the bound in microseconds."""


ALGORITHMS = ("ten", "exact")


def solver(algorithm: str) -> Solve:
    """Return what an algorithm reaches."""

    def solve(problem: Problem, size: int, chunks: int) -> tuple[float, float]:
        done = api.synthesize(problem, algorithm=algorithm, size=size, chunks_per_gpu=chunks)
        return float(done.schedule.seconds) * 1e6, float(done.schedule.bound.seconds) * 1e6

    return solve


@dataclass(frozen=True)
class Row:
    """One size of one case; microseconds and seconds, None where nothing was published."""

    case: str
    size: int
    ours: float
    bound: float
    seconds: float
    taccl: float | None
    taccl_seconds: float | str | None
    teccl: float | None
    teccl_seconds: float | None


def data() -> dict[str, Any]:
    """Return the published figures."""
    found: dict[str, Any] = yaml.safe_load(DATA.read_text())
    return found


def rows(
    case: dict[str, Any],
    sizes: Sequence[int],
    wanted: Sequence[int],
    solve: Solve,
    chunks: list[int],
) -> Iterator[Row]:
    """Yield the rows of one case, for the sizes that are wanted."""
    topology = api.load_topology(case["preset"], nodes=case["nodes"])
    problem = api.make_problem(topology, case["collective"])
    solve(problem, sizes[0], 1)  # loads kernels
    spent = case["taccl-seconds"]
    for i, size in enumerate(sizes):
        if size not in wanted:
            continue
        begin = time.process_time()
        ours, bound = min(solve(problem, size, count) for count in chunks)
        rate = case["taccl"][i]
        yield Row(
            case["name"],
            size,
            ours,
            bound,
            time.process_time() - begin,
            None if rate is None else size / rate / 1000,
            spent if isinstance(spent, str) else spent[i],
            case["teccl"][i],
            case["teccl-seconds"][i],
        )


def table(found: Sequence[Row]) -> None:
    """Print the rows; ratios above one say how much longer the others take."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    heads = (
        "case",
        "size",
        "ours us",
        "bound us",
        "s",
        "TACCL us",
        "s",
        "x",
        "TE-CCL us",
        "s",
        "x",
    )
    for head in heads:
        grid.add_column(head, justify="left" if head == "case" else "right")
    for row in found:
        grid.add_row(
            row.case,
            format_size(row.size),
            *(f"{x:.5g}" for x in (row.ours, row.bound)),
            f"{row.seconds:.2f}",
            *_told(row.taccl, row.taccl_seconds, row.ours),
            *_told(row.teccl, row.teccl_seconds, row.ours),
        )
    show(grid)


def _told(time_: float | None, seconds: float | str | None, ours: float) -> tuple[str, str, str]:
    if time_ is None:
        return "-", "-", "-"
    return f"{time_:.5g}", "-" if seconds is None else str(seconds), f"{time_ / ours:.2f}"


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Run the cases, print the table and return its rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", help="Parts of names of cases; all unless given.")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="ten")
    parser.add_argument("--chunks", default="1,4", help="Chunks per GPU that are tried.")
    parser.add_argument("--sizes", help="Bytes, separated by commas; all unless given.")
    parser.add_argument("--json", type=Path, help="Write the rows to this file too.")
    given = parser.parse_args(arguments)
    published = data()
    wanted = [int(x) for x in given.sizes.split(",")] if given.sizes else published["sizes"]
    chunks = [int(x) for x in given.chunks.split(",")]
    found = [
        row
        for case in published["cases"]
        if not given.cases or any(part.lower() in case["name"].lower() for part in given.cases)
        for row in rows(case, published["sizes"], wanted, solver(given.algorithm), chunks)
    ]
    table(found)
    for case in published["cases"]:
        if "note" in case:
            print(f"{case['name']}: {case['note']}")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    return found


if __name__ == "__main__":
    main()
