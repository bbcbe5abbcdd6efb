"""The result of a compilation: files as bytes, and the values they were made from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colsynth.bounds.runtime import RuntimeBound
from colsynth.compile.link_rate import LinkRate
from colsynth.compile.modes import Mode
from colsynth.model import (
    ChunkProgram,
    Forest,
    Problem,
    Program,
    Report,
    RoundProgram,
    ThreadblockProgram,
    TimedSchedule,
)
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.limits import Usage, most_used
from colsynth.runtimes.selection import TakenSizes, taken_sizes
from colsynth.search.plan import Plan
from colsynth.units import format_size, gb_per_s, microseconds, plural

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 160
"""Characters of a topology's name that file names keep; file systems allow 255 in all."""

Schedule = Forest | TimedSchedule | ChunkProgram | Problem
"""The result of a synthesizer; plain transfers state no rate."""

_FIGURES = (
    *("trees_per_gpu", "different_trees", "trees", "roots", "max_height", "mean_height"),
    *("algbw_gb_per_s", "bound_gb_per_s", "bound_proven", "gap"),
    *("size_bytes", "chunks_per_gpu", "time_us", "bound_us"),
)


@dataclass(frozen=True, slots=True)
class Artefact:
    """One schedule file, verified.

    Parameters
    ----------
    name : str
        A file name that is safe everywhere and the same for the same request.
    mode : Mode
        The call modes that it serves; never AUTO.
    data : bytes
    program : ThreadblockProgram or RoundProgram
    report : Report
        The verifier's report on `data`, without errors.
    limits : tuple of Usage
        How far the file uses up each limit of its runtime.
    """

    name: str
    mode: Mode
    data: bytes
    program: Program
    report: Report
    limits: tuple[Usage, ...]

    def __repr__(self) -> str:
        return f"Artefact({self.name}: {self.mode.value}, {plural(len(self.data), 'byte')})"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of all files at one message size: none takes longer.

    Parameters
    ----------
    size_bytes : int
    seconds : float
    least : RuntimeBound
        What no file can beat.
    """

    size_bytes: int
    seconds: float
    least: RuntimeBound

    @property
    def algbw(self) -> float:
        """Bytes per second."""
        return self.size_bytes / self.seconds


@dataclass(frozen=True, slots=True)
class Compilation:
    """The verified files of one request.

    Parameters
    ----------
    problem : Problem
    runtime, algorithm : str
    pipeline : str
        Text of the pipeline that was run, with the number of trees, if there are any.
    schedule : Forest, TimedSchedule, ChunkProgram or Problem
        The schedule of the synthesizer.
    artefacts : tuple of Artefact
        One file, or one per call mode.
    seconds : dict
        Seconds of each pass, ``write`` and ``verify``, over all attempts.
    notes : tuple of str
        Notes for the user.
    predicted : tuple of Prediction
        Predictions at the sizes of the search that all files serve, ascending: those of the
        slowest file. Where they serve none of these, at the nearest that they do.
    limited_by : dict
        Share of each limit (`colsynth.simulate.breakdown.LIMITS`) in the predicted time of the
        largest of these messages; empty where there are none.
    links : LinkRate or None
        What links allow the schedule, beside what they allow any; None where it sends nothing.
    """

    problem: Problem
    runtime: str
    algorithm: str
    pipeline: str
    schedule: Schedule
    artefacts: tuple[Artefact, ...]
    seconds: dict[str, float]
    notes: tuple[str, ...] = ()
    predicted: tuple[Prediction, ...] = ()
    limited_by: Mapping[str, float] = field(default_factory=dict)
    links: LinkRate | None = None

    def __repr__(self) -> str:
        """Return one line: fields hold the topology, every step of every program, and all bytes."""
        collective, topology = self.problem.collective, self.problem.topology.name
        found = [f"{collective} on {topology}", self.runtime]
        found.append(str(Plan(self.algorithm, self._protocol, self.pipeline)))
        found += [artefact.name for artefact in self.artefacts]
        if self.predicted:
            last = self.predicted[-1]
            found.append(f"{last.algbw / 1e9:.4g} GB/s at {format_size(last.size_bytes)} predicted")
        return f"Compilation({', '.join(found)})"

    @property
    def _protocol(self) -> str:
        return self.artefacts[0].program.header.protocol

    @property
    def verified(self) -> bool:
        """Whether every file passed verification; always true, kept for reports."""
        return all(artefact.report.ok for artefact in self.artefacts)

    def limits(self) -> tuple[Usage, ...]:
        """Return the use of each limit of the runtime, the largest of all files."""
        return most_used([artefact.limits for artefact in self.artefacts])

    def taken(self) -> TakenSizes:
        """Return the messages for which the runtime selects the files."""
        return taken_sizes(self.artefacts[0].program.header, profile(self.runtime))

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON.

        Bandwidths are in GB/s. Counts are maxima over ranks and files. ``min_bytes`` and
        ``max_bytes`` (inclusive) limit the messages that all files serve. ``gap`` is the share of
        time lost to the bound, exactly 0 if the bound is reached. Values that an algorithm does
        not have are None.
        """
        programs = [artefact.program for artefact in self.artefacts]
        return {
            "topology": self.problem.topology.name,
            "collective": self.problem.collective.value,
            "root": self.problem.root,
            **({"sketch": self.problem.sketch.name} if self.problem.sketch else {}),
            "ranks": self.problem.topology.size,
            "runtime": self.runtime,
            "algorithm": self.algorithm,
            "settings": Plan(self.algorithm, "", self.pipeline).settings(),
            "pipeline": self.pipeline,
            "protocol": self._protocol,
            "modes": [artefact.mode.value for artefact in self.artefacts],
            "min_bytes": max(program.header.min_bytes for program in programs),
            "max_bytes": min(program.header.max_bytes or 0 for program in programs),
            **_figures(self.schedule, self.links),
            "chunks": max(program.header.chunks for program in programs),
            "channels": max(program.header.channels for program in programs),
            "threadblocks": _most(programs, "max_threadblocks"),
            "steps": _most(programs, "max_steps"),
            **_of_rounds(programs),
            "messages": self.taken().as_object(),
            "limits": {u.name: {"used": u.used, "limit": u.limit} for u in self.limits()},
            "predicted": [
                {
                    "size_bytes": point.size_bytes,
                    "time_us": round(point.seconds * 1e6, 6),
                    "algbw_gb_per_s": round(point.algbw / 1e9, 6),
                    "least_us": round(point.least.seconds * 1e6, 6),
                    "most_gb_per_s": round(point.least.algbw / 1e9, 6),
                    "binds": point.least.binds,
                }
                for point in self.predicted
            ],
            "limited_by": {name: round(share, 6) for name, share in self.limited_by.items()},
            "verified": self.verified,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "notes": list(self.notes),
        }


