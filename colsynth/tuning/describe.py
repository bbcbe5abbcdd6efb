"""A bundle as plain values, for JSON and the manifest."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from colsynth import __version__
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import TakenSizes, taken_sizes
from colsynth.simulate import Point
from colsynth.tuning.bundle import Bundle, LeftOver, TunedFile
from colsynth.units import gb_per_s, microseconds

FORMAT, VERSION = "colsynth bundle", 2
FOLDER = "schedules"
"""Where the schedule files of a bundle lie, and nothing else."""


def describe_file(file: TunedFile, runtime: Profile) -> dict[str, Any]:
    """Return what a file serves and is predicted to do; `path` is within the bundle."""
    plan, mode = file.plan, file.artefact.mode
    law = taken_sizes(file.artefact.program.header, runtime)
    return {
        "path": f"{FOLDER}/{file.name}",
        "collective": file.artefact.program.header.collective.value,
        "algorithm": plan.algorithm,
        "protocol": plan.protocol,
        "instances": plan.option("instances", 1),
        "trees_per_gpu": file.trees_per_gpu,
        "chunks_per_gpu": plan.option("chunks_per_gpu"),
        "settings": str(plan),
        "min_bytes": file.min_bytes,
        "max_bytes": file.max_bytes,
        "multiple_bytes": law.multiple,
        "inplace": mode.in_place,
        "outofplace": mode.out_of_place,
        "predicted": [_predicted(point, law) for point in file.predicted],
    }


def _predicted(point: Point, law: TakenSizes) -> dict[str, Any]:
    """Return a prediction, without times where a message of just that size uses another file."""
    described = {**describe_point(point), "selected": law.takes(point.size_bytes)}
    if not described["selected"]:
        described |= dict.fromkeys(("time_us", "algbw_gb_per_s", "busbw_gb_per_s"))
    return described


def describe_point(point: Point) -> dict[str, Any]:
    """Return a predicted time and bandwidth."""
    return {
        "size_bytes": point.size_bytes,
        "time_us": microseconds(Fraction(point.seconds)),
        "algbw_gb_per_s": gb_per_s(Fraction(point.algbw)),
        "busbw_gb_per_s": gb_per_s(Fraction(point.busbw)),
    }


def describe_left(left: LeftOver) -> dict[str, Any]:
    """Return a range without a file."""
    return {
        "collective": left.collective.value,
        "min_bytes": left.min_bytes,
        "max_bytes": left.max_bytes,
        "reason": left.reason,
    }


def describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """Return files and ranges left to the library."""
    return {
        "files": [describe_file(file, bundle.profile) for file in bundle.files],
        "left_to_library": [describe_left(left) for left in bundle.left_to_library],
    }


def manifest_of(bundle: Bundle) -> dict[str, Any]:
    """Return what a bundle was made from and holds, without checksums of what lies beside it."""
    case, described = bundle.cases[0], describe_bundle(bundle)
    topology = case.problem.topology
    for entry, file in zip(described["files"], bundle.files, strict=True):
        entry["sha256"] = sha256(file.artefact.data)
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {"colsynth": __version__, "runtime": bundle.profile.version},
        "inputs": {
            "topology": topology.name,
            "topology_sha256": sha256(repr(topology).encode()),
            "ranks": topology.size,
            "runtime": case.runtime,
            "collectives": [item.problem.collective.value for item in bundle.cases],
            "root": next(
                (r for item in bundle.cases if (r := item.problem.root) is not None), None
            ),
            "sizes_bytes": list(case.sizes),
            "algorithms": list(bundle.algorithms),
            "budget": bundle.budget,
            "seed": case.seed,
            "model": "default" if case.model is None else case.model.digest,
        },
        "evaluations": {
            item.problem.collective.value: count
            for item, count in zip(bundle.cases, bundle.evaluations, strict=True)
        },
        "budget_spent": {
            item.problem.collective.value: list(spent)
            for item, spent in zip(bundle.cases, bundle.spent, strict=True)
        },
        **described,
        "left_out": bundle.left_out,
    }


def sha256(data: bytes) -> str:
    """Return the checksum of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
