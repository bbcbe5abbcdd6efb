"""Timed schedules: made, checked, kept and read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from colsynth.api.given import (
    plain_values,
    require_callable,
    require_kind,
    require_path,
    require_problem,
    require_text,
)
from colsynth.errors import require_least, whole_seed
from colsynth.model import Problem, TimedPhase, TimedSchedule

if TYPE_CHECKING:
    from colsynth.compile.synthesize import Synthesis
    from colsynth.pipeline.target import Progress
    from colsynth.store import LinkRows
    from colsynth.synthesis.exact.frontier import Point


def synthesize(
    problem: Problem,
    *,
    size: int | None = None,
    chunks_per_gpu: int | None = None,
    policy: str | None = None,
    gap: str | None = None,
    tries: int | None = None,
    algorithm: str = "ten",
    steps: int | None = None,
    work: int | None = None,
    budget: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Synthesis:
    """Return a timed schedule that was checked, for any collective, group and size.

    Parameters
    ----------
    problem : Problem
    size : int, optional
        Bytes of the message, as nccl-tests counts them; 10**9 unless given.
    chunks_per_gpu : int, optional
        Chunks that every shard is cut into; 1 unless given.
    policy : str, optional
        Which chunk goes first: ``"oldest"``, ``"rarest"`` or ``"earliest"``; with
        ``"auto"``, the default, tries take turns.
    gap : str, optional
        What links are occupied for after each chunk: ``"none"``, or its ``"latency"``; with
        ``"auto"``, the default, the latency where chunks are large.
    tries : int, optional
        Schedules made, of which the best is kept.
    algorithm : str
        ``"ten"`` matches chunks to links; ``"exact"`` finds the shortest schedule in few steps.
    steps : int, optional
        For ``"exact"``: most steps, in each phase of an allreduce.
    work : int, optional
        For ``"exact"``: limit of the solver, in units of about a second.
    budget : int, optional
        Transfers after which no further try begins; 0 sets no limit.
    seed : int
        Of every random choice; equal seeds give equal schedules.
    progress : callable, optional
        As for `compile`.

    Raises
    ------
    InputError
        Wrong options, or numbers that do not fit 64 bits.
    LimitError
        CS327: exact found no schedule within `steps`, or there are too many choices for it.
    InfeasibleError
        Some chunk cannot reach a GPU that wants it.
    DefectError
        colsynth made a wrong schedule and kept it from you.
    """
    from colsynth.compile.synthesize import synthesize_problem
    from colsynth.runtimes.target import Context

    require_problem(problem, "synthesize")
    require_callable("progress", progress)
    require_text("algorithm", algorithm, "ten")
    context = Context(seed=seed) if progress is None else Context(seed=seed, progress=progress)
    options = {
        "size": size,
        "chunks_per_gpu": chunks_per_gpu,
        "policy": policy,
        "gap": gap,
        "tries": tries,
        "budget": budget,
        "steps": steps,
        "work": work,
    }
    return synthesize_problem(problem, context, plain_values(options), algorithm)


def frontier(
    problem: Problem, *, most_chunks: int = 6, work: int = 10, seed: int = 0
) -> Iterator[Point]:
    """Yield SCCL's questions about a problem with their answers, in the order of its walk.

    Parameters
    ----------
    problem : Problem
        Of one phase, on links between GPUs.
    most_chunks : int
        Chunks of a GPU, at most.
    work : int
        Limit of every question, in units of about a second.
    seed : int

    Raises
    ------
    InputError
        CS326: no solver. CS328: switches, two phases, or bandwidths without a common unit.
    """
    from colsynth.synthesis.exact.frontier import Frontier

    require_problem(problem, "frontier")
    require_least("--chunks-per-gpu", most_chunks, 1)
    require_least("--work", work, 1)
    return Frontier(problem, int(most_chunks), int(work), whole_seed(seed)).walk()


def write_schedule(
    schedule: TimedSchedule,
    path: str | Path,
    progress: Progress | None = None,
    *,
    replace: bool = True,
) -> None:
    """Write a timed schedule as a numpy archive, whole or not at all.

    Equal schedules give equal bytes; the arrays are described in `colsynth.store`. A file that
    stands there gives way, unless `replace` is False.

    Raises
    ------
    InputError
        CS207 where a file shall not give way; CS208 when the system refuses.
    """
    from colsynth.store import write_npz

    advice = "api.synthesize(problem).schedule is one"
    require_kind(schedule, TimedSchedule, "write_schedule takes a timed schedule", advice)
    require_callable("progress", progress)
    write_npz(schedule, require_path(path, "write_schedule"), progress, replace=replace)


def read_schedule(path: str | Path) -> TimedSchedule:
    """Return the timed schedule of a file that `write_schedule` wrote.

    Raises
    ------
    InputError
        CS240: the file cannot be read, or is no schedule file.
    """
    from colsynth.store import read_npz

    return read_npz(require_path(path, "read_schedule"))


def link_rows(phase: TimedPhase, first: int = 0, last: int | None = None) -> LinkRows:
    """Return one row (start, end, link, chunk, transfer) for every occupied link of a phase.

    Parameters
    ----------
    phase : TimedPhase
    first, last : int, optional
        Hops to read, from `first` to before `last`; all unless given.

    Returns
    -------
    LinkRows
        Arrays; times in ticks of the schedule, links as indices into the topology's.

    Raises
    ------
    InputError
        CS200: another object than a phase. CS210: the phase has no such hops.
    """
    from colsynth.store import link_rows as spell_out

    require_kind(phase, TimedPhase, "link_rows takes a phase", "schedule.phases holds them")
    most = len(phase.hops)
    last = most if last is None else last
    require_least("first", first, 0, most)
    require_least("last", last, first, most)
    return spell_out(phase, int(first), int(last))
