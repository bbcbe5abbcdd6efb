"""Broken clusters: what is left of one, and what every single failure costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from colsynth.api.given import (
    require_callable,
    require_executor,
    require_kind,
    require_model,
    require_names,
    require_optional_path,
    require_problem,
    require_several,
    require_text,
    require_topology,
)
from colsynth.errors import whole_seed
from colsynth.model import Problem, Topology

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from colsynth.cost import Model
    from colsynth.pipeline.target import Progress
    from colsynth.survey import Survey
    from colsynth.topology.damage import Damage


def damage(
    topology: Topology,
    *,
    links: Sequence[str] = (),
    gpus: Sequence[str | int] = (),
    nics: Sequence[str] = (),
    degraded: Sequence[str] = (),
) -> Damage:
    """Return what failures leave of a topology, and who has which rank then.

    Parameters
    ----------
    topology : Topology
        The healthy one.
    links : sequence of str
        Links that are gone: ``"A-B"``, or ``"A->B"`` for one direction.
    gpus : sequence of str or int
        GPUs that are gone, by name or by rank.
    nics : sequence of str
        NICs that are gone, by name.
    degraded : sequence of str
        Links that are slower: ``"A-B=50%"`` is left of the bandwidth.

    Returns
    -------
    Damage
        Its `topology` is what is left; `old_ranks` has, by rank, the rank before.

    Raises
    ------
    InputError
        CS132 to CS135: a failure names what is not there, or they contradict each other.
        CS117: fewer than two GPUs are left.
    InfeasibleError
        CS302: some GPUs are cut off; they are named.
    """
    from colsynth.topology.failure_text import read_failures
    from colsynth.topology.failures import apply_failures

    require_topology(topology, "damage")
    failures = read_failures(
        topology,
        links=require_names("links", links, "['A-B']"),
        gpus=[str(gpu) for gpu in require_several("gpus", gpus, "[0]")],
        nics=require_names("nics", nics, "['A']"),
        degraded=require_names("degraded", degraded, "['A-B=50%']"),
    )
    return apply_failures(topology, failures)


def survey(
    problem: Problem,
    failures: str = "links:1",
    *,
    runtime: str = "msccl",
    algorithm: str | None = None,
    trees: str | int | None = None,
    protocol: str | None = None,
    model: Model | None = None,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    folder: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Survey:
    """Return what every single failure costs, with a verified schedule for each.

    Parameters
    ----------
    problem : Problem
        On the healthy topology. A process group is a machine of its own.
    failures : str
        What fails, one at a time: ``"links:1"``, ``"gpus:1"``, ``"nics:1"``, or several with
        commas. A link fails in both directions.
    runtime, trees, protocol, model, seed : optional
        As for `compile`.
    algorithm : str, optional
        What `compile` begins with unless given: ``"forest"``, or ``"ten"`` where trees cannot serve
        the collective. Its search tries variants of this one alone.
    jobs : int
        Processes that compile; the answer does not depend on them.
    executor : concurrent.futures.Executor, optional
        What compiles instead, as for `tune`.
    folder : path, optional
        Where schedules, table and journal are kept. A survey that was ended goes on where it
        was when it is started again with the same folder.
    force : bool
        Whether a survey of something else in `folder` is replaced.
    progress : callable, optional
        As for `compile`.

    Raises
    ------
    InputError
        CS136: no such failures. CS207: something else stands in `folder`. Wrong options.
    LimitError
        The runtime runs no such collective; CS404: several process groups, or transit.
    """
    from colsynth.compile.groups import machine_of
    from colsynth.jobs.workers import Workers, require_jobs
    from colsynth.pipeline.target import usual_protocol
    from colsynth.runtimes.catalog import profile
    from colsynth.search.levels import first_algorithms
    from colsynth.survey import SurveyCase
    from colsynth.survey import survey as examine_all
    from colsynth.topology.single_failures import read_kinds

    require_problem(problem, "survey")
    require_model(model)
    require_executor(executor)
    require_callable("progress", progress)
    place = require_optional_path("folder", folder)
    require_jobs(jobs)
    require_kind(failures, str, "failures takes text", "write failures='links:1'")
    require_text("algorithm", algorithm, "forest")
    kinds = read_kinds(failures)
    library = profile(runtime)
    problem = machine_of(problem, library)
    if protocol is None:
        protocol = usual_protocol(problem, library)
    if algorithm is None:
        algorithm = first_algorithms(problem.collective)[0]
    number = whole_seed(seed)
    wanted = None if trees is None else str(trees)
    case = SurveyCase(problem, kinds, runtime, algorithm, protocol, wanted, number, model)
    with Workers(jobs, executor) as workers:
        return examine_all(case, place, workers, progress, force=force)
