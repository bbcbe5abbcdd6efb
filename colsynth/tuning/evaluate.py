"""One evaluation: compile a candidate, verify it, and predict its time at every size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from colsynth import __version__
from colsynth.errors import ColsynthError, Diagnostic, InputError
from colsynth.model import Problem
from colsynth.pipeline.modes import Mode
from colsynth.pipeline.result import Artefact, Compilation
from colsynth.pipeline.target import aim
from colsynth.pipeline.walk import Request, compile_problem
from colsynth.reading import in_form
from colsynth.runtimes.catalog import profile
from colsynth.tuning.candidates import Candidate, knobs


@dataclass(frozen=True)
class Case:
    """What candidates are measured on.

    Parameters
    ----------
    problem : Problem
    runtime : str
    sizes : tuple of int
        Bytes of the message, ascending, as nccl-tests counts them; one or more.
    model : object
        Constants of the simulator; None are its own.
    seed : int
    """

    problem: Problem
    runtime: str
    sizes: tuple[int, ...]
    model: Any = None
    seed: int = 0

    def key(self, candidate: Candidate) -> str:
        """Return a hash of everything that the measurement of a candidate depends on."""
        from colsynth.simulate import default_model

        runtime = profile(self.runtime)
        model = default_model(runtime) if self.model is None else self.model
        inputs = (__version__, self.problem, runtime, self.sizes, model, self.seed)
        text = "\n".join(map(repr, (*inputs, candidate)))
        return hashlib.sha256(text.encode()).hexdigest()


def usable_sizes(runtime: str, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the sizes that files of a runtime can serve, ascending, each once.

    Raises
    ------
    InputError
        CS212 where there are none.
    """
    found = profile(runtime)
    least, most = max(found.least_min_bytes, 1), found.default_max_bytes
    fit = (size for size in sizes if least <= size and (most is None or size <= most))
    usable = tuple(sorted(set(fit)))
    if not usable:
        phrase = f"{runtime} serves none of the sizes"
        notes = (f"files serve messages from {least} to {most or 'any number of'} bytes",)
        raise InputError(Diagnostic("CS212", phrase, notes=notes))
    return usable


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a candidate.

    Parameters
    ----------
    candidate : Candidate
    seconds : tuple of float or None
        Predicted time at every size of the case; None where it is not tried.
    refusal : str or None
        Why there is no program, such as ``"CS402: ..."``; then all `seconds` are None.
    usable : tuple of bool
        At every size, whether calls of round messages near it use the file.
    """

    candidate: Candidate
    seconds: tuple[float | None, ...]
    refusal: str | None = None
    usable: tuple[bool, ...] = ()

    @property
    def served(self) -> tuple[float | None, ...]:
        """The times at sizes whose calls use the file."""
        pairs = zip(self.seconds, self.usable, strict=False)
        known = tuple(x if usable else None for x, usable in pairs)
        return known or self.seconds

    def entry(self) -> dict[str, Any]:
        """Return plain values that `of_entry` reads back."""
        return {"seconds": self.seconds, "refusal": self.refusal, "usable": self.usable}

    @classmethod
    def of_entry(cls, case: Case, candidate: Candidate, entry: Any) -> Measured:
        """Return a measurement from its plain values; ValueError from what is none of the case."""
        found = in_form(entry, _Entry)
        seconds, usable = found.seconds, found.usable
        tried = sizes_of(case, candidate) if found.refusal is None else ()
        if [x is not None for x in seconds] != [size in tried for size in case.sizes]:
            raise ValueError("there is not a time for every size")
        if len(usable) != (len(seconds) if tried else 0):
            raise ValueError("not all sizes are known to be usable or not")
        if not all(x is None or (isfinite(x) and x > 0) for x in seconds):
            raise ValueError("a time is none")
        return cls(candidate, seconds, found.refusal, usable)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The plain values of a measurement."""

    seconds: tuple[float | None, ...]
    refusal: str | None
    usable: tuple[bool, ...]


def evaluate(case: Case, candidate: Candidate) -> Measured:
    """Return the predicted times of a candidate, or why it cannot be had.

    A fault of colsynth in one candidate is a refusal of that candidate, by its code, so that
    one wrong program does not cost all others.
    """
    nothing = (None,) * len(case.sizes)
    tried = sizes_of(case, candidate)
    if not tried:
        return Measured(candidate, nothing, f"{candidate.protocol} is for smaller messages")
    try:
        most = _within(case, knobs().protocols[candidate.protocol])
        made = build(case, candidate, mode=Mode.AUTO, several=False, max_bytes=most)
        found = dict(zip(tried, predict(case, made.artefacts[0], tried), strict=True))
    except ColsynthError as fault:
        told = fault.diagnostic
        return Measured(candidate, nothing, f"{told.code}: {told.phrase}")
    chunks = made.artefacts[0].program.header.chunks
    return Measured(
        candidate,
        tuple(found.get(size) for size in case.sizes),
        usable=tuple(is_usable(size, chunks, case.problem.topology.size) for size in case.sizes),
    )


def is_usable(size: int, chunks: int, ranks: int) -> bool:
    """Return whether messages of a round size use a file of so many chunks.

    Parameters
    ----------
    size : int
        Bytes; the power of two from there is looked at.
    chunks : int
        Of the file; they must divide the elements of the call (contract 1.4).
    ranks : int
        An odd factor of these, which every file has, is allowed for.
    """
    odd = ranks // (ranks & -ranks)
    elements = (1 << (size - 1).bit_length()) // knobs().element_bytes
    return elements > 0 and elements * odd % chunks == 0


def sizes_of(case: Case, candidate: Candidate) -> tuple[int, ...]:
    """Return the sizes that the protocol of a candidate is tried at."""
    most = knobs().protocols[candidate.protocol]
    return tuple(size for size in case.sizes if most is None or size <= most)


def _within(case: Case, most: int | None) -> int | None:
    """Return the smaller of two largest sizes: `most`, and that of the runtime."""
    limits = (most, profile(case.runtime).default_max_bytes)
    return min((limit for limit in limits if limit is not None), default=None)


def build(
    case: Case,
    candidate: Candidate,
    *,
    mode: Mode,
    several: bool,
    min_bytes: int | None = None,
    max_bytes: int | None = None,
) -> Compilation:
    """Return the verified files of a candidate; raises as `compile_problem` does."""
    runtime = profile(case.runtime)
    settings = candidate.settings()
    protocol = settings.pop("protocol")
    target = aim(case.problem, runtime, protocol, min_bytes, max_bytes, seed=case.seed)
    request = replace(Request(mode=mode, several=several, measured=False), **settings)
    return compile_problem(case.problem, target, request)


def predict(case: Case, artefact: Artefact, sizes: Iterable[int]) -> tuple[float, ...]:
    """Return the predicted seconds of a file at each size."""
    from colsynth.simulate import simulate

    topology, runtime = case.problem.topology, profile(case.runtime)
    points = simulate(artefact.program, topology, runtime, tuple(sizes), model=case.model)
    return tuple(float(point.seconds) for point in points)
