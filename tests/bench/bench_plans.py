"""``python -m tests.bench.bench_plans``: plans for MSCCL++ beside XML, predicted; all verified.

Every preset with one box and two, every collective: the fastest program that a level of the search
finds, as XML for the runtime that the machine would use, and as a plan. Each compilation runs in a
process of its own. The table is that of the guide, in Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench.bench_predictions import preset_names, runtime_of
from tests.bench.harness import in_process_of_its_own

COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce")
SHOWN = COLLECTIVES[:4]
SECONDS = 900
"""Seconds after which a compilation is given up."""


def compiled(preset: str, boxes: int, collective: str, runtime: str, level: int) -> dict[str, Any]:
    """Return the times that are predicted for a small and a large message, and what files need."""
    from colsynth import api
    from colsynth.errors import ColsynthError
    from colsynth.runtimes import profile
    from colsynth.runtimes.selection import LARGE, SMALL, usual_size
    from colsynth.simulate import simulate

    rooted = collective in ("broadcast", "reduce")
    topology = api.load_topology(preset, nodes=boxes)
    problem = api.make_problem(topology, collective, 0 if rooted else None)
    protocol = "LL128" if rooted and boxes > 1 and runtime != "mscclpp" else None
    try:
        done = api.compile(problem, runtime, level=level, protocol=protocol)
    except ColsynthError as refusal:
        return {"refused": str(refusal.diagnostic.phrase)}
    found = profile(runtime)
    sizes = [usual_size(most, problem.collective, topology.size) for most in (SMALL, LARGE)]
    points = simulate(done.artefacts[0].program, topology, found, sizes)
    uses = [item for file in done.artefacts for item in file.limits]
    return {
        "sizes": sizes,
        "seconds": [float(point.seconds) for point in points],
        "verified": all(file.report.ok for file in done.artefacts),
        "limits": sorted({item.title for item in uses if item.exceeded}),
        "operations": max((item.used for item in uses if item.title == "operations"), default=0),
        "bytes": max(len(file.data) for file in done.artefacts),
    }


def measure(preset: str, boxes: int, level: int) -> dict[str, Any]:
    """Return the figures of all collectives on a machine, by collective and runtime."""
    row: dict[str, Any] = {"case": f"{preset} x{boxes}"}
    for collective in COLLECTIVES:
        for runtime in (runtime_of(preset), "mscclpp"):
            kind = "plan" if runtime == "mscclpp" else "xml"
            case = (preset, str(boxes), collective, runtime, str(level))
            print(*case, file=sys.stderr, flush=True)
            found = in_process_of_its_own(
                "tests.bench.bench_plans", ["--one", *case], None, SECONDS
            )
            row.setdefault(collective, {})[kind] = found
    return row


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table: XML first, then the plan, in microseconds and milliseconds."""
    heads = [f"{name} {size}" for name in SHOWN for size in ("1 MiB", "1 GiB")]
    lines = [f"| machine | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for row in rows:
        cells = [_cell(row[name], place) for name in SHOWN for place in (0, -1)]
        lines.append(f"| {row['case']} | {' | '.join(cells)} |")
    return lines


def _cell(both: dict[str, Any], place: int) -> str:
    unit = 1e6 if place == 0 else 1e3
    times = (both[kind].get("seconds") for kind in ("xml", "plan"))
    return ", ".join("-" if each is None else f"{each[place] * unit:.3g}" for each in times)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Return what the table does not show: what was verified, and how much files need."""
    every = [(row["case"], name, row[name]["plan"]) for row in rows for name in COLLECTIVES]
    done = [(*where, found) for *where, found in every if "seconds" in found]
    lines = [f"{len(done)} of {len(every)} plans were made"]
    lines += [f"{case} {name}: {found}" for case, name, found in every if "seconds" not in found]
    lines.append(f"verified: {sum(found['verified'] for *_, found in done)}")
    lines.append(f"beyond a limit: {sum(bool(found['limits']) for *_, found in done)}")
    for key in ("operations", "bytes"):
        case, name, found = max(done, key=lambda item: item[2][key])
        lines.append(f"most {key}: {found[key]} ({case} {name})")
    return lines


def main() -> int:
    """Run the presets asked for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("presets", nargs="*", help="presets to run (all)")
    parser.add_argument("--boxes", type=int, nargs="*", default=[1, 2], help="numbers of boxes")
    parser.add_argument("--level", type=int, default=1, help="of the search (1)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        preset, boxes, collective, runtime = options.presets[:4]
        level = int(options.presets[4])
        print(json.dumps(compiled(preset, int(boxes), collective, runtime, level)))
        return 0
    rows = []
    for boxes in options.boxes:
        for preset in options.presets or preset_names():
            rows.append(measure(preset, boxes, options.level))
            if options.json:
                options.json.write_text(f"{json.dumps(rows, indent=2)}\n")
    print("\n".join([*table(rows), "", *summary(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
