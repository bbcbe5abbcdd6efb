"""Runs small plans and plan files of MSCCL++ on one GPU.

``python -m tests.gpu.run_plans FOLDER OUT SECONDS``: FOLDER holds files and ``cases.json``, which
`tests.gpu.cases` writes; OUT gets ``plan_times.json``. After so many seconds nothing more is begun.
Needs cupy, and neither numba nor a solver.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.reading import parse_json
from colsynth.runtimes import profile
from colsynth.runtimes.plans.form import Plan
from tests.gpu.plan_micro import BYTES, COUNTS, MOVES, repetitions
from tests.gpu.run_cases import SHORT, row

if TYPE_CHECKING:
    from tests.gpu.plan_device import LoadedPlan

RUNTIME = "mscclpp"
FEW_LOOKS = 3
"""Launches of which the data is looked at where a message is longer than `SHORT`."""
MICRO_SHARE = 0.4
"""The part of the time that small plans may take."""


def micro(until: float) -> list[dict[str, Any]]:
    """Run the small plans with whole and with quarter threadblocks, as many as the time allows."""
    rows: list[dict[str, Any]] = []
    for threads in (1024, 256):
        for table, sizes in ((COUNTS, (16,)), (MOVES, BYTES)):
            for name in table:
                for chunk in sizes:
                    if time.perf_counter() > until:
                        print("no time is left for", name, chunk, flush=True)
                        return rows
                    rows.append(micro_row(name, (COUNTS | MOVES)[name], chunk, threads))
    return rows


def micro_row(name: str, make: Any, chunk: int, threads: int) -> dict[str, Any]:
    """Run a small plan with chunks of one size."""
    from tests.gpu.plan_device import LoadedPlan

    many = repetitions(name, chunk)
    plan = make(chunk, many)
    size = chunk * plan.gpus[0].input_chunks
    own = LoadedPlan(plan, profile(RUNTIME), size, real=False, threads=threads)
    own.measure(launches=2, looks=0)
    found = own.measure(launches=15, looks=0)
    if found.stuck:
        print("BAD", name, chunk, "is stuck", flush=True)
    return row(found, program=name, chunk=chunk, many=many, threads=threads)


def files(folder: Path, until: float) -> list[dict[str, Any]]:
    """Run the plans of a folder, as many as the time allows, timed ones first."""
    rows: list[dict[str, Any]] = []
    cases = json.loads((folder / "cases.json").read_text())
    for case in cases:
        if case["runtime"] != RUNTIME:
            continue
        begin = time.perf_counter()
        if begin > until:
            print("no time is left for", case["file"], flush=True)
            continue
        rows += file_rows(folder, case, until)
        print(case["file"], f"{time.perf_counter() - begin:.1f} s", flush=True)
    return rows


def file_rows(folder: Path, case: dict[str, Any], until: float) -> list[dict[str, Any]]:
    """Run a plan at its sizes."""
    import cupy

    from tests.gpu.plan_device import LoadedPlan

    rows: list[dict[str, Any]] = []
    plan = parse_json((folder / case["file"]).read_bytes(), Plan)
    for size in case["sizes"]:
        if time.perf_counter() > until:
            break
        cupy.get_default_memory_pool().free_all_blocks()
        try:
            own = LoadedPlan(plan, profile(RUNTIME), size)
        except ValueError as reason:
            print(case["file"], size, "is left out:", reason, flush=True)
            break
        rows.append(file_row(own, case, size))
        if rows[-1]["stuck"]:
            break
    return rows


def file_row(own: LoadedPlan, case: dict[str, Any], size: int) -> dict[str, Any]:
    """Run a loaded plan."""
    looks = case["looks"] if size <= SHORT else FEW_LOOKS
    found = own.measure(launches=15 if case["timed"] else 1, looks=looks)
    names = {"file": case["file"], "size": size, "threads": own.threads, "whole": own.whole}
    kept = row(found, **names, blocks=own.blocks, looks=looks * own.copies, left=own.left())
    if found.stuck or found.wrong or kept["left"]:
        print("BAD", kept, own.faults[:5], flush=True)
    return kept


def main(folder: Path, out: Path, seconds: float) -> None:
    """Run everything and write what was seen."""
    import cupy

    begin = time.perf_counter()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    found: dict[str, Any] = {"gpu": name}
    out.mkdir(parents=True, exist_ok=True)
    parts = (("micro", lambda: micro(begin + MICRO_SHARE * seconds)),)
    for part, work in (*parts, ("files", lambda: files(folder, begin + seconds))):
        found[part] = work()
        print(part, f"{time.perf_counter() - begin:.1f} s", flush=True)
        (out / "plan_times.json").write_text(json.dumps(found, indent=1))
    bad = [r for r in found["files"] if r["wrong"] or r["stuck"] or r["left"]]
    launches = sum(r["looks"] for r in found["files"])
    print(f"{len(found['files'])} plans and sizes, {launches} calls looked at, {len(bad)} bad")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
