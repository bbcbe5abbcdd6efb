"""What each level of the search reaches, beside the best baseline and the bound.

One row for each machine, collective, runtime and message size. The size is the objective of
every level, and `compare` looks at that size alone. Each row is checked for the laws of the
search (`violations`). ``--golden FILE`` compares predicted seconds with those of an earlier
run, ``--output DIR`` keeps rows, so that an interrupted run goes on, and ``--sweep`` prints
instead how results change with the size of the machine (`tests.bench.sweeps`).
Takes minutes to hours, so ``make bench`` leaves it out: ``python -m tests.bench.bench_levels``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.harness import show
from tests.bench.sweeps import print_sweeps

if TYPE_CHECKING:
    from rich.table import Table

MACHINES = ("dgx-a100", "mi250", "ndv2", "mi300x")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")
RUNTIMES = ("msccl", "msccl-executor", "rccl")
SIZES = ("64KiB", "1MiB", "64MiB", "1GB")
LEVELS = (0, 1, 2, 3)
GIGABYTE = 10**9
SLOWER = 1.01
"""Predicted time over that of the golden file from which a row counts as slower."""
EQUAL = 1e-9
"""Relative difference of predicted times that rounding alone may make."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is compiled, and the size in bytes that it is to be fast at."""

    machine: str
    boxes: int
    collective: str
    runtime: str
    size: int

    def __str__(self) -> str:
        from colsynth.units import format_size

        size = "1 GB" if self.size == GIGABYTE else format_size(self.size)
        return f"{self.machine} x{self.boxes} {self.collective} {self.runtime} {size}"


def measure(case: Case, levels: Sequence[int]) -> dict[str, Any]:
    """Return the predicted seconds of every level, and those that `compare` finds.

    A program that a call of that size would not use (its chunks do not divide the message)
    has no time here: the library would run something else.
    """
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.search.wish import is_baseline

    begun = time.process_time()
    problem = api.make_problem(api.load_topology(case.machine, nodes=case.boxes), case.collective)
    found: dict[str, Any] = {"case": str(case), "size": case.size, "levels": {}, "compared": {}}
    for level in levels:
        try:
            done = api.compile(problem, case.runtime, level=level, size=case.size, several=False)
        except ColsynthError as refusal:
            found["levels"][f"O{level}"] = {"refused": str(refusal.diagnostic.phrase)}
            continue
        used = done.taken().takes(case.size)
        found["levels"][f"O{level}"] = {
            "seconds": done.predicted[-1].seconds if used else None,
            "settings": " ".join([done.algorithm, *_settings(done.summary()["settings"])]),
            "ours": not is_baseline(done.algorithm),
        }
    compared = api.compare(problem, [case.size], runtime=case.runtime)
    for name in compared.winners:
        seconds = compared.seconds(name, 0)
        found["compared"][name] = {"seconds": seconds, "ours": not is_baseline(name)}
    found["bound"] = case.size / float(compared.bound)
    return {**found, "cpu": time.process_time() - begun}


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in settings.items())


def best_of(found: Mapping[str, Mapping[str, Any]], ours: bool) -> tuple[float, str]:
    """Return the least seconds, and of what, among our own results or among baselines."""
    times = ((x.get("seconds"), name) for name, x in found.items() if x.get("ours") is ours)
    return min(((t, name) for t, name in times if t), default=(float("inf"), ""))


def violations(figures: Mapping[str, Any]) -> list[str]:
    """Return the laws that a row breaks; times that rounding tells apart are equal.

    A level is never slower than the one below; the highest never slower than an algorithm of
    `compare`; nothing is faster than the bound; at 1 GB our own algorithms beat those of libraries.
    """
    times = {name: x.get("seconds") or float("inf") for name, x in figures["levels"].items()}
    faults = [
        f"{upper} is {times[upper] / times[lower]:.4f} times {lower}"
        for lower, upper in pairwise(sorted(times))
        if times[upper] > times[lower] * (1 + EQUAL)
    ]
    compared = figures["compared"]
    highest = times.get(f"O{LEVELS[-1]}")
    for name, entry in compared.items() if highest is not None else ():
        if entry["seconds"] and highest > entry["seconds"] * (1 + EQUAL):
            faults.append(f"O{LEVELS[-1]} is {highest / entry['seconds']:.4f} times {name}")
    least = min([*times.values(), *(x["seconds"] for x in compared.values() if x["seconds"])])
    if least < figures["bound"] * (1 - EQUAL):
        faults.append("faster than the bound")
    own = min(best_of(compared, True), best_of(figures["levels"], True))
    other, name = best_of(compared, False)
    if figures["size"] == GIGABYTE and own[0] > other * (1 + EQUAL):
        faults.append(f"{name} beats our own algorithms")
    return faults


