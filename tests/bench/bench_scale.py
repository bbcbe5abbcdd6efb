"""``make bench``: exact forests over 16 to 1024 GPUs, with their certificates.

Every case runs in a process of its own, with kernels compiled and loaded before the clock
starts. ``bound`` finds a cut, ``forest`` trees at the rate of that cut (a bound of its own
in it), ``proof`` adds up their loads and recomputes the cut in exact arithmetic. One
thread works; its seconds are those of the processor, so a busy machine does not count, and
``wall`` is what passed meanwhile. An irregular machine has a twentieth of its links
missing or halved, by a fixed seed, which leaves it no symmetry. ``limit`` is what the case
is meant to stay below, all three together. Name fabrics to run those alone; ``--json
FILE`` keeps the figures and ``--svg FILE`` says where the plot goes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.report import Series, exponent, picture, plot
from tests.bench.harness import in_process_of_its_own, peak_mebibytes, show

if TYPE_CHECKING:
    from rich.table import Table

    from colsynth.model import Bound, Topology

MODULE = "tests.bench.bench_scale"


@dataclass(frozen=True)
class Case:
    """A preset, how many boxes of it, whether links are damaged, and the seconds allowed."""

    preset: str
    boxes: int
    irregular: bool = False
    limit: float | None = None

    @property
    def line(self) -> str:
        """What the plot calls it."""
        return f"{self.preset}, {'irregular' if self.irregular else 'as built'}"


LIMITS = {
    ("dgx-a100", 8, False): 2.0,
    ("dgx-a100", 128, False): 60.0,
    ("mi250", 4, False): 5.0,
    ("mi250", 32, False): 120.0,
    ("dgx-a100", 32, True): 120.0,
    ("mi250", 16, True): 120.0,
}
BOUND_LIMIT = 2.0
"""Seconds that the command ``colsynth bound`` may take on 1024 A100s, start included."""
SIZES = {"dgx-a100": (2, 4, 8, 16, 32, 64, 128), "mi250": (1, 2, 4, 8, 16, 32, 64)}
CASES = tuple(
    Case(preset, boxes, irregular, LIMITS.get((preset, boxes, irregular)))
    for irregular in (False, True)
    for preset, several in SIZES.items()
    for boxes in several
)
COLUMNS = ("bound", "forest", "proof")


def machine(case: Case) -> Topology:
    """Return the topology of a case; irregular ones by the first seed that keeps it whole."""
    from colsynth import api
    from colsynth.errors import InfeasibleError
    from tests.reference.graphs import damaged

    whole = api.load_topology(case.preset, nodes=case.boxes)
    if not case.irregular:
        return whole
    for seed in count():
        topology = damaged(whole, seed)
        try:
            api.bound(api.make_problem(topology, "broadcast", root=0))
        except InfeasibleError:
            continue
        return topology
    raise AssertionError


def measure(case: Case) -> dict[str, Any]:
    """Return the figures of an allgather, measured in this process."""
    from colsynth import api, runtimes
    from colsynth.bounds.trees import bound
    from colsynth.runtimes.target import Target
    from colsynth.synthesis.pack_trees import PackTrees
    from colsynth.verify import check_forest

    target = Target(runtimes.profile("msccl"))
    small = api.make_problem(api.load_topology("dgx-a100", nodes=2), "allgather")
    check_forest(PackTrees("optimal").run(small, target))  # loads what is compiled
    problem = api.make_problem(machine(case), "allgather")
    start = time.perf_counter()
    marks = [time.process_time()]
    optimum = bound(problem)
    marks.append(time.process_time())
    forest = PackTrees("optimal").run(problem, target)
    marks.append(time.process_time())
    check_forest(forest)
    marks.append(time.process_time())
    pairs = zip(COLUMNS, marks, marks[1:], strict=False)
    return {
        "gpus": problem.topology.size,
        "seconds": {name: after - before for name, before, after in pairs},
        "wall_seconds": time.perf_counter() - start,
        "peak_mib": peak_mebibytes(),
        "trees_per_gpu": forest.trees_per_root,
        "trees": len(forest.phases[0].trees),
        "height": forest.max_height,
        "algbw_gb_per_s": float(forest.algbw / 10**9),
        "gap": float(forest.gap),
        "exact": forest.gap == 0,
        "certificate": certificate(optimum),
    }


def certificate(optimum: Bound) -> str:
    """Return the cut in words: what leaves how many GPUs."""
    (cut,) = optimum.cuts
    return f"{len(cut.gpus)} GPUs, {len(cut.links)} links, {float(cut.bandwidth / 10**9):g} GB/s"


def run(number: int) -> dict[str, Any]:
    """Return the figures of one case from a process of its own."""
    case = CASES[number]
    figures = in_process_of_its_own(MODULE, ["--one", str(number)])
    total = sum(figures.get("seconds", {}).values())
    return {
        "preset": case.preset,
        "boxes": case.boxes,
        "line": case.line,
        "limit": case.limit,
        "total": total,
        **figures,
    }


def bound_command() -> tuple[float, float, bool]:
    """Return (processor seconds, wall seconds, success) of ``colsynth bound`` on 1024 A100s."""
    command = ["bound", "dgx-a100", "--nodes", "128", "-c", "allgather", "--json"]
    before = os.times()
    figures = in_process_of_its_own("colsynth", command)
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return spent, float(figures["wall"]), "failed" not in figures


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return one row for each case."""
    from rich.table import Table

    title = "exact forests of an allgather; seconds, MiB, GB/s"
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    for name in ("GPUs", *COLUMNS, "total", "wall", "limit", "peak", "per GPU", "trees", "height"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("algbw", "gap", "cut"):
        table.add_column(name, justify="right", no_wrap=True)
    for figures in results:
        table.add_row(*row(figures))
    return table


def row(figures: dict[str, Any]) -> list[str]:
    """Return the cells of one case; a failure says so instead of figures."""
    name = f"{figures['line']} x{figures['boxes']}"
    if "failed" in figures:
        return [name, "failed", str(figures["failed"])]
    cells = [name, str(figures["gpus"])]
    cells += [f"{figures['seconds'][column]:.3f}" for column in COLUMNS]
    cells += [f"{figures[key]:.2f}" for key in ("total", "wall_seconds")]
    cells += [f"{figures['limit']:g}" if figures["limit"] else "", f"{figures['peak_mib']:.0f}"]
    cells += [str(figures[key]) for key in ("trees_per_gpu", "trees", "height")]
    gap = "0, proven" if figures["exact"] else f"{100 * figures['gap']:.2f} %"
    return [*cells, f"{figures['algbw_gb_per_s']:.3f}", gap, figures["certificate"]]


def plot_of(results: list[dict[str, Any]]) -> bytes | None:
    """Return the plot of seconds over GPUs as SVG, None without any point."""
    series = []
    for colour, line in enumerate(dict.fromkeys(case.line for case in CASES)):
        mine = [item for item in results if item["line"] == line and "failed" not in item]
        points = tuple(sorted((item["gpus"], item["total"]) for item in mine))
        if points:
            growth = f": ~ GPUs^{exponent(points):.1f}" if len(points) > 1 else ""
            series.append(Series(f"{line}{growth}", points, colour=colour))
    if not series:
        return None
    title = "Exact forest of an allgather: bound, trees and proof"
    note = "One thread, kernels compiled; every forest at the optimum that its cut proves."
    return picture(plot(title, note, ("GPUs", "seconds"), tuple(series)), ".svg")


def main() -> int:
    """Run the fabrics asked for, print the table, write the plot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("presets", nargs="*", help=f"of {', '.join(SIZES)} (all)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--svg", type=Path, default=Path("out/bench-scale.svg"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(CASES[options.one])))
        return 0
    print("compiling kernels, first run only ...", file=sys.stderr)
    run(0)
    results = []
    for number, case in enumerate(CASES):
        if not options.presets or case.preset in options.presets:
            print(f"{case.line} x{case.boxes} ...", file=sys.stderr)
            results.append(run(number))
    show(table_of(results))
    seconds, wall, well = bound_command()
    print(f"colsynth bound dgx-a100 --nodes 128, start included: {seconds:.2f} s", end="")
    print(f" of {BOUND_LIMIT:g} s ({wall:.2f} s wall)")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2))
    drawn = plot_of(results)
    if drawn:
        options.svg.parent.mkdir(parents=True, exist_ok=True)
        options.svg.write_bytes(drawn)
        print(f"seconds over GPUs: {options.svg}", file=sys.stderr)
    return int(not well or any("failed" in item or not item["exact"] for item in results))


if __name__ == "__main__":
    sys.exit(main())
