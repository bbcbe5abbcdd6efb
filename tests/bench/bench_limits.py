"""The largest cluster whose schedules each runtime can hold, found by experiment.

The size of a fabric (boxes of a preset, rows of a torus) is doubled until a schedule no
longer fits, then bisected; ``--from`` begins near a size that is known, in GPUs. A size counts
where a verified file came out. Every compilation runs in a process of its own, so that its
peak memory is its own, and with a time limit. Prints two tables in Markdown: what was found,
with the limit that refused the next size, and what the runtimes' limits leave room for
(`ceilings`). Takes much longer than the other benchmarks, so ``make bench`` leaves it out:
``python -m tests.bench.bench_limits``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.harness import in_process_of_its_own, peak_mebibytes

if TYPE_CHECKING:
    from colsynth.model import Topology
    from colsynth.runtimes.profile import Profile

FABRICS = {"dgx-a100": 8, "mi250": 16, "torus:16xN": 16}
"""GPUs of one box, or of one row."""
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")
RUNTIMES = ("msccl", "msccl-executor", "rccl")
MOST_GPUS = 512
"""Larger ones take minutes each."""
MOST_RANKS = 1024
"""GPUs of one file: MAX_SUBS, children of an element, which no parser checks (contract 2.2)."""


@dataclass(frozen=True, slots=True)
class Found:
    """The largest size that fits, and why no more does.

    Parameters
    ----------
    size : int
        Boxes or rows; 0 where not even one fits.
    figures : dict
        Of the compilation of that size.
    beyond : int or None
        The least size that did not fit; None where none was found.
    reason : str
        Why it did not.
    """

    size: int
    figures: dict[str, Any]
    beyond: int | None = None
    reason: str = ""


def largest(measure: Callable[[int], dict[str, Any]], most: int, guess: int = 1) -> Found:
    """Return the largest size up to `most` that `measure` finds to fit.

    Sizes are taken to fit up to some number and not beyond. The search begins at `guess`,
    moves away from it by steps that double, then bisects.
    """
    low, high, figures, reason = 0, most + 1, {}, ""
    size, step, rising = max(1, min(guess, most)), 1, None
    while high - low > 1:
        answer = measure(size)
        fits = "reason" not in answer
        if fits:
            low, figures = size, answer
        else:
            high, reason = size, str(answer["reason"])
        if rising is None:
            rising = fits
        if fits == rising:
            size = min(low + step, most) if rising else max(high - step, 1)
            step *= 2
        if fits != rising or not low < size < high:
            size = (low + high) // 2
    return Found(low, figures, high if high <= most else None, reason)


def topology_of(fabric: str, size: int) -> Topology:
    """Return a preset with so many boxes, or a generated fabric with so many rows."""
    from colsynth import api

    if fabric.endswith("N"):
        return api.load_topology(f"{fabric[:-1]}{size}")
    return api.load_topology(fabric, nodes=size)


def compile_one(fabric: str, size: int, collective: str, runtime: str) -> dict[str, Any]:
    """Compile one case in this process and return its figures, or the reason of a refusal."""
    from colsynth import api
    from colsynth.errors import NegativeFinding

    problem = api.make_problem(topology_of(fabric, size), collective)
    start = time.process_time()
    try:
        done = api.compile(problem, runtime, several=False)
    except NegativeFinding as refusal:
        found = refusal.diagnostic
        room = f" ({found.notes[0]})" if found.code == "CS401" else ""
        return {"reason": found.phrase + room, "seconds": time.process_time() - start}
    summary = done.summary()
    keys = ("ranks", "trees_per_gpu", "threadblocks", "steps", "channels", "chunks", "gap")
    figures = {key: summary[key] for key in keys}
    limits = {item.name: item for item in done.limits()}
    hard = [item for item in done.limits() if not item.advisory]
    tightest = max(hard, key=lambda item: Fraction(item.used, item.limit))
    figures["tightest"] = [tightest.title, tightest.used, tightest.limit]
    figures["resident"] = limits["resident_threadblocks"].limit
    return {**figures, "seconds": time.process_time() - start, "peak_mib": peak_mebibytes()}


def measured(
    fabric: str, collective: str, runtime: str, budget: float
) -> Callable[[int], dict[str, Any]]:
    """Return what compiles a case of some size, and tells how it went."""

    def measure(size: int) -> dict[str, Any]:
        case = (fabric, str(size), collective, runtime)
        answer = in_process_of_its_own("tests.bench.bench_limits", ["--one", *case], seconds=budget)
        if "failed" in answer:
            answer["reason"] = answer["failed"]
        state = answer.get("reason", "fits")
        seconds = answer.get("seconds", answer["wall"])
        print(f"{' '.join(case)}: {state}, {seconds:.1f} s", file=sys.stderr, flush=True)
        return answer

    return measure


HEAD = (
    "| cluster | collective | runtime | GPUs | CPU seconds | MiB | threadblocks | tightest limit "
    "| least that does not fit |"
)


def row(fabric: str, collective: str, runtime: str, found: Found) -> str:
    """Return a line of the table; it says where not all threadblocks are sure to be resident."""
    each, figures = FABRICS[fabric], found.figures
    beyond = f"{each * found.beyond} GPUs: {found.reason}" if found.beyond else "not tried further"
    if not found.size:
        return f"| {fabric} | {collective} | {runtime} | none | | | | | {beyond} |"
    name, used, limit = figures["tightest"]
    threadblocks = figures["threadblocks"]
    cells = (
        *(fabric, collective, runtime, f"{'' if found.beyond else '>= '}{figures['ranks']}"),
        f"{figures['seconds']:.1f}",
        f"{figures['peak_mib']:.0f}",
        f"{threadblocks}{', not all resident' if threadblocks > figures['resident'] else ''}",
        f"{name} {used} of {limit}",
        beyond,
    )
    return f"| {' | '.join(cells)} |"


def table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table while they are found."""
    yield HEAD
    yield "|---" * (HEAD.count("|") - 1) + "|"
    for fabric in options.fabrics or FABRICS:
        most, guess = (gpus // FABRICS[fabric] for gpus in (options.gpus, options.begin))
        for collective in options.collectives:
            for runtime in options.runtimes:
                measure = measured(fabric, collective, runtime, options.seconds)
                yield row(fabric, collective, runtime, largest(measure, most, guess))


def least_steps(collective: str, ranks: int, fuses: bool) -> int:
    """Return steps that some GPU needs at least, with a tree per GPU and each chunk alone.

    A phase has a transfer for every tree and every GPU but its root, so there are
    ``ranks - 1`` arrivals per GPU and as many departures. A fused step does one of each;
    where the runtime has none they are two, and a sum is a third.
    """
    out, into = (1, 1) if fuses else (2, 3)
    phases = {"allgather": (out,), "reduce-scatter": (into,), "allreduce": (into, out)}
    return sum(phases[collective]) * (ranks - 1)


def room(profile: Profile, collective: str, ranks: int) -> dict[str, tuple[int, int]]:
    """Return what a GPU needs at least, and what there is, of each limit that grows."""
    steps = least_steps(collective, ranks, profile.fuses)
    blocks = -(-steps // profile.max_steps)
    return {
        "XML nodes": (ranks + steps + blocks, profile.max_xml_nodes),
        "steps": (steps, profile.max_threadblocks * profile.max_steps),
        "chunks of a buffer": (ranks, profile.max_offset + 1),
        "ranks of a file": (ranks, MOST_RANKS),
    }


def ceilings(profile: Profile, collective: str) -> dict[str, int]:
    """Return the most GPUs that each limit leaves room for; the least of them binds."""
    several = range(2, 10**6)
    found = {}
    for name in room(profile, collective, 2):

        def over(ranks: int, name: str = name) -> bool:
            used, limit = room(profile, collective, ranks)[name]
            return used > limit

        found[name] = several[bisect_left(several, True, key=over)] - 1
    return found


def ceiling_table(runtimes: Sequence[str], collectives: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of what limits leave room for."""
    from colsynth import runtimes as known

    names = list(room(known.profile(RUNTIMES[0]), COLLECTIVES[0], 2))
    yield f"| runtime | collective | {' | '.join(names)} | binds |"
    yield "|---" * (3 + len(names)) + "|"
    for runtime in runtimes:
        for collective in collectives:
            found = ceilings(known.profile(runtime), collective)
            least = min(found, key=found.__getitem__)
            cells = (runtime, collective, *(f"{found[name]:,}" for name in names), least)
            yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("fabrics", nargs="*", choices=[[], *FABRICS], help="fabrics to run (all)")
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES, choices=COLLECTIVES)
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES, choices=RUNTIMES)
    parser.add_argument("--gpus", type=int, default=MOST_GPUS, help="largest cluster to try")
    parser.add_argument("--from", type=int, default=1, dest="begin", help="cluster to try first")
    parser.add_argument("--seconds", type=float, default=600.0, help="for one compilation")
    parser.add_argument("--output", type=Path, help="also write the tables to this file")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        fabric, size, collective, runtime = options.one
        print(json.dumps(compile_one(fabric, int(size), collective, runtime)))
        return 0
    lines = []
    bounds = ceiling_table(options.runtimes, options.collectives)
    for part in (bounds, [""], table(options)):
        for line in part:
            print(line, flush=True)
            lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
