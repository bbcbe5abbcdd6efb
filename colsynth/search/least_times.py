"""The least times that files reach at every size: what can be none of the best is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

from colsynth.search.measured import NOT_ASKED, Measured
from colsynth.search.plan import Plan

TOLERANCE = Fraction(2, 100)
"""A file within this share of the fastest counts as a winner: fewer files at no real cost."""
COMPROMISE = Fraction(25, 100)
"""A winner at one size is simulated at others where it may be within this share of the fastest.

One of few files may serve more sizes than those where it wins.
"""


class LeastTimes:
    """The least times at every size, of each algorithm and of all.

    Only what serves calls of the size counts, and what GPUs certainly hold.

    Parameters
    ----------
    served : sequence of bool
        For every size, whether files can serve it. No times are asked for at others.
    """

    def __init__(self, served: Sequence[bool]) -> None:
        self._all = [inf if known else NOT_ASKED for known in served]
        self._own: dict[str, list[float]] = {}

    def note(self, measured: Measured) -> None:
        """Take the times of a result into account."""
        if measured.crowded or not any(measured.seconds):
            return
        own = self._own.setdefault(measured.plan.algorithm, self._unknown())
        for place, seconds in enumerate(measured.served):
            if seconds is not None:
                own[place] = min(own[place], seconds)
                self._all[place] = min(self._all[place], seconds)

    def limits(self, plan: Plan) -> tuple[float, ...]:
        """Return the times beyond which a plan neither wins nor is the best of its algorithm."""
        own = self._own.get(plan.algorithm, self._unknown())
        return tuple(map(max, own, self._within(TOLERANCE)))

    def _within(self, share: Fraction) -> tuple[float, ...]:
        """Return times that are so much longer than the least of all."""
        return tuple(float(1 + share) * least for least in self._all)

    def _unknown(self) -> list[float]:
        return [NOT_ASKED if least == NOT_ASKED else inf for least in self._all]

    def of_use(self, *, few: bool) -> tuple[float, ...]:
        """Return the times beyond which no winner at another size is of use.

        Parameters
        ----------
        few : bool
            Whether a job may load few files.
        """
        return self._within(COMPROMISE if few else TOLERANCE)

    def winners(self, found: Iterable[Measured]) -> tuple[Measured, ...]:
        """Return the results that win at some size."""
        most = self._within(TOLERANCE)
        return tuple(
            m
            for m in found
            if any(x is not None and x <= y for x, y in zip(m.served, most, strict=True))
        )


@dataclass(frozen=True)
class Known:
    """What other searches of a case found.

    Parameters
    ----------
    results : mapping of Plan to Measured
        They are not measured again.
    times : LeastTimes, optional
        Of all searches. A plan is not simulated at sizes without weight where it cannot be of use;
        unless given, it is at all sizes.
    """

    results: Mapping[Plan, Measured] = field(default_factory=dict)
    times: LeastTimes | None = None
