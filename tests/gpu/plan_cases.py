"""Compiles the MSCCL++ plans that `run_plans` runs; `tests.gpu.cases` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colsynth import api
from colsynth.reading import parse_json
from colsynth.runtimes.plans.form import Plan, scratch_stride

if TYPE_CHECKING:
    from pathlib import Path

RUNTIME = "mscclpp"
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")

TIMED = (
    *((2, collective, None, size, {}) for collective in COLLECTIVES for size in (None, 1 << 16)),
    *(
        (ranks, collective, "ring", None, {"channels": channels, "protocol": protocol})
        for collective in ("allgather", "reduce-scatter", "allreduce")
        for ranks, channels in ((8, 1), (8, 8), (4, 16))
        for protocol in ("Simple", "LL")
    ),
    *(
        (4, collective, "forest", None, {"instances": instances})
        for collective in ("allgather", "reduce-scatter", "allreduce")
        for instances in (1, 2)
    ),
    *(
        (ranks, "alltoall", "pairwise", None, {"instances": instances, "protocol": protocol})
        for ranks, instances in ((8, 1), (4, 2))
        for protocol in ("Simple", "LL")
    ),
    (4, "allreduce", "allpairs2", None, {"instances": 1, "protocol": "LL"}),
    (8, "allreduce", "allpairs", None, {"instances": 1, "protocol": "LL"}),
    (8, "allreduce", "halving-doubling", None, {"protocol": "LL"}),
    (8, "allreduce", "tree", None, {"channels": 2}),
)  # fmt: skip
"""GPUs, collective, algorithm, size aimed at and options of plans that are timed."""

SMALL_BOXES = """\
version: 1
name: small-boxes
boxes: 2
box:
  nodes:
    - {name: gpu, kind: gpu, count: 2}
    - {name: nvswitch, kind: switch}
    - {name: nic, kind: nic, count: 2}
  links:
    - {from: gpu, to: nvswitch, bandwidth: 300 GB/s, latency: 0.7 us}
    - {from: gpu, to: nic, join: blocks, bandwidth: 25 GB/s, latency: 1 us}
fabric:
  nodes:
    - {name: ib, kind: switch}
  links:
    - {from: nic, to: ib, bandwidth: 25 GB/s, latency: 1 us}
"""
"""Two boxes of two GPUs, each with a NIC of its own: plans put over ports between them."""

LOOKED_AT = (
    *((preset, 1) for preset in ("clique:2", "clique:4", "clique:8", "dgx-a100", "dgx-h100")),
    ("mi300x", 1),
    ("small-boxes", 1),
    ("dgx-1v", 2),
    ("dgx-a100", 2),
)
"""Machine and boxes of plans whose data is looked at, each for all `COLLECTIVES`."""
SIZES = (None, 1 << 16)
"""What plans are aimed at, in bytes."""
TIMED_AT = tuple(1 << power for power in (10, 14, 16, 18, 20, 22, 24))
LOOKED_AT_SIZES = (1 << 16, 1 << 20, 1 << 22)
LARGEST = 64 << 20
"""Bytes of the largest message."""


def sizes_of(part: Any, near: tuple[int, ...]) -> list[int]:
    """Return message sizes that a plan serves, near others; also one at which its slots wrap."""
    header, plan = part.program.header, parse_json(part.data, Plan)
    unit, most = 16 * header.chunks, header.max_bytes or 1 << 40
    found = {unit * max(1, round(size / unit)) for size in near}
    wraps = 5 * scratch_stride(plan, plan.gpus[0]) // 2 // 16 * unit
    if header.protocol == "Simple" and wraps <= LARGEST:
        found.add(wraps)
    return sorted(size for size in found if header.min_bytes <= size <= most)


def made(folder: Path, name: str, problem: Any, near: tuple[int, ...], **options: Any) -> Any:
    """Compile a plan into a folder; return what to run with it, None where it needs multicast."""
    collective = problem.collective.value
    mode = "out-of-place" if collective == "alltoall" else "in-place"
    found = api.compile(problem, RUNTIME, mode=mode, several=False, jobs=2, **options)
    part = found.artefacts[0]
    if part.program.multicasts:
        print(name, "is left out: it needs a switch that multicasts")
        return None
    (folder / f"{name}.json").write_bytes(part.data)
    return {
        "file": f"{name}.json",
        "runtime": RUNTIME,
        "in_place": mode == "in-place",
        "ranks": part.program.header.ranks,
        "sizes": sizes_of(part, near),
    }


def timed(folder: Path) -> list[dict[str, Any]]:
    """Make the plans that are timed."""
    found = []
    for ranks, collective, algorithm, size, options in TIMED:
        topology = api.load_topology(f"clique:{ranks}", bandwidth="100 GB/s", latency="0.7 us")
        problem = api.make_problem(topology, collective)
        words = [collective, f"x{ranks}", algorithm or "default", str(size or "large")]
        name = "-".join([*words, *(str(value) for value in options.values())])
        asked = {"algorithm": algorithm, "size": size} | options
        case = made(folder, name, problem, TIMED_AT, **asked)
        if case:
            found.append(case | {"timed": True, "looks": 20})
    return found


def looked_at(folder: Path) -> list[dict[str, Any]]:
    """Make the plans of which only the data is looked at."""
    (folder / "small-boxes.yaml").write_text(SMALL_BOXES)
    found = []
    for preset, boxes in LOOKED_AT:
        spec = str(folder / "small-boxes.yaml") if preset == "small-boxes" else preset
        topology = api.load_topology(spec, nodes=boxes if boxes > 1 else None)
        for collective in COLLECTIVES:
            problem = api.make_problem(topology, collective)
            for size in SIZES:
                name = f"{collective}-{preset.replace(':', '')}-x{boxes}-{size or 'default'}"
                case = made(folder, name, problem, LOOKED_AT_SIZES, size=size)
                if case:
                    found.append(case | {"timed": False, "looks": 40})
    return found
