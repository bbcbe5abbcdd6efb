"""A plan: one way to make a program, a point of the search space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.options import options_of, spelt
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT, pipeline_of
from colsynth.runtimes.choice import PROTOCOL, Changes, Choice


@dataclass(frozen=True, slots=True)
class Plan:
    """A pipeline and a protocol.

    Parameters
    ----------
    algorithm : str
        Name in `ALGORITHMS`, or any text for a pipeline that a user gave.
    protocol : str
    passes : str
        Text of the pipeline.
    size : int or None
        Bytes of the message that the program is for; None: of several, usual ones.
    """

    algorithm: str
    protocol: str
    passes: str
    size: int | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The passes."""
        return _pipeline(self.passes, DEFAULT.own)

    def changed(self, changes: Changes) -> Plan | None:
        """Return the plan with changed options; None if it lacks one of them."""
        wanted = dict(changes)
        protocol = wanted.pop(PROTOCOL, self.protocol)
        passes: list[Any] = []
        item: Any
        for item in self.pipeline.passes:
            known = {o.field for o in options_of(type(item))}
            own = {f: wanted.pop(f"{item.name}.{f}") for f in known if f"{item.name}.{f}" in wanted}
            passes.append(replace(item, **own) if own else item)
        if wanted:
            return None
        return replace(self, protocol=protocol, passes=str(Pipeline(tuple(passes))))

    def with_each(self, several: Iterable[Changes]) -> Iterator[Plan]:
        """Yield the plan with each of some changes; without those whose options it lacks."""
        for changes in several:
            changed = self.changed(changes)
            if changed is not None:
                yield changed

    def values(self) -> dict[str, Any]:
        """Return the options of all passes, by ``"pass-name.field"``."""
        return _values(self.passes, DEFAULT.own)

    def option(self, field: str, default: Any = None) -> Any:
        """Return the value of an option by its field, from the first pass that has it."""
        found = (v for name, v in self.values().items() if name.partition(".")[2] == field)
        return next(found, default)

    @property
    def replicas(self) -> int:
        """How often each transfer of the schedule is repeated; steps grow in proportion."""
        values = self.values()
        segments = str(values.get("lower-forest.segments", "1")).count("-") + 1
        copies = (values.get(f"{name}.instances", 1) for name in ("lower-forest", "lower-timed"))
        return segments * prod(map(int, copies))

    def choices(self) -> Iterator[tuple[str, Choice]]:
        """Yield the choices of all passes as (name of the pass, choice), in the order of passes."""
        for item in self.pipeline.passes:
            for choice in getattr(type(item), "choices", ()):
                yield item.name, choice

    def settings(self) -> dict[str, Any]:
        """Return the options that differ from the algorithm's defaults, by option name.

        An option that several passes have appears once.
        """
        usual: Mapping[str, Any] = {}
        if self.algorithm in ALGORITHMS:
            text = pipeline_of(self.algorithm, rounds="lower-rounds" in self.passes)
            usual = _values(text, DEFAULT.own)
        return {
            spelt(name.partition(".")[2]): value
            for name, value in self.values().items()
            if name not in usual or usual[name] != value
        }

    def __str__(self) -> str:
        named = (f"{name}={value}" for name, value in self.settings().items())
        return " ".join([self.algorithm, self.protocol, *named])


@lru_cache(maxsize=4096)
def _pipeline(text: str, _own: tuple[type, ...]) -> Pipeline:
    """Return the passes of a text, made anew where passes were added since."""
    return Pipeline.from_text(text)


@lru_cache(maxsize=4096)
def _values(text: str, own: tuple[type, ...]) -> dict[str, Any]:
    return {
        f"{item.name}.{option.field}": getattr(item, option.field)
        for item in _pipeline(text, own).passes
        for option in options_of(type(item))
    }