def table_of(results: Sequence[Mapping[str, Any]], levels: Sequence[int]) -> Table:
    """Return one row for each case: GB/s, and the laws it breaks."""
    from rich.table import Table

    title = "predicted algbw in GB/s; every level searches for the size of its row"
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    names = [f"O{level}" for level in levels]
    for name in (*names, "baseline", "bound", "of bound", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best baseline")
    table.add_column("broken laws")
    for figures in results:
        table.add_row(*row(figures, names))
    return table


def row(figures: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the cells of one case; ``-`` where a call of that size would use no file."""
    size, found = figures["size"], figures["levels"]
    times = [found[name].get("seconds") for name in names]
    seconds, baseline = best_of(figures["compared"], False)
    cells = [_rate(size, t) for t in (*times, seconds, figures["bound"])]
    best = min((t for t in times if t), default=None)
    share = "-" if best is None else f"{100 * figures['bound'] / best:.0f} %"
    faults = "; ".join(violations(figures)) or "none"
    return [figures["case"], *cells, share, f"{figures['cpu']:.1f}", baseline, faults]


def _rate(size: int, seconds: float | None) -> str:
    return f"{size / seconds / 1e9:.3f}" if seconds and seconds < float("inf") else "-"


def golden_of(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return what a golden file holds: by case, seconds by level."""
    return {
        figures["case"]: {n: x["seconds"] for n, x in figures["levels"].items() if x.get("seconds")}
        for figures in results
    }


def compared_with(golden: Mapping[str, Any], fresh: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on what is slower than before; the last ones are of each level together."""
    ratios: dict[str, list[tuple[float, str]]] = {}
    for case, times in fresh.items():
        for name in times.keys() & golden.get(case, {}).keys():
            ratios.setdefault(name, []).append((times[name] / golden[case][name], case))
    for name, found in sorted(ratios.items()):
        for ratio, case in sorted(found, reverse=True):
            if ratio > SLOWER:
                yield f"slower: {name} {case}: {ratio:.4f} times the golden time"
        mean = exp(sum(log(ratio) for ratio, _ in found) / len(found))
        worst, case = max(found)
        yield f"{name}: {len(found)} times, mean ratio {mean:.4f}, worst {worst:.4f} ({case})"


def cases_of(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the options select."""
    from colsynth.units import parse_size

    sizes = [parse_size(size) for size in options.sizes]
    chosen = (options.machines, options.boxes, options.collectives, options.runtimes, sizes)
    return [Case(*x) for x in product(*chosen)]


def run(cases: Sequence[Case], levels: Sequence[int], jobs: int, output: Path | None) -> list[Any]:
    """Return the figures of all cases; those that an earlier run kept are not made again."""
    from colsynth.jobs.journal import Journal
    from colsynth.jobs.workers import Workers

    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    journal = Journal(None if output is None else output / "levels.jsonl")
    keys = {str(case): f"{case} {','.join(map(str, levels))}" for case in cases}
    left = [case for case in cases if journal.recall(keys[str(case)]) is None]
    names = [f"O{level}" for level in levels]
    with Workers(jobs) as workers:
        for figures in workers.run(partial(measure, levels=levels), left):
            journal.keep(keys[figures["case"]], figures)
            print("  ".join(row(figures, names)), file=sys.stderr, flush=True)
    return [journal.recall(keys[str(case)]) for case in cases]


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("machines", nargs="*", default=MACHINES, help="presets (all four)")
    parser.add_argument("--boxes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="such as 1MiB")
    parser.add_argument("--levels", type=int, nargs="+", default=LEVELS, choices=LEVELS)
    parser.add_argument("--jobs", type=int, default=1, help="rows at the same time")
    parser.add_argument("--output", type=Path, help="keep rows in this directory, and go on there")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--golden", type=Path, help="compare with this file; write it if missing")
    parser.add_argument("--sweep", nargs="*", help="sweep sizes of machines instead: all, or these")
    return parser.parse_args()


def main() -> int:
    """Print the table; fail where a law is broken, or a row is slower than the golden one."""
    options = parsed()
    if options.sweep is not None:
        return print_sweeps(options.sweep)
    results = run(cases_of(options), options.levels, options.jobs, options.output)
    show(table_of(results, options.levels))
    if options.json:
        options.json.write_text(f"{json.dumps(results, indent=2)}\n")
    slower = False
    if options.golden and options.golden.exists():
        lines = list(compared_with(json.loads(options.golden.read_text()), golden_of(results)))
        print("\n".join(lines))
        slower = any(line.startswith("slower") for line in lines)
    elif options.golden:
        options.golden.write_text(f"{json.dumps(golden_of(results), indent=2)}\n")
    return int(slower or any(violations(figures) for figures in results))


if __name__ == "__main__":
    sys.exit(main())