def _most(programs: list[Program], name: str) -> int | None:
    """Return the largest figure of programs of threadblocks; None of rounds, which have none."""
    found = [getattr(p, name) for p in programs if isinstance(p, ThreadblockProgram)]
    return max(found, default=None)


def _of_rounds(programs: list[Program]) -> dict[str, int]:
    """Return the figures of rounds; none of other programs."""
    found = [program for program in programs if isinstance(program, RoundProgram)]
    if not found:
        return {}
    return {
        "rounds": max(len(program.rounds) for program in found),
        "messages_per_gpu": max(program.most_operations for program in found),
    }


def _figures(schedule: Schedule, links: LinkRate | None) -> dict[str, Any]:
    """Return the figures of a schedule. All algorithms have the same keys."""
    found: dict[str, Any] = _of_forest(schedule) if isinstance(schedule, Forest) else {}
    if links is not None:
        found |= {"algbw_gb_per_s": gb_per_s(links.algbw), "gap": float(links.gap)}
        found |= {"bound_gb_per_s": gb_per_s(links.bound), "bound_proven": links.proven}
        if isinstance(schedule, TimedSchedule):
            found |= _of_timed(schedule, links)
    return {name: found.get(name) for name in _FIGURES}


def _of_forest(forest: Forest) -> dict[str, Any]:
    return {
        "trees_per_gpu": None if forest.shares else forest.trees_per_root,
        "different_trees": _different(forest),
        "trees": forest.chunks,
        "roots": sum(1 for weight in forest.weights if weight),
        "max_height": forest.max_height,
        "mean_height": float(forest.mean_height),
    }


def _different(forest: Forest) -> int:
    """Return the largest number of different trees of a root."""
    return max(max(Counter(t.root for t in phase.trees).values()) for phase in forest.phases)


def _of_timed(schedule: TimedSchedule, links: LinkRate) -> dict[str, Any]:
    return {
        "size_bytes": schedule.size,
        "chunks_per_gpu": schedule.chunks_per_gpu,
        "time_us": microseconds(schedule.seconds),
        "bound_us": microseconds(max(schedule.bound.seconds, schedule.size / links.bound)),
    }


def file_name(problem: Problem, runtime: str, mode: Mode) -> str:
    """Return a name such as ``"dgx-a100-x2-allgather-msccl-inplace.xml"``."""
    parts = [problem.topology.name[:_LONGEST], problem.collective.value]
    if problem.root is not None:
        parts.append(f"root{problem.root}")
    parts.append(runtime)
    if mode is not Mode.BOTH:
        parts.append(mode.value.replace("-", ""))
    safe = (_UNSAFE.sub("-", part).strip("-.") for part in parts)
    return "-".join(part for part in safe if part) + profile(runtime).suffix
