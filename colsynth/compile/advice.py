"""Advice for schedules that exceed a runtime's limits: trials find what does fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from colsynth.compile.request import Request
from colsynth.compile.run import compile_problem
from colsynth.errors import ColsynthError, LimitError
from colsynth.model import Problem
from colsynth.model.problem import PHASES
from colsynth.pipeline.options import spelt
from colsynth.runtimes.target import Context, Target

_MOST_WORK = 10 * 128**2
"""Trials times the square of the GPUs, since each GPU has data for each. An allreduce on RCCL takes
up to 0.2 ms for a pair of GPUs. So 128 GPUs have ten trials (3 s each), 256 have two, and from 405
on nothing is tried."""

_PER_SETTING = 1 / 8
"""Share of the trials that may go into the values of one setting."""

_ENOUGH = 2
"""Number of algorithms to name; no more are tried then."""

_TRIALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tree", {"channels": 1}),
    ("ring", {"channels": 1}),
    ("halving-doubling", {}),
    ("two-level", {}),
    ("pairwise", {}),
    ("hierarchical", {}),
    ("allpairs2", {}),
    ("ten", {}),
    ("forest", {}),
    ("allpairs", {}),
)
"""Algorithms with options that make their programs small; those with few peers come first."""

_FEWER = "take fewer GPUs, for instance with --group"

_LEAST = {"trees": "1", "instances": 1, "chunks_per_gpu": 1, "channels": 1}
"""Settings that make a program larger, and their smallest values."""


@dataclass(frozen=True)
class _Asked:
    """A request that does not fit, with its problem and target."""

    problem: Problem
    target: Target
    request: Request

    @property
    def lowerable(self) -> dict[str, int]:
        """Values of the settings that were given and can be lowered, by name."""
        given = self.request.settings
        values = {name: given[name] for name in _LEAST if name in given}
        sizes = {name: int(x) if str(x).isdigit() else 2 for name, x in values.items()}
        return {name: size for name, size in sizes.items() if size > 1}

    @property
    def trials(self) -> int:
        """Requests that may be tried."""
        return trials_of(self.problem)

    def fits(self, **settings: Any) -> bool:
        """Whether the request with other values of these settings gives verified files."""
        changed = {**self.request.settings, **settings}
        return self._gives_files(replace(self.request, settings=changed))

    def fits_as(self, algorithm: str, settings: dict[str, Any]) -> bool:
        """Whether another algorithm with these settings alone gives verified files."""
        request = replace(self.request, algorithm=algorithm, passes=None, settings=settings)
        return self._gives_files(request)

    def _gives_files(self, request: Request) -> bool:
        request = replace(request, level=0)
        target = replace(self.target, progress=Context().progress)
        try:
            compile_problem(self.problem, target, request)
        except ColsynthError:  # a trial that fails for any reason is no advice
            return False
        return True


def trials_of(problem: Problem) -> int:
    """Return how many requests may be tried for the sake of advice, each of all GPUs."""
    return _MOST_WORK // problem.topology.size**2


def with_advice(
    refusal: LimitError, problem: Problem, target: Target, request: Request
) -> LimitError:
    """Return a refusal with advice on what would fit; one that has advice stays as it is.

    Parameters
    ----------
    refusal : LimitError
        The refusal of the request.
    problem, target, request
        The arguments of `compile_problem`. Trials lower the settings that were given, then take
        other algorithms, each with its smallest program.
    """
    if refusal.diagnostic.help is not None:
        return refusal
    asked = _Asked(problem, target, request)
    ways = _tried(asked) if asked.trials else _untried(asked)
    return LimitError(replace(refusal.diagnostic, help=ways))


def _tried(asked: _Asked) -> str:
    asked.target.progress("looking for what fits", 0, 0)
    ways = [*_lower(asked), *_others(asked)]
    if ways:
        return f"what fits: {'; or '.join(ways)}"
    return f"no algorithm fits: {_FEWER}" if asked.trials >= len(_TRIALS) else _untried(asked)


def _untried(asked: _Asked) -> str:
    """Return general advice, for machines where trials would take too long."""
    ways = [f"lower --{spelt(name)}" for name in asked.lowerable]
    if asked.request.algorithm != "ring" and asked.problem.collective in PHASES:
        ways.append("try -a ring, where every GPU sends to one other")
    return "; or ".join(ways) or _FEWER


def _lower(asked: _Asked) -> Iterator[str]:
    """Yield settings that fit with one lower value; if none does, all at their smallest values."""
    fitting = {name: n for name in asked.lowerable if (n := _most_that_fits(asked, name))}
    for name, value in fitting.items():
        yield f"--{spelt(name)} {value}"
    least = {name: _LEAST[name] for name in asked.lowerable}
    if len(least) > 1 and not fitting and asked.fits(**least):
        yield " ".join(f"--{spelt(name)} {value}" for name, value in least.items())


def _most_that_fits(asked: _Asked, name: str) -> int:
    """Return the largest power of two below a setting's value that fits; 0 if none does.

    With powers of two, the chunks divide most messages. On larger machines, fewer are tried.
    """
    found, value = 0, 1
    for _ in range(max(1, int(_PER_SETTING * asked.trials))):
        if value >= asked.lowerable[name] or not asked.fits(**{name: _typed(name, value)}):
            break
        found, value = value, 2 * value
    return found


def _others(asked: _Asked) -> Iterator[str]:
    """Yield the first `_ENOUGH` other algorithms that fit, with their options."""
    given = asked.request.settings
    dropped = [*given, *(["passes"] if asked.request.passes is not None else [])]
    found = 0
    for name, options in _TRIALS[: asked.trials]:
        as_asked = name == asked.request.algorithm and (not options or options.keys() & given)
        if found == _ENOUGH or (as_asked and asked.request.passes is None):
            continue
        if asked.fits_as(name, options):
            found += 1
            yield _spell(name, options, [x for x in dropped if x not in options])


def _spell(algorithm: str, options: dict[str, Any], dropped: list[str]) -> str:
    words = [f"-a {algorithm}", *(f"--{spelt(key)} {value}" for key, value in options.items())]
    if dropped:
        words.append(f"without {', '.join(f'--{spelt(name)}' for name in dropped)}")
    return " ".join(words)


def _typed(name: str, value: int) -> Any:
    return str(value) if name == "trees" else value
