"""Passes and algorithms of users, beside those of the package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Problem, ThreadblockProgram
from colsynth.pipeline.contract import check_pass, is_name
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ADDED, ALGORITHMS, AUTO, DEFAULT
from colsynth.pipeline.user_code import hash_of


def add_pass(pass_type: type, algorithm: str | None = None, pipeline: str | None = None) -> None:
    """Make a pass known to this process, and a pipeline as an algorithm (`api.add_pass`)."""
    check_pass(pass_type)
    name = pass_type.name  # type: ignore[attr-defined]
    if name in DEFAULT.places:
        raise _taken("pass", name)
    if (algorithm is None) != (pipeline is None):
        phrase = "algorithm and pipeline go together: a name, and the text of its passes"
        raise InputError(Diagnostic("CS217", phrase, help="give both or neither"))
    if algorithm is not None:
        _check_name(algorithm)
    before = dict(DEFAULT.added)
    DEFAULT.added[name] = pass_type
    if algorithm is None or pipeline is None:
        return
    try:
        Pipeline.from_text(pipeline).check(Problem, ThreadblockProgram)
    except InputError as fault:
        DEFAULT.added.clear()
        DEFAULT.added.update(before)
        raise _from_python(fault.diagnostic) from None
    ALGORITHMS[algorithm] = pipeline
    ADDED.add(algorithm)


def sources(names: Iterable[str]) -> tuple[str, ...]:
    """Return a hash of the code of each pass of users among `names`, to tell versions apart."""
    return tuple(hash_of(DEFAULT.added[name]) for name in names if name in DEFAULT.added)


def _check_name(algorithm: str) -> None:
    """Refuse a name that no algorithm can have (CS225)."""
    if algorithm == AUTO or (algorithm in ALGORITHMS and algorithm not in ADDED):
        raise _taken("algorithm", algorithm)
    if not is_name(algorithm):
        phrase = f"an algorithm cannot have the name {algorithm!r}"
        raise InputError(Diagnostic("CS225", phrase, help="write it in kebab-case, as 'bruck'"))


def _from_python(found: Diagnostic) -> InputError:
    """Return what is wrong with a pipeline that an argument gives, not the option `--passes`."""
    return InputError(
        found if found.span is None else replace(found, span=replace(found.span, file="pipeline"))
    )


def _taken(kind: str, name: str) -> InputError:
    """Return the refusal of a name that something of the package has."""
    advice = "take another name; 'colsynth passes' lists those of colsynth"
    return InputError(Diagnostic("CS225", f"colsynth has the {kind} {name!r} already", help=advice))
