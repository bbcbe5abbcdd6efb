"""Constants of the interpreter on a GPU, and what the simulator predicts with them.

``python -m tests.gpu.compare FOLDER TIMES`` prints what the small programs say of ``step``,
``wait``, ``rate`` and ``local_rate``, then measured and predicted times of the files that filled
the GPU. FOLDER and TIMES are those of `tests.gpu.cases` and `tests.gpu.run_cases`.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from colsynth import api
from colsynth.cost import Model, ideal_model
from colsynth.cost.model import PROTOCOLS
from colsynth.runtimes import profile
from colsynth.simulate import simulate
from colsynth.simulate.source import read_source
from tests.bench.harness import show
from tests.gpu.micro import BYTES, LARGE, SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

Rows = "Sequence[dict[str, Any]]"
CALLS = {"handover": 2 * SMALL, "lap": 4 * SMALL}
"""Calls of a small program one after the other, where they are not `SMALL`."""


def constants(rows: Rows, threads: int, protocol: str) -> dict[str, float]:
    """Return microseconds a call, and GB/s, of a protocol with so many threads a threadblock."""
    mine = [r for r in rows if (r["protocol"], r["threads"]) == (protocol, threads)]
    found = {}
    for row in mine:
        name = row["program"] + (" with fence" if row["fence"] else "")
        if row["chunk"] < BYTES[0]:
            found[name] = row["us"] / CALLS.get(row["program"], SMALL)
    first, last = BYTES[2], BYTES[3]
    for name in sorted({row["program"] for row in mine if row["chunk"] == last}):
        us = {row["chunk"]: row["us"] for row in mine if row["program"] == name}
        many = LARGE * (4 if name == "add 4" else 1)
        found[f"{name}, GB/s"] = many * (last - first) / (us[last] - us[first]) / 1e3
    return found


def model_of(rows: Rows) -> Model:
    """Return the simulator's model of the interpreter: no wires, and no launch."""
    best = {p: max(r["threads"] for r in rows if r["protocol"] == p) for p in PROTOCOLS}
    seen = {p: constants(rows, best[p], p) for p in PROTOCOLS}
    return replace(
        ideal_model(),
        rate={p: seen[p]["relay, GB/s"] for p in PROTOCOLS},
        local_rate={p: seen[p]["add, GB/s"] for p in PROTOCOLS},
        step={p: seen[p]["message"] for p in PROTOCOLS},
        hop={p: seen[p]["ring"] - seen[p]["message"] for p in PROTOCOLS},
        wait=seen["Simple"]["handover"] - seen["Simple"]["copy"],
        slices={"Simple": 2, "LL": 4, "LL128": 4},
        least_slice={"Simple": 32768, "LL": 4096, "LL128": 38400},
    )


def files_table(
    folder: Path, rows: Rows, model: Model, kind: Callable[[Any], str] = lambda _: ""
) -> Table:
    """Return measured and predicted microseconds, and the least, mean and largest ratio by size.

    What `kind` says of a program parts the ratios.
    """
    cases = {case["file"]: case for case in json.loads((folder / "cases.json").read_text())}
    table = Table("file", "KiB", "measured", "predicted", "ratio", title="microseconds")
    ratios: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        case = cases[row["file"]]
        if row.get("fence") or row["stuck"] or not row["whole"] or not case["timed"]:
            continue
        runtime = profile(case["runtime"])
        topology = api.load_topology(
            f"clique:{case['ranks']}", bandwidth="1000000 GB/s", latency="0 us"
        )
        data = (folder / row["file"]).read_bytes()
        program = read_source(data, runtime, row["file"]).threadblocks
        (point,) = simulate(program, topology, runtime, [row["size"]], model)
        us = 1e6 * point.seconds
        ratios[kind(program), round(math.log2(row["size"]))].append(us / row["us"])
        cells = f"{row['size'] / 1024:.0f}", f"{row['us']:.1f}", f"{us:.1f}"
        table.add_row(row["file"], *cells, f"{us / row['us']:.2f}")
    for (name, power), found in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, found)) / len(found))
        spread = f"{min(found):.2f} {mean:.2f} {max(found):.2f}"
        label = f"all {len(found)}{name and ', '}{name}"
        table.add_row(label, f"{2 ** (power - 10):g}", "", "", spread)
    return table


def main(folder: Path, times: Path) -> None:
    """Print both tables."""
    seen = json.loads(times.read_text())
    table = Table("protocol", "threads", "of", "us a call, or GB/s", title=seen["gpu"])
    for protocol in PROTOCOLS:
        mine = {r["threads"] for r in seen["micro"] if r["protocol"] == protocol}
        for threads in sorted(mine, reverse=True):
            for name, value in constants(seen["micro"], threads, protocol).items():
                table.add_row(protocol, str(threads), name, f"{value:.2f}")
    show(table)
    show(files_table(folder, seen["files"], model_of(seen["micro"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
