"""What tuning may try: algorithms with the settings of their passes, as data says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.options import options_of
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.runtimes.data import read_data
from colsynth.units import parse_size


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compile a problem.

    Parameters
    ----------
    algorithm, protocol : str
    instances : int
    channels : int or None
        Of a baseline; None is the pipeline's own choice. So below.
    order : str or None
        Of transfers.
    spread : bool or None
        Whether threadblocks are many.
    even : bool or None
        Whether they are as many as loads need.
    trees : str or None
        Of a forest.
    most : int or None
        Chunks in one transfer.
    chunks_per_gpu, size : int or None
        Of a timed schedule.
    """

    algorithm: str
    protocol: str = "Simple"
    instances: int = 1
    channels: int | None = None
    order: str | None = None
    spread: bool | None = None
    even: bool | None = None
    trees: str | None = None
    most: int | None = None
    chunks_per_gpu: int | None = None
    size: int | None = None

    def settings(self) -> dict[str, Any]:
        """Return what differs from the defaults, by field; algorithm and protocol always."""
        pairs = ((field, getattr(self, field.name)) for field in fields(self))
        always = ("algorithm", "protocol")
        return {f.name: value for f, value in pairs if f.name in always or value != f.default}

    def __str__(self) -> str:
        named = self.settings()
        head = f"{named.pop('algorithm')} {named.pop('protocol')}"
        rest = (f"{name.replace('_', '-')}={value}" for name, value in named.items())
        return " ".join([head, *rest])


@dataclass(frozen=True)
class Knob:
    """Values of one field; a ladder is climbed, of other knobs all values are tried.

    `start` is the value tried first.
    """

    field: str
    values: tuple[Any, ...]
    ladder: bool
    start: Any

    def beside(self, value: Any) -> tuple[Any, ...]:
        """Return the values to try next to `value`."""
        if not self.ladder:
            return tuple(other for other in self.values if other != value)
        place = self.values.index(value) if value in self.values else 0
        return self.values[max(place - 1, 0) : place] + self.values[place + 1 : place + 2]


@dataclass(frozen=True)
class Knobs:
    """The content of ``knobs.yaml``; sizes in bytes.

    Parameters
    ----------
    protocols : dict
        Of each protocol the largest message it is tried at, None without limit.
    shared : tuple of Knob
        Of every algorithm.
    algorithms : dict
        Knobs of single algorithms.
    own : tuple of str
        Algorithms that are no baselines.
    promising : int
        Factor behind the best within which an algorithm is tried further.
    tolerance : Fraction
        Share of time within which two files are equally good.
    element_bytes : int
        Of the numbers in a message.
    """

    protocols: dict[str, int | None]
    shared: tuple[Knob, ...]
    algorithms: dict[str, tuple[Knob, ...]]
    own: tuple[str, ...]
    promising: int
    tolerance: Fraction
    element_bytes: int

    def of(self, algorithm: str) -> tuple[Knob, ...]:
        """Return the knobs of an algorithm: its own, and those shared that its passes have."""
        known = _options(algorithm)
        shared = (knob for knob in self.shared if knob.field in known)
        return (*self.algorithms.get(algorithm, ()), *shared)


@cache
def _options(algorithm: str) -> frozenset[str]:
    """Return the options of all passes of an algorithm."""
    passes = Pipeline.from_text(ALGORITHMS[algorithm]).passes
    return frozenset(option.field for item in passes for option in options_of(type(item)))


@cache
def knobs() -> Knobs:
    """Return what ``knobs.yaml`` says."""
    data = read_data("tuning", "knobs.yaml")
    limits = {name: entry["most"] for name, entry in data["protocols"].items()}
    return Knobs(
        protocols={
            name: None if most is None else parse_size(most) for name, most in limits.items()
        },
        shared=_knobs(data["shared"]),
        algorithms={name: _knobs(entry) for name, entry in data["algorithms"].items()},
        own=tuple(data["own"]),
        promising=data["promising"],
        tolerance=Fraction(data["tolerance"]),
        element_bytes=data["element_bytes"],
    )


def _knobs(entry: dict[str, dict[str, list[Any]]]) -> tuple[Knob, ...]:
    return tuple(_knob(field, **described) for field, described in entry.items())


def _knob(
    field: str,
    ladder: Sequence[Any] = (),
    choices: Sequence[Any] = (),
    start: Any = None,
) -> Knob:
    values = tuple(_value(field, value) for value in ladder or choices)
    first = values[0] if start is None else _value(field, start)
    return Knob(field, values, bool(ladder), first)


def _value(field: str, value: Any) -> Any:
    return parse_size(str(value)) if field == "size" else value


def algorithm_names(chosen: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the algorithms to try: all, our own first, or those chosen.

    Raises
    ------
    InputError
        CS213 for an algorithm that does not exist, and for none at all.
    """
    if chosen is not None and not chosen:
        advice = f"valid: {', '.join(ALGORITHMS)}"
        raise InputError(Diagnostic("CS213", "--algorithms names none", help=advice))
    for name in chosen or ():
        if name not in ALGORITHMS:
            phrase = f"there is no algorithm {name!r}"
            raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(name, ALGORITHMS)))
    names = ALGORITHMS if chosen is None else dict.fromkeys(chosen)
    return tuple(sorted(names, key=lambda name: name not in knobs().own))


def is_baseline(algorithm: str) -> bool:
    """Whether an algorithm stands for what libraries have."""
    return algorithm not in knobs().own


def starts(algorithms: Sequence[str], least: int) -> Iterator[tuple[Candidate, ...]]:
    """Yield all algorithms with each protocol that suits some size from `least` bytes up."""
    for protocol in _protocols(least):
        yield tuple(_start(algorithm, protocol) for algorithm in algorithms)


def _protocols(least: int) -> tuple[str, ...]:
    """Return the protocols that suit some size from `least` bytes up."""
    known = knobs().protocols.items()
    return tuple(protocol for protocol, most in known if most is None or least <= most)


def _start(algorithm: str, protocol: str) -> Candidate:
    first = {knob.field: knob.start for knob in knobs().of(algorithm)}
    return Candidate(algorithm, protocol, **first)


def neighbours(candidate: Candidate, least: int) -> Iterator[Candidate]:
    """Yield what differs from a candidate in its protocol, or in one knob by one step.

    Parameters
    ----------
    candidate : Candidate
    least : int
        Bytes of the smallest message, as for `starts`.
    """
    for protocol in _protocols(least):
        if protocol != candidate.protocol:
            yield replace(candidate, protocol=protocol)
    for knob in knobs().of(candidate.algorithm):
        for value in knob.beside(getattr(candidate, knob.field)):
            yield replace(candidate, **{knob.field: value})
