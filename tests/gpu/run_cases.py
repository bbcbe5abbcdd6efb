"""Runs small programs and schedule files on one GPU.

``python -m tests.gpu.run_cases FOLDER OUT SECONDS``: FOLDER holds files and ``cases.json``, which
`tests.gpu.cases` writes; OUT gets ``times.json``. Needs cupy, and neither numba nor a solver.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.runtimes import profile
from colsynth.simulate.source import read_source
from tests.gpu.device import Loaded, Memory, Outcome, kernels
from tests.gpu.micro import BYTES, MICRO, MOVES

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram

PROTOCOLS = ("Simple", "LL", "LL128")
FEW_LOOKS = 5
"""Launches of which the data is looked at where a message is longer than `SHORT`."""
SHORT = 1 << 20


def row(found: Outcome, **names: Any) -> dict[str, Any]:
    """Return what is kept of an outcome."""
    us = 1e6 * found.seconds
    return names | {
        "us": round(float(np.median(us)), 3),
        "least_us": round(float(us.min()), 3),
        "most_us": round(float(us.max()), 3),
        "wrong": found.wrong,
        "spoilt": found.spoilt,
        "stuck": found.stuck,
    }


def micro() -> list[dict[str, Any]]:
    """Run the small programs of every protocol, with whole and with half threadblocks."""
    rows = []
    for protocol in PROTOCOLS:
        for threads in (None, 256):
            for table, sizes in ((MICRO, (16,)), (MOVES, BYTES)):
                for name, make in table.items():
                    rows += micro_rows(name, make(protocol), sizes, threads)
    return rows


def micro_rows(
    name: str, program: ThreadblockProgram, sizes: tuple[int, ...], threads: int | None
) -> list[dict[str, Any]]:
    """Run a small program with chunks of some sizes."""
    target, rows = profile("msccl"), []
    for fence in (False, True) if name == "handover" else (False,):
        own = Loaded(program, target, fence=fence, threads=threads)
        for chunk in sizes:
            size = chunk * program.header.chunks
            memory = Memory(program, size, in_place=False, real=False)
            own.measure(memory, size, launches=2, looks=0)
            found = own.measure(memory, size, launches=20, looks=0)
            names = {"program": name, "protocol": program.header.protocol, "chunk": chunk}
            rows.append(row(found, **names, threads=own.threads, fence=fence))
    return rows


def files(folder: Path, until: float) -> list[dict[str, Any]]:
    """Run the files of a folder, as many as the time allows."""
    rows = []
    for case in json.loads((folder / "cases.json").read_text()):
        if case["file"].endswith(".json"):
            continue  # a plan, for `run_plans`
        begin = time.perf_counter()
        if begin > until:
            print("no time is left for", case["file"], flush=True)
            continue
        rows += file_rows(folder, case)
        print(case["file"], f"{time.perf_counter() - begin:.1f} s", flush=True)
    return rows


def file_rows(folder: Path, case: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a file at its sizes, without and with fences before signals."""
    import cupy

    target, rows = profile(case["runtime"]), []
    data = (folder / case["file"]).read_bytes()
    program = read_source(data, target, case["file"]).threadblocks
    cupy.get_default_memory_pool().free_all_blocks()
    plain, fenced = Loaded(program, target), Loaded(program, target, fence=True)
    for size in case["sizes"]:
        memory = Memory(program, size, case["in_place"], real=True)
        for own in (plain, fenced):
            looks = case["looks"] if size <= SHORT else FEW_LOOKS
            found = own.measure(memory, size, launches=20 if case["timed"] else 1, looks=looks)
            names = {"file": case["file"], "size": size, "fence": own.fence}
            rows.append(row(found, **names, threads=own.threads, whole=own.whole, looks=looks))
            if found.stuck or found.wrong:
                print("BAD", rows[-1], own.faults[:5], flush=True)
            if found.stuck:
                return rows
    return rows


def main(folder: Path, out: Path, seconds: float) -> None:
    """Run everything and write what was seen."""
    import cupy

    kernels()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    found: dict[str, Any] = {"gpu": name}
    until = time.perf_counter() + seconds
    for part, work in (("micro", micro), ("files", lambda: files(folder, until))):
        begin = time.perf_counter()
        found[part] = work()
        print(part, f"{time.perf_counter() - begin:.1f} s", flush=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / "times.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
