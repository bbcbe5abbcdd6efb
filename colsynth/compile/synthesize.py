"""From a problem to a checked timed schedule, for no runtime in particular."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Collective, Demand, Direction, Problem, TimedSchedule
from colsynth.model.problem import PHASES
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.memory import peak_megabytes
from colsynth.pipeline.options import options_of, spelt
from colsynth.pipeline.registry import DEFAULT, Registry
from colsynth.runtimes.target import Context
from colsynth.sketches.given import defaults
from colsynth.units import gb_per_s, microseconds

MATCHERS = {"ten": "match-chunks", "exact": "solve-exact"}
"""The pass of each algorithm that makes timed schedules."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A checked timed schedule, and how it was found.

    Parameters
    ----------
    asked : Problem
        The problem of the request. With shards or several roots, `schedule` is for the equal
        custom collective (`in_equal_chunks`).
    schedule : TimedSchedule
    algorithm : str
    pipeline : str
        Text of the pipeline that was run.
    policy : str or None
    seed : int
    synthesis_seconds, check_seconds : float
    """

    asked: Problem
    schedule: TimedSchedule
    algorithm: str
    pipeline: str
    policy: str | None
    seed: int
    synthesis_seconds: float
    check_seconds: float

    def __repr__(self) -> str:
        return f"Synthesis({self.algorithm}, seed {self.seed}, {self.schedule})"

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
            "algorithm": self.algorithm,
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
            **({} if self.policy is None else {"policy": self.policy}),
            **({"claim": schedule.claim} if schedule.claim else {}),
            "seed": self.seed,
            "pipeline": self.pipeline,
            "verified": True,
            "check_seconds": round(self.check_seconds, 6),
        }


def synthesize_problem(
    problem: Problem,
    context: Context,
    options: Mapping[str, Any],
    algorithm: str = "ten",
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
        Fields of the algorithm's pass; None takes what the sketch states, else the
        default.
    algorithm : str
        A key of `MATCHERS`.
    registry : Registry

    Raises
    ------
    InputError
        CS210 and CS213 for wrong values, CS217 for options of the other algorithm.
    InfeasibleError
        Some chunk cannot reach a GPU that wants it.
    DefectError
        The checker refuses the schedule.
    """
    options = {**options, **{n: x for n, x in defaults(problem).items() if options.get(n) is None}}
    given = {name: value for name, value in options.items() if value is not None}
    if algorithm not in MATCHERS:
        phrase = f"'synthesize' has no algorithm {algorithm!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(algorithm, MATCHERS)))
    kind = registry.load(MATCHERS[algorithm])
    strange = sorted(set(given) - {option.field for option in options_of(kind)})
    if strange:
        phrase = f"--{spelt(strange[0])} does not go with -a {algorithm}"
        raise InputError(Diagnostic("CS217", phrase, help="leave it out"))
    matcher = kind(**given)
    pipeline = Pipeline((matcher,))
    pipeline.check(Problem, TimedSchedule)
    clock = Clock()
    schedule = pipeline.run(in_equal_chunks(problem), context, clock)
    spent = clock.seconds()
    matching = spent.pop(matcher.name)
    return Synthesis(
        asked=problem,
        schedule=schedule,
        algorithm=algorithm,
        pipeline=str(pipeline),
        policy=getattr(matcher, "policy", None),
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
