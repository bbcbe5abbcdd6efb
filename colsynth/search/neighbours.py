"""The neighbours of a plan: those that differ from it in one choice, or in their protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from colsynth.runtimes.choice import PROTOCOL, Basis, Changes, Choice
from colsynth.search.case import Case
from colsynth.search.levels import LIBRARY, varied
from colsynth.search.measured import Measured
from colsynth.search.plan import Plan

Alternatives = tuple[Plan, ...]
"""Plans in order of preference; the first that fits is taken."""


@dataclass(frozen=True)
class Neighbours:
    """Proposes plans next to others.

    Parameters
    ----------
    case : Case
    size : int
        Bytes of the message for which plans are proposed.
    protocols : tuple of str
        Protocols that may be tried.
    pinned : frozenset of str
        Options, by field, that are not varied.
    found : mapping of Plan to Measured
        All results so far; it grows while the search goes on.
    """

    case: Case
    size: int
    protocols: tuple[str, ...]
    pinned: frozenset[str]
    found: Mapping[Plan, Measured]
    _tied: set[str] = field(default_factory=set)

    def is_tied(self, plan: Plan) -> bool:
        """Whether the pipeline of a plan was proposed together with its protocol."""
        return plan.passes in self._tied

    def all_of(self, parent: Measured) -> Iterator[Alternatives]:
        """Yield plans that differ from a plan in its protocol, or in one choice."""
        plan = parent.plan
        for protocol in self.protocols:
            if protocol != plan.protocol:
                yield (replace(plan, protocol=protocol),)
        for owner, choice in plan.choices():
            yield from self._varied(parent, owner, choice, thorough=True)

    def turned(self, parent: Measured, name: str) -> Iterator[Alternatives]:
        """Yield plans that differ from a plan in the choice of this name."""
        for owner, choice in parent.plan.choices():
            if f"{owner}.{choice.known_as}" == name:
                yield from self._varied(parent, owner, choice, thorough=False)

    def _varied(
        self, parent: Measured, owner: str, choice: Choice, *, thorough: bool
    ) -> Iterator[Alternatives]:
        plan = parent.plan
        name = f"{owner}.{choice.option}"
        if plan.algorithm not in varied() and choice.option not in LIBRARY and name not in LIBRARY:
            return
        basis = self._basis(parent, choice.anchor, thorough)
        for proposal in choice.proposals(name, basis):
            allowed = (c for c in proposal if not self._is_pinned(c))
            plans = [(plan.changed(changes), PROTOCOL in changes) for changes in allowed]
            known = [(x, y) for x, y in plans if x is not None and x.protocol in self.protocols]
            tied = self.is_tied(plan)
            self._tied.update(x.passes for x, proposed in known if proposed or tied)
            yield tuple(x for x, _ in known)

    def _is_pinned(self, changes: Changes) -> bool:
        return any(name.partition(".")[2] in self.pinned for name in changes)

    def _basis(self, parent: Measured, anchor: Changes, thorough: bool) -> Basis:
        other = parent.plan.changed(anchor)
        anchored = self.found.get(other) if other is not None else None
        seen = parent if anchored is None or anchored.shape is None else anchored
        if seen.shape is None:
            raise TypeError("a plan without a program has no neighbours")
        return Basis(
            problem=self.case.problem,
            profile=self.case.profile,
            protocol=parent.plan.protocol,
            size=self.size,
            shape=seen.shape,
            values=seen.plan.values(),
            thorough=thorough,
            model=self.case.model,
        )
