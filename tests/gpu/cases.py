"""Makes the files that `run_cases` and `run_plans` run; needs no GPU.

``python -m tests.gpu.cases FOLDER`` makes all, and with ``xml`` or ``plans`` behind it one kind.

Files that are timed fill one GPU: as many threadblocks as it has SMs, over all ranks. Files that
are only looked at are the defaults on real machines, whatever they need.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from colsynth import api
from tests.gpu import plan_cases

TIMED = (
    *(
        (8, "msccl", collective, "ring", {"channels": channels, "protocol": protocol})
        for collective, channels, protocol in (
            ("allreduce", 1, "Simple"), ("allreduce", 1, "LL"), ("allreduce", 1, "LL128"),
            ("allreduce", 4, "Simple"), ("allreduce", 16, "Simple"), ("allreduce", 16, "LL"),
            ("allreduce", 16, "LL128"), ("allgather", 16, "Simple"),
            ("reduce-scatter", 8, "Simple"),
        )
    ),
    (16, "msccl", "allreduce", "ring", {"channels": 8}),
    (8, "msccl", "allreduce", "tree", {"channels": 2}),
    (8, "msccl", "allreduce", "tree", {"channels": 2, "protocol": "LL"}),
    (8, "msccl", "allgather", "forest", {"instances": 1}),
    (8, "msccl", "reduce-scatter", "forest", {"instances": 1, "protocol": "LL128"}),
    (8, "msccl", "allreduce", "halving-doubling", {"protocol": "LL"}),
    (8, "msccl", "alltoall", "pairwise", {"instances": 1}),
    (8, "msccl", "allreduce", "allpairs", {"instances": 1, "protocol": "LL"}),
    (4, "msccl", "allreduce", "forest", {"instances": 2}),
    (4, "msccl", "allgather", "forest", {"instances": 5}),
    (4, "msccl", "reduce-scatter", "forest", {"instances": 5}),
    (4, "msccl", "allreduce", "allpairs2", {"instances": 1, "protocol": "LL"}),
    (4, "msccl", "allreduce", "halving-doubling", {"instances": 2}),
    (4, "msccl", "alltoall", "pairwise", {"instances": 4}),
    (3, "msccl", "allreduce", "forest", {"instances": 2}),
    (2, "msccl", "allreduce", None, {}),
    (2, "msccl", "allgather", None, {}),
    (4, "rccl", "allreduce", "ring", {"channels": 16}),
    (8, "rccl", "allreduce", "ring", {"channels": 4}),
    (2, "rccl", "allreduce", None, {}),
)  # fmt: skip
"""GPUs, runtime, collective, algorithm and options of files that are timed."""

LOOKED_AT = tuple(
    (preset, boxes, runtime, collective, size)
    for preset, boxes, runtime in (
        ("dgx-a100", 1, "msccl"), ("dgx-h100", 1, "msccl"), ("dgx-h100", 1, "msccl-executor"),
        ("dgx-1v", 1, "msccl"), ("dgx2", 1, "msccl"), ("ndv2", 1, "msccl"),
        ("mi300x", 1, "rccl"), ("mi250", 1, "rccl"), ("dgx-a100", 2, "msccl"),
        ("dgx-h100", 2, "rccl"), ("mesh:3x3", 1, "rccl"),
    )
    for collective in ("allgather", "reduce-scatter", "allreduce", "alltoall")
    for size in (None, 1 << 16)
)  # fmt: skip
"""Preset, boxes, runtime, collective and size aimed at of files whose data is looked at."""


TIMED_AT = tuple(1 << power for power in (10, 14, 16, 18, 20, 22, 24, 26))
LOOKED_AT_SIZES = (1 << 16, 1 << 20, 1 << 22)
"""Bytes of messages, near which chunks are multiples of 16 bytes."""


def sizes_of(chunks: int, near: tuple[int, ...]) -> list[int]:
    """Return message sizes whose chunks are multiples of 16 bytes."""
    return sorted({16 * chunks * max(1, round(size / (16 * chunks))) for size in near})


def made(folder: Path, name: str, problem: Any, runtime: str, **options: Any) -> dict[str, Any]:
    """Compile a file into a folder, and return what to run with it."""
    collective = problem.collective.value
    mode = "out-of-place" if collective == "alltoall" else "in-place"
    found = api.compile(problem, runtime, mode=mode, several=False, jobs=2, **options)
    part = found.artefacts[0]
    (folder / f"{name}.xml").write_bytes(part.data)
    header = part.program.header
    return {
        "file": f"{name}.xml",
        "runtime": runtime,
        "in_place": mode == "in-place",
        "chunks": header.chunks,
        "ranks": header.ranks,
    }


def timed(folder: Path) -> list[dict[str, Any]]:
    """Make the files that are timed."""
    found = []
    for ranks, runtime, collective, algorithm, options in TIMED:
        topology = api.load_topology(f"clique:{ranks}", bandwidth="100 GB/s", latency="0.7 us")
        problem = api.make_problem(topology, collective)
        words = [collective, f"x{ranks}", runtime, algorithm or "default"]
        name = "-".join([*words, *(str(value) for value in options.values())])
        case = made(folder, name, problem, runtime, algorithm=algorithm, **options)
        found.append(
            case | {"sizes": sizes_of(case["chunks"], TIMED_AT), "timed": True, "looks": 50}
        )
    return found


def looked_at(folder: Path) -> list[dict[str, Any]]:
    """Make the files of which only the data is looked at."""
    found = []
    for preset, boxes, runtime, collective, size in LOOKED_AT:
        topology = api.load_topology(preset, nodes=boxes if boxes > 1 else None)
        problem = api.make_problem(topology, collective)
        name = f"{collective}-{preset.replace(':', '')}-x{boxes}-{runtime}-{size or 'default'}"
        case = made(folder, name, problem, runtime, size=size)
        sizes = sizes_of(case["chunks"], LOOKED_AT_SIZES)
        found.append(case | {"sizes": sizes, "timed": False, "looks": 300})
    return found


def main(folder: Path, kind: str | None = None) -> None:
    """Make all files, or those of one kind, and write ``cases.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    if kind != "plans":
        cases += [*timed(folder), *looked_at(folder)]
    if kind != "xml":
        cases += [*plan_cases.timed(folder), *plan_cases.looked_at(folder)]
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    print(f"{len(cases)} files in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
