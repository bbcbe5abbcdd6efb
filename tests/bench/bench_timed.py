"""``make bench``: seconds, memory and quality of timed schedules, beside what others publish.

Every case runs in a process of its own and, where that is quick, a few times over; the
quickest counts, so neither compiling nor loading kernels is in it. One thread works, but
for the 40,000 GPUs of ``--huge``, which take all cores and several minutes. The split is
``hops`` (routes between GPUs, exact ticks), ``trees`` (ways of chunks that not everybody
wants), ``match`` (all tries), ``bound`` and ``check``; synthesis is all but the last.
Name parts to run those alone; ``--json FILE`` keeps the figures and ``--svg FILE`` says
where the plot of seconds over GPUs goes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from colsynth.report import Series, exponent, picture, plot
from tests.bench.harness import in_process_of_its_own, peak_mebibytes, show
from tests.bench.timed_cases import (
    CASES,
    MESHES,
    PARTS,
    PUBLISHED,
    RELEASE,
    SOURCES,
    TORI,
    WARM,
    Case,
)

if TYPE_CHECKING:
    from rich.table import Table

MODULE = "tests.bench.bench_timed"
STAGES = ("hops", "trees", "match", "bound", "check")
MOST_RUNS, ENOUGH_SECONDS = 5, 3.0
"""A case is repeated so often at most, and not beyond so many seconds."""
COLOURS = {MESHES: 0, TORI: 1, "": 2}
BANDWIDTH_PARTS = ("quality",)
"""Where the gap to the bound on bandwidth is asked for."""


class Stages:
    """Seconds and calls of watched functions since the last `take`."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()

    def watch(self, owner: Any, name: str, stage: str) -> AbstractContextManager[Any]:
        """Count the calls of a function, and their time, under a stage while in the context."""
        original: Callable[..., Any] = getattr(owner, name)

        def watched(*positional: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return original(*positional, **named)
            finally:
                self._seconds[stage] += time.perf_counter() - start
                self._calls[stage] += 1

        return patch.object(owner, name, watched)

    def take(self) -> tuple[dict[str, float], dict[str, int]]:
        """Return (seconds, calls) by stage, and begin anew."""
        found = dict(self._seconds), dict(self._calls)
        self._seconds.clear()
        self._calls.clear()
        return found


@contextmanager
def watched_stages() -> Iterator[Stages]:
    """Watch the steps of match-chunks."""
    from colsynth.synthesis.timed import attempt, match_chunks

    stages = Stages()
    with (
        stages.watch(attempt.Setting, "tasks", "trees"),
        stages.watch(match_chunks, "Setting", "hops"),
        stages.watch(match_chunks, "attempt", "match"),
        stages.watch(match_chunks, "time_bound", "bound"),
    ):
        yield stages


def measure(case: Case) -> dict[str, Any]:
    """Return the figures of one case, measured in this process."""
    best = quickest(case)
    best["peak_mib"] = peak_mebibytes()
    if case.line:
        one_try = best if best["tries"] == 1 else quickest(case, tries=1)
        best["one_try_seconds"] = one_try["synthesis_seconds"]
    if case.alike:
        late = best["time_us"] - best["bound_us"]
        best["chunks_late"] = late / chunk_time_us(case, best["size_bytes"])
    if case.part in BANDWIDTH_PARTS:
        best["bandwidth_gap"] = bandwidth_gap(case, best["time_us"])
    return best


def quickest(case: Case, tries: int | None = None) -> dict[str, Any]:
    """Return the figures of the quickest of a few runs."""
    runs: list[dict[str, Any]] = []
    start = time.perf_counter()
    with watched_stages() as stages:
        while len(runs) < MOST_RUNS and time.perf_counter() - start < ENOUGH_SECONDS:
            runs.append(run_once(case, stages, tries))
    best = min(runs, key=lambda figures: float(figures["synthesis_seconds"]))
    return {**best, "runs": len(runs)}


def run_once(case: Case, stages: Stages, tries: int | None = None) -> dict[str, Any]:
    """Return the figures of one run; its schedule is gone when the next one begins."""
    from colsynth import api

    start = time.perf_counter()
    topology = case.topology()
    loading = time.perf_counter() - start
    problem = api.make_problem(topology, case.collective)
    stages.take()
    done = api.synthesize(problem, chunks_per_gpu=case.chunks, tries=tries)
    seconds, calls = stages.take()
    return {
        **done.summary(),
        "seconds": {"topology": loading, **seconds, "check": done.check_seconds},
        "tries": calls.get("match", 0),
    }


def chunk_time_us(case: Case, size: int) -> float:
    """Return how long a chunk keeps a link of a fabric of equal links, in microseconds."""
    topology = case.topology()
    link = topology.links[0]
    chunk = Fraction(size, topology.size * case.chunks)
    return float((link.latency + chunk / link.bandwidth) * 10**6)


def bandwidth_gap(case: Case, time_us: float) -> float:
    """Return the time lost to a schedule that moves data at the bound on bandwidth."""
    from colsynth import api

    problem = api.make_problem(case.topology(), case.collective)
    least = 10**9 / api.bound(problem).algbw
    return float(Fraction(time_us) / (least * 10**6) - 1)


def run(case: Case, number: str) -> dict[str, Any]:
    """Return the figures of one case from a process of its own."""
    threads = {} if case.part == "huge" else {"NUMBA_NUM_THREADS": "1"}
    figures = in_process_of_its_own(MODULE, ["--one", number], threads)
    published = case.published
    return {
        "case": case.name,
        "part": case.part,
        "line": case.line,
        "chunks_per_gpu": case.chunks,
        "published": published and {"seconds": published.seconds, "source": published.source.text},
        **figures,
    }


def table_of(results: Sequence[dict[str, Any]]) -> Table:
    """Return one row for each case, part after part."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "timed schedules of 1 GB; seconds in one thread, microseconds, MiB"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("case", no_wrap=True)
    names = ("GPUs", "chunks", "transfers", "tries", *STAGES, "synthesis", "published")
    for name in (*names, "time", "bound", "gap", "late", "to bw", "peak"):
        table.add_column(name, justify="right", no_wrap=True)
    for before, figures in zip((None, *results), results, strict=False):
        if before is not None and before["part"] != figures["part"]:
            table.add_section()
        table.add_row(*row(figures))
    return table


def row(figures: dict[str, Any]) -> list[str]:
    """Return the cells of one case; a failure says so instead of figures."""
    if "failed" in figures:
        return [figures["case"], "failed", str(figures["failed"])]
    published = PUBLISHED.get(figures["case"])
    mark = "" if published is None else f"{published.text} [{SOURCES.index(published.source) + 1}]"
    late, to_bandwidth = figures.get("chunks_late"), figures.get("bandwidth_gap")
    return [
        figures["case"],
        str(figures["ranks"]),
        str(figures["chunks_per_gpu"]),
        f"{figures['transfers']:,}",
        str(figures["tries"]),
        *(f"{figures['seconds'].get(stage, 0.0):.3f}" for stage in STAGES),
        f"{figures['synthesis_seconds']:.3f}",
        mark.replace("[", r"\["),
        f"{figures['time_us']:,.1f}",
        f"{figures['bound_us']:,.1f}",
        f"{100 * figures['gap']:.3f} %",
        "" if late is None else f"{late:.2f}",
        "" if to_bandwidth is None else f"{100 * to_bandwidth:.2f} %",
        f"{figures['peak_mib']:,.0f}",
    ]


def notes() -> str:
    """Return the sources of what is published, numbered as in the table."""
    lines = (f"[{number}] {source.text}" for number, source in enumerate(SOURCES, 1))
    late = "late: time beyond the bound, counted in transfers of one chunk"
    to_bandwidth = "to bw: time, latency included, beyond what colsynth bound allows the bandwidth"
    return "\n".join((*lines, late, to_bandwidth))


def plot_of(results: Sequence[dict[str, Any]]) -> bytes | None:
    """Return the plot of seconds over GPUs as SVG, None without any point."""
    ours = tuple(found for line in (MESHES, TORI) if (found := _line(results, line)))
    if not ours:
        return None
    title = "Synthesis time of a 1 GB allgather, one chunk per GPU, one try"
    note = "One thread; TACOS as released: one thread of an AMD EPYC; papers: machines unknown."
    return picture(plot(title, note, ("GPUs", "seconds"), (*ours, *_theirs())), ".svg")


def _line(results: Sequence[dict[str, Any]], line: str) -> Series | None:
    mine = [item for item in results if item["line"] == line and "failed" not in item]
    points = tuple(sorted((item["ranks"], item["one_try_seconds"]) for item in mine))
    if not points:
        return None
    return Series(f"colsynth, {line}{_growth(points)}", points, colour=COLOURS[line])


def _theirs() -> Iterator[Series]:
    """Yield the published points: those of our lines in their colours, then the papers'."""
    for line, source in product(COLOURS, SOURCES):
        items = [x for x in PUBLISHED.values() if x.source is source and x.line == line]
        if items and (line or source is not RELEASE):
            points = tuple((item.gpus, item.seconds) for item in items)
            yield Series(
                f"{source.label}, {line}{_growth(points)}" if line else source.label,
                points,
                joined=False,
                colour=COLOURS[line] + (0 if line else SOURCES.index(source) - 1),
                notes=tuple(item.label for item in items),
                left=line != TORI,
            )


def _growth(points: Sequence[tuple[float, float]]) -> str:
    return f": ~ GPUs^{exponent(points):.1f}" if len(points) > 1 else ""


def main() -> int:
    """Run the parts asked for, print the table, write the plot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)} (all but huge)")
    parser.add_argument("--huge", action="store_true", help="40,000 GPUs as well")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--svg", type=Path, default=Path("out/bench-timed.svg"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    if options.one:
        print(json.dumps(one(options.one)))
        return 0
    parts = {*(options.parts or PARTS[:-1]), *(PARTS[-1:] if options.huge else ())}
    print("compiling kernels, first run only ...", file=sys.stderr)
    in_process_of_its_own(MODULE, ["--one", "warm"])
    results = []
    for number, case in enumerate(CASES):
        if case.part in parts:
            print(f"{case.name}, {case.chunks} per GPU ...", file=sys.stderr)
            results.append(run(case, str(number)))
    return report(results, options.json, options.svg)


def one(number: str) -> dict[str, Any]:
    """Return the figures of the case with this number, or warm up."""
    if number != "warm":
        return measure(CASES[int(number)])
    for case in WARM:
        run_once(case, Stages())
    return {}


def report(results: list[dict[str, Any]], figures: Path | None, svg: Path) -> int:
    """Show and keep the results; return the exit status."""
    show(table_of(results))
    print(notes())
    if figures:
        figures.parent.mkdir(parents=True, exist_ok=True)
        figures.write_text(json.dumps(results, indent=2))
    drawn = plot_of(results)
    if drawn:
        svg.parent.mkdir(parents=True, exist_ok=True)
        svg.write_bytes(drawn)
        print(f"seconds over GPUs: {svg}", file=sys.stderr)
    return int(any("failed" in item for item in results))


if __name__ == "__main__":
    sys.exit(main())
