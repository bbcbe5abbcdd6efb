"""From a problem to a checked timed schedule, for no runtime in particular."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colsynth.model import Collective, Demand, Direction, Problem, TimedSchedule
from colsynth.model.problem import PHASES
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.memory import peak_megabytes
from colsynth.pipeline.registry import DEFAULT, Registry
from colsynth.runtimes.target import Context
from colsynth.sketches.given import defaults
from colsynth.units import gb_per_s, microseconds

ALGORITHM, MATCHER = "ten", "match-chunks"


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A checked timed schedule, and how it was found.

    Parameters
    ----------
    asked : Problem
        The problem of the request. With shards or several roots, `schedule` is for the equal
        custom collective (`in_equal_chunks`).
    schedule : TimedSchedule
    pipeline : str
        Text of the pipeline that was run.
    policy : str
    seed : int
    synthesis_seconds, check_seconds : float
    """

    asked: Problem
    schedule: TimedSchedule
    pipeline: str
    policy: str
    seed: int
    synthesis_seconds: float
    check_seconds: float

    def summary(self, path: Path | None = None) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON.

        Parameters
        ----------
        path : Path, optional
            File of the schedule.
        """
        schedule, problem = self.schedule, self.asked
        peak = peak_megabytes()
        return {
            "topology": problem.topology.name,
            "collective": problem.collective.value,
            "ranks": problem.topology.size,
            "algorithm": ALGORITHM,
            "chunks": schedule.chunks,
            "transfers": schedule.transfers,
            "time_us": microseconds(schedule.seconds),
            "bound_us": microseconds(schedule.bound.seconds),
            "gap": float(schedule.gap),
            "synthesis_seconds": round(self.synthesis_seconds, 6),
            "peak_memory_mb": None if peak is None else round(peak, 1),
            "schedule": None if path is None else str(path),
            "root": problem.root,
            **({"shards": list(problem.shards)} if problem.shards else {}),
            "groups": [list(group) for group in problem.groups],
            "transit": problem.transit,
            **({"sketch": problem.sketch.name} if problem.sketch else {}),
            "size_bytes": schedule.size,
            "chunks_per_gpu": schedule.chunks_per_gpu,
            "algbw_gb_per_s": gb_per_s(schedule.algbw),
            "bound_gb_per_s": gb_per_s(schedule.size / schedule.bound.seconds),
            "bound_reason": schedule.bound.reason,
            "policy": self.policy,
            "seed": self.seed,
            "pipeline": self.pipeline,
            "verified": True,
            "check_seconds": round(self.check_seconds, 6),
        }


def synthesize_problem(
    problem: Problem,
    context: Context,
    options: Mapping[str, Any],
    registry: Registry = DEFAULT,
) -> Synthesis:
    """Return a schedule that its checker has accepted.

    Parameters
    ----------
    problem : Problem
        With shards of different sizes or several roots, it is solved as a custom collective with
        chunks of one size.
    context : Context
    options : mapping
        Fields of the pass `MATCHER`; None takes what the sketch states, else the default.
    registry : Registry

    Raises
    ------
    InputError
        CS210 and CS213 for options the pass does not take.
    InfeasibleError
        Some chunk cannot reach a GPU that wants it.
    DefectError
        The checker refuses the schedule.
    """
    options = {**options, **{n: x for n, x in defaults(problem).items() if options.get(n) is None}}
    given = {name: value for name, value in options.items() if value is not None}
    matcher = registry.load(MATCHER)(**given)
    pipeline = Pipeline((matcher,))
    pipeline.check(Problem, TimedSchedule)
    clock = Clock()
    schedule = pipeline.run(in_equal_chunks(problem), context, clock)
    spent = clock.seconds()
    matching = spent.pop(MATCHER)
    return Synthesis(
        asked=problem,
        schedule=schedule,
        pipeline=str(pipeline),
        policy=matcher.policy,
        seed=context.seed,
        synthesis_seconds=matching,
        check_seconds=sum(spent.values()),
    )


def in_equal_chunks(problem: Problem) -> Problem:
    """Return a problem with shards or several roots as an equal custom collective.

    Any other problem is returned unchanged.
    """
    if not problem.shards and not problem.has_several_roots:
        return problem
    (members,) = problem.members
    everybody = tuple(sorted(members))
    copies = PHASES[problem.collective] == (Direction.OUT,)
    demands = tuple(
        Demand((rank,), everybody, count) if copies else Demand(everybody, (rank,), count, True)
        for rank, count in zip(problem.roots, problem.weights, strict=True)
        if count
    )
    return Problem(
        problem.topology,
        Collective.CUSTOM,
        groups=problem.groups,
        transit=problem.transit,
        demands=demands,
        sketch=problem.sketch,
    )
