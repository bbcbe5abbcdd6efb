"""Predicted time of a gigabyte over the bound, as ``compile`` makes programs of large clusters.

The bound gives every link its whole bandwidth; `links` is what is lost by the share that the
simulator's model takes away from them, whatever the schedule: no program is nearer than that.
Takes minutes, so ``make bench`` leaves it out: ``python -m tests.bench.bench_gigabyte``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colsynth.model import Problem

CASES = ("dgx-a100:8:msccl", "dgx-a100:8:msccl-executor", "dgx-a100:8:rccl", "dgx-a100:16:msccl")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")
GIGABYTE = 10**9
HEAD = ("cluster", "runtime", "collective", "links", "over bound", "threadblocks", "steps", "s")


def lost_by_links(problem: Problem, runtime: str) -> float:
    """Return the bound over that of a topology whose links have what the model leaves of them."""
    from colsynth import api, runtimes
    from colsynth.cost import default_model
    from colsynth.cost.usable import bandwidth

    topology, model = problem.topology, default_model(runtimes.profile(runtime))
    links = tuple(
        replace(link, bandwidth=bandwidth(topology, number, model))
        for number, link in enumerate(topology.links)
    )
    left = replace(problem, topology=replace(topology, links=links))
    return float(Fraction(api.bound(problem).algbw, api.bound(left).algbw))


def measure(preset: str, boxes: int, runtime: str, collective: str) -> tuple[str, ...]:
    """Return the cells of one case."""
    from colsynth import api

    problem = api.make_problem(api.load_topology(preset, nodes=boxes), collective)
    begun = time.process_time()
    done = api.compile(problem, runtime, several=False)
    seconds = time.process_time() - begun
    found = api.simulate(done.artefacts[0].data, runtime, problem.topology, [GIGABYTE])
    ideal = GIGABYTE / float(api.bound(problem).algbw)
    figures = done.summary()
    return (
        *(f"{preset} x{boxes}", runtime, collective, f"{lost_by_links(problem, runtime):.2f}"),
        f"{found.points[0].seconds / ideal:.2f}",
        *(str(figures["threadblocks"]), str(figures["steps"]), f"{seconds:.0f}"),
    )


def table(cases: list[str], collectives: list[str]) -> Iterator[str]:
    """Yield the lines of a table in Markdown while they are found."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for case in cases:
        preset, boxes, runtime = case.split(":")
        for collective in collectives:
            yield f"| {' | '.join(measure(preset, int(boxes), runtime, collective))} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", default=CASES, help="as dgx-a100:8:msccl")
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    options = parser.parse_args()
    for line in table(list(options.cases), list(options.collectives)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
