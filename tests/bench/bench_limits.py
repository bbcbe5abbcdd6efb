"""The largest cluster whose schedules each runtime can hold, found by experiment.

Boxes of a preset are doubled until a schedule no longer fits, then bisected; a size counts
where a verified file came out. Every compilation runs in a process of its own, so that its
peak memory is its own, and with a time limit. Prints a table in Markdown, with the limit
that refused the next size. Takes much longer than the other benchmarks, so ``make bench``
leaves it out: ``python -m tests.bench.bench_limits``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.harness import in_process_of_its_own, peak_mebibytes

PRESETS = ("dgx-a100", "dgx-h100", "mi250", "mi300x")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")
RUNTIMES = ("msccl", "msccl-executor", "rccl")
MOST_GPUS = 1024
"""Ranks of the largest communicator that the runtimes' parsers take."""


@dataclass(frozen=True, slots=True)
class Found:
    """The largest number of boxes that fits, and why no more does.

    Parameters
    ----------
    boxes : int
        0 where not even one fits.
    figures : dict
        Of the compilation with that many boxes.
    reason : str
        Why the next larger number was not taken.
    """

    boxes: int
    figures: dict[str, Any]
    reason: str


def largest(measure: Callable[[int], dict[str, Any]], most: int) -> Found:
    """Return the largest number up to `most` that `measure` finds to fit.

    Sizes are taken to fit up to some number and not beyond.
    """
    best, figures, reason = 0, {}, f"not tried beyond {most}"
    step, low, high = 1, 0, most + 1
    while high - low > 1:
        boxes = min(step, most) if high > most else (low + high) // 2
        answer = measure(boxes)
        if "reason" in answer:
            high, reason = boxes, str(answer["reason"])
        else:
            low = best = boxes
            figures = answer
            step = 2 * boxes
    return Found(best, figures, reason)


def compile_one(preset: str, boxes: int, collective: str, runtime: str) -> dict[str, Any]:
    """Compile one case in this process and return its figures, or the reason of a refusal."""
    from colsynth import api
    from colsynth.errors import NegativeFinding

    problem = api.make_problem(api.load_topology(preset, nodes=boxes), collective)
    start = time.process_time()
    try:
        done = api.compile(problem, runtime, several=False)
    except NegativeFinding as refusal:
        return {"reason": refusal.diagnostic.phrase}
    summary = done.summary()
    keys = ("ranks", "trees_per_gpu", "threadblocks", "steps", "channels", "chunks", "gap")
    figures = {key: summary[key] for key in keys}
    tightest = max(summary["limits"].items(), key=lambda item: item[1]["used"] / item[1]["limit"])
    figures["tightest"] = [tightest[0], tightest[1]["used"], tightest[1]["limit"]]
    return {**figures, "seconds": time.process_time() - start, "peak_mib": peak_mebibytes()}


def measured(
    preset: str, collective: str, runtime: str, budget: float
) -> Callable[[int], dict[str, Any]]:
    """Return what compiles a case with some number of boxes, and tells how it went."""

    def measure(boxes: int) -> dict[str, Any]:
        case = (preset, str(boxes), collective, runtime)
        answer = in_process_of_its_own("tests.bench.bench_limits", ["--one", *case], seconds=budget)
        if "failed" in answer:
            answer["reason"] = answer["failed"]
        state = answer.get("reason") or f"{answer['seconds']:.1f} s"
        print(f"{' '.join(case)}: {state}", file=sys.stderr, flush=True)
        return answer

    return measure


def row(preset: str, collective: str, runtime: str, found: Found) -> str:
    """Return a line of the table."""
    figures = found.figures
    if not found.boxes:
        return f"| {preset} | {collective} | {runtime} | none | | | | {found.reason} |"
    name, used, limit = figures["tightest"]
    cells = (
        *(preset, collective, runtime, f"{figures['ranks']} (x{found.boxes})"),
        f"{figures['seconds']:.1f}",
        f"{figures['peak_mib']:.0f}",
        f"{name.replace('_', ' ')} {used} of {limit}",
        found.reason,
    )
    return f"| {' | '.join(cells)} |"


HEAD = "| cluster | collective | runtime | GPUs | CPU seconds | MiB | tightest limit | next size |"


def table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table while they are found."""
    yield HEAD
    yield "|---" * (HEAD.count("|") - 1) + "|"
    for preset in options.presets or PRESETS:
        per_box = 16 if preset == "mi250" else 8
        most = options.gpus // per_box
        for collective in options.collectives:
            for runtime in options.runtimes:
                found = largest(measured(preset, collective, runtime, options.seconds), most)
                yield row(preset, collective, runtime, found)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("presets", nargs="*", help="presets to run (all)")
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES)
    parser.add_argument("--gpus", type=int, default=MOST_GPUS, help="largest cluster to try")
    parser.add_argument("--seconds", type=float, default=600.0, help="for one compilation")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        preset, boxes, collective, runtime = options.one
        print(json.dumps(compile_one(preset, int(boxes), collective, runtime)))
        return 0
    lines = []
    for line in table(options):
        print(line, flush=True)
        lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
