"""Which algorithm, with which settings, for which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from colsynth.api.given import (
    plain,
    require_callable,
    require_executor,
    require_kind,
    require_model,
    require_names,
    require_optional_path,
    require_path,
    require_problem,
    require_several,
    require_topology,
    whole_sizes,
)
from colsynth.api.problem import find_collective, make_problem
from colsynth.errors import Diagnostic, InputError, require_least, whole_seed
from colsynth.model import Problem, Topology

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from colsynth.cost import Model
    from colsynth.pipeline.target import Progress
    from colsynth.tuning import Bundle, Comparison


def compare(
    problem: Problem,
    sizes: Sequence[int],
    *,
    runtime: str = "msccl",
    algorithms: Sequence[str] | None = None,
    budget: int | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    model: Model | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Return what every algorithm reaches at every size, beside the bound.

    Parameters
    ----------
    problem : Problem
    sizes : sequence of int
        Bytes of the message, as nccl-tests counts them.
    runtime : str
    algorithms : sequence of str, optional
        All unless given.
    budget : int, optional
        Most evaluations for each size.
    jobs : int
        Processes that evaluate; the answer does not depend on them.
    executor : concurrent.futures.Executor, optional
        What evaluates instead, such as ``distributed.Client(...).get_executor()``.
    model : Model, optional
        Constants of the simulator.
    seed : int
    progress : callable, optional
        As for `compile`.

    Raises
    ------
    InputError
        Wrong options.
    LimitError
        The runtime serves no such problem, or no algorithm gives a program (CS611); CS404:
        several process groups, or transit.
    """
    from colsynth.bounds.optimum import best_optimum
    from colsynth.bounds.runtime import file_rate
    from colsynth.compile.groups import machine_of
    from colsynth.jobs.workers import Workers
    from colsynth.runtimes.catalog import profile
    from colsynth.tuning import Case, Means
    from colsynth.tuning import compare as measure

    require_problem(problem, "compare")
    require_model(model)
    require_executor(executor)
    require_callable("progress", progress)
    algorithms = _named(algorithms)
    ordered = whole_sizes(sizes)
    if not ordered:
        raise InputError(Diagnostic("CS217", "which sizes?", help="give one or more, in bytes"))
    require_least("--sizes", ordered[0], 1)
    problem = machine_of(problem, profile(runtime))
    ceiling = file_rate(problem, profile(runtime), best_optimum(problem))
    with Workers(jobs, executor) as workers:
        case = Case(problem, runtime, ordered, model=model, seed=whole_seed(seed), limited=True)
        means = Means(plain(budget), workers, progress=progress)
        return measure(case, ceiling, means, algorithms)


def tune(
    topology: Topology,
    collectives: Sequence[str],
    runtime: str,
    sizes: Sequence[int],
    *,
    root: int | None = None,
    algorithms: Sequence[str] | None = None,
    budget: int | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    model: Model | None = None,
    seed: int = 0,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> Bundle:
    """Return the fewest verified files that serve messages of every size.

    Parameters
    ----------
    topology : Topology
    collectives : sequence of str
    runtime : str
    sizes : sequence of int
        Messages to measure; what the runtime serves no files for is left out.
    root : int, optional
        Of the collectives that have one; CS211 where none has.
    algorithms, budget, jobs, executor, model, seed, progress : optional
        As for `compare`; `budget` is shared out among the collectives.
    journal : path, optional
        A file in which measurements are kept and found again.

    Raises
    ------
    InputError
        Wrong options; CS250 where another process writes to `journal`.
    LimitError
        The runtime serves no such problem, or no algorithm gives a program (CS611).
    """
    from colsynth.jobs.journal import Journal
    from colsynth.jobs.workers import Workers
    from colsynth.tuning import Case, Means, usable_sizes
    from colsynth.tuning import tune as make
    from colsynth.writing import claimed

    require_topology(topology, "tune")
    require_model(model)
    require_executor(executor)
    require_callable("progress", progress)
    algorithms = _named(algorithms)
    asked = require_several("collectives", collectives, "['allreduce']")
    names = tuple(dict.fromkeys(map(find_collective, asked)))
    if not names:
        phrase = "which collectives?"
        raise InputError(Diagnostic("CS217", phrase, help="give -c allreduce,allgather"))
    fitting = usable_sizes(runtime, whole_sizes(sizes))
    rooted = [name for name in names if name.rooted] or names
    problems = [make_problem(topology, n, root if n in rooted else None) for n in names]
    cases = [
        Case(problem, runtime, fitting, model=model, seed=whole_seed(seed), limited=True)
        for problem in problems
    ]
    place = require_optional_path("journal", journal)
    with claimed(place), Workers(jobs, executor) as workers:
        return make(cases, Means(plain(budget), workers, Journal(place), progress), algorithms)


def _named(algorithms: Sequence[str] | None) -> list[str] | None:
    """Return algorithms that were named, None for all."""
    return None if algorithms is None else require_names("algorithms", algorithms, "['ring']")


def write_bundle(bundle: Bundle, path: str | Path, *, force: bool = False) -> None:
    """Write a bundle as a directory, whole or not at all.

    Raises
    ------
    InputError
        CS207 where something stands in its place (`force` replaces a bundle), CS208 when the
        system refuses.
    """
    from colsynth.tuning import Bundle, publish, refuse_to_replace

    require_kind(bundle, Bundle, "write_bundle takes a bundle", "api.tune returns one")
    place = require_path(path, "write_bundle")
    refuse_to_replace(place, force)
    publish(bundle, place, replace=force)
