"""One failure: the bound of what is left, and a verified schedule for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from colsynth.compile.request import Request
from colsynth.compile.run import compile_problem
from colsynth.errors import ColsynthError, Diagnostic, InfeasibleError, InputError
from colsynth.jobs.evaluation import fingerprint
from colsynth.model import Problem, Topology
from colsynth.pipeline.added import sources
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.spec import parse
from colsynth.pipeline.target import aim
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.target import Target
from colsynth.survey.bottleneck import bottleneck_of
from colsynth.survey.row import Row
from colsynth.topology.damage import Damage, Failures, dropped_names
from colsynth.topology.failures import apply_failures


@dataclass(frozen=True)
class SurveyCase:
    """What a survey asks of every failure.

    Parameters
    ----------
    problem : Problem
        On the topology before the failure.
    kinds : tuple of str
        What fails, of `colsynth.topology.single_failures.KINDS`.
    runtime, algorithm, protocol : str
    trees : str or None
        As for `compile`.
    seed : int
    model : Model, optional
        The constants that decisions follow; None: those of the runtime.
    """

    problem: Problem
    kinds: tuple[str, ...]
    runtime: str = "msccl"
    algorithm: str = "forest"
    protocol: str = "Simple"
    trees: str | None = None
    seed: int = 0
    model: Any = None

    def target(self, problem: Problem) -> Target:
        """Return what schedules are for; refuse what the runtime never runs, as `aim` does."""
        runtime = profile(self.runtime)
        found = aim(problem, runtime, self.protocol, None, None, seed=self.seed)
        return replace(found, model=self.model)

    def request(self) -> Request:
        """Return how schedules are made."""
        settings = {} if self.trees is None else {"trees": self.trees}
        return Request(algorithm=self.algorithm, settings=settings, several=True)

    def check(self) -> None:
        """Refuse, before any work, options that no failure would make right.

        Raises
        ------
        InputError
            Wrong options.
        LimitError
            The runtime runs no such collective.
        """
        self.target(self.problem)
        self.request().check()

    def identity(self) -> str:
        """Return a hash of everything that the answers depend on, the code too."""
        pipeline = ALGORITHMS.get(self.algorithm, "")
        code = pipeline, sources(spec.name for spec in parse(pipeline)) if pipeline else ()
        text = "\n".join(map(repr, (fingerprint(), *code, profile(self.runtime), self)))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for one failure.

    Parameters
    ----------
    row : Row
        Without files: where they lie is for the folder to say.
    files : tuple of (str, bytes)
        Name and contents of every schedule file.
    """

    row: Row
    files: tuple[tuple[str, bytes], ...] = ()


def examine(case: SurveyCase, failures: Failures) -> Found:
    """Return what a failure leaves; where that is no schedule, the row says why.

    A fault of colsynth in one schedule is a refusal too, by its code, so that it does not cost
    all other rows. Without failures it is the healthy topology, whose options must be right.

    Raises
    ------
    ColsynthError
        There is no bound for such a problem.
    InputError
        Wrong options, where there are no failures.
    """
    from colsynth.bounds.optimum import best_optimum
    from colsynth.bounds.runtime import file_rate

    before = case.problem.topology
    label = label_of(before, failures)
    try:
        problem = _left(case.problem, apply_failures(before, failures))
    except (InfeasibleError, InputError) as fault:
        ranks = before.size - len(failures.gpus)
        return Found(Row(label, ranks, Fraction(0), refusal=_reason(fault)))
    optimum = best_optimum(problem)
    bound = file_rate(problem, profile(case.runtime), optimum)
    tight = bottleneck_of(problem.topology, optimum) if bound == optimum.algbw else None
    row = Row(label, problem.topology.size, bound, bottleneck=tight)
    try:
        return _compiled(case, problem, row)
    except ColsynthError as fault:
        if not failures and isinstance(fault, InputError):
            raise
        return Found(replace(row, refusal=_reason(fault)))


def label_of(topology: Topology, failures: Failures) -> str:
    """Return what is gone by name; empty without failures."""
    return ", ".join(dropped_names(topology, failures))


def _left(problem: Problem, damage: Damage) -> Problem:
    """Return the problem on what is left; the root is the same GPU."""
    if problem.root is None:
        return replace(problem, topology=damage.topology)
    if problem.root not in damage.old_ranks:
        raise InputError(Diagnostic("CS211", "the root itself is gone"))
    root = damage.old_ranks.index(problem.root)
    return replace(problem, topology=damage.topology, root=root)


def _compiled(case: SurveyCase, problem: Problem, row: Row) -> Found:
    """Return the verified files for what is left, and how fast their schedule is."""
    done = compile_problem(problem, case.target(problem), case.request())
    row = replace(
        row,
        algbw=None if done.links is None else done.links.algbw,
        trees_per_gpu=done.summary()["trees_per_gpu"],
    )
    return Found(row, tuple((artefact.name, artefact.data) for artefact in done.artefacts))


def _reason(fault: ColsynthError) -> str:
    return f"{fault.diagnostic.code}: {fault.diagnostic.phrase}"
