"""From times by size to byte ranges: the fewest files that serve every size well enough.

A measured size stands for the messages from itself up to the next measured size, the first also
for all below it and the last for all above. A segment is a run of sizes served by one
plan, which costs files, or left to the library, which costs none. A plan serves a size if a call of
this size uses its file. A file may also cover sizes that it does not divide, while usual sizes near
them do use it: the library then serves these calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import log

from colsynth.search.least_times import TOLERANCE
from colsynth.search.measured import Measured

_UNSERVED = 10**15
"""The loss of leaving a size to a library of which nothing is known."""
_UNIT = 10**9
"""Losses are whole numbers, so that sums of them do not depend on their order."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Adjacent sizes with one answer.

    Parameters
    ----------
    first, last : int
        Places of the sizes, inclusive.
    ranking : tuple of Measured
        Who covers them all and serves some, best first; empty where they are left to the library.
    """

    first: int
    last: int
    ranking: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranges:
    """The segments of one collective, and what they cost.

    Parameters
    ----------
    segments : tuple of Segment
        In order; they cover every size once.
    served : int
        Segments that are not left to the library.
    excess : int
        Sum over sizes of the logarithm of time over best time, beyond the tolerance, in 1e-9.
    loss : int
        The same without a tolerance.
    """

    segments: tuple[Segment, ...] = ()
    served: int = 0
    excess: int = 0
    loss: int = 0


@dataclass(frozen=True)
class Offer:
    """What may serve the sizes of one collective.

    Parameters
    ----------
    measured : tuple of Measured
    library : tuple of float or None
        The library's own time at every size; None where it is not known.
    files : int
        Files per segment: one for each mode of the call that needs its own.
    """

    measured: tuple[Measured, ...]
    library: tuple[float | None, ...]
    files: int


def plan_ranges(offers: Sequence[Offer], most_files: int | None) -> tuple[Ranges, ...]:
    """Return the plan of every collective.

    Least excess beyond the tolerance comes first, then fewest files, then least time.

    Parameters
    ----------
    offers : sequence of Offer
    most_files : int or None
        That a job may load, all collectives together; None is no limit.
    """
    tables = [_plans(offer) for offer in offers]
    if most_files is None:
        return tuple(min(table, key=lambda p: (p.excess, p.served, p.loss)) for table in tables)
    fitting = (plans for plans in product(*tables) if _files(plans, offers) <= most_files)
    return min(
        fitting,
        key=lambda plans: (
            sum(plan.excess for plan in plans),
            _files(plans, offers),
            sum(plan.loss for plan in plans),
        ),
    )


def why_left(segment: Segment, found: Sequence[Measured], most_files: int | None) -> str:
    """Return why a segment has no file.

    Parameters
    ----------
    segment : Segment
    found : sequence of Measured
        All that was tried for its collective, the library's algorithms too.
    most_files : int or None
        As for `plan_ranges`.
    """
    if segment.ranking:
        return "no plan fits the range"
    if not any(any(m.exact[segment.first : segment.last + 1]) for m in found):
        return "nothing that was tried serves these sizes"
    reason = "nothing that serves these sizes is faster"
    return reason if most_files is None else f"{reason}, or the files allowed are better spent"


def _files(plans: Sequence[Ranges], offers: Sequence[Offer]) -> int:
    return sum(p.served * offer.files for p, offer in zip(plans, offers, strict=True))


def _plans(offer: Offer) -> tuple[Ranges, ...]:
    """Return the best plan for every number of segments served, from none upwards.

    Dynamic programming over prefixes of the sizes; what a further file does not improve is
    left out.
    """
    sizes = len(offer.library)
    costs = _Costs(offer)
    rows: list[list[Ranges | None]] = [[Ranges(), *[None] * sizes]]
    for end in range(1, sizes + 1):
        row: list[Ranges | None] = [None] * (sizes + 1)
        for begin in range(end):
            for served, plan in enumerate(rows[begin]):
                if plan is None:
                    continue
                _keep(row, _extend(plan, costs.library(begin, end - 1), 0))
                if served < sizes:
                    _keep(row, _extend(plan, costs.best(begin, end - 1), 1))
        rows.append(row)
    found: list[Ranges] = []
    for last in rows[sizes]:
        if last is not None and (not found or _cost(last) < _cost(found[-1])):
            found.append(last)
    return tuple(found)


def _cost(plan: Ranges) -> tuple[int, int]:
    return plan.excess, plan.loss


def _keep(row: list[Ranges | None], plan: Ranges | None) -> None:
    if plan is None:
        return
    other = row[plan.served]
    if other is None or _cost(plan) < _cost(other):
        row[plan.served] = plan


def _extend(plan: Ranges, found: tuple[Segment, int, int] | None, served: int) -> Ranges | None:
    if found is None:
        return None
    segment, excess, loss = found
    segments = plan.segments
    if segments and not segments[-1].ranking and not segment.ranking:
        segment = Segment(segments[-1].first, segment.last)
        segments = segments[:-1]
    return Ranges(
        (*segments, segment), plan.served + served, plan.excess + excess, plan.loss + loss
    )


class _Costs:
    """What segments cost: (segment, excess, loss)."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.slack = round(_UNIT * log(1 + TOLERANCE))
        rows = [*(m.served for m in offer.measured), offer.library]
        columns = zip(*rows, strict=True)
        self.least = [min((x for x in column if x is not None), default=None) for column in columns]
        self.own = [_UNSERVED if x is None else x for x in self._losses(offer.library)]
        self.served = [self._losses(m.served) for m in offer.measured]
        self.losses = list(map(self._with_library, offer.measured, self.served))
        self.found: dict[tuple[int, int], tuple[Segment, int, int] | None] = {}

    def _losses(self, row: Sequence[float | None]) -> list[int | None]:
        return [self._loss(place, seconds) for place, seconds in enumerate(row)]

    def _loss(self, place: int, seconds: float | None) -> int | None:
        best = self.least[place]
        return None if seconds is None or best is None else round(_UNIT * log(seconds / best))

    def _with_library(self, measured: Measured, row: list[int | None]) -> list[int | None]:
        """Return the losses of a plan, with those of the library where its file is passed over.

        Usual sizes near such a size do use the file, so it must not be slower for these either.
        """
        found = list(row)
        for place, passed in enumerate(measured.passed_over):
            seconds, library = measured.seconds[place], self.offer.library[place]
            if passed and seconds is not None:
                loss = None if library is None else self._loss(place, max(seconds, library))
                found[place] = _UNSERVED if loss is None else loss
        return found

    def library(self, first: int, last: int) -> tuple[Segment, int, int]:
        """Return the cost of leaving sizes to the library."""
        excess, loss = self._sums(self.own[first : last + 1])
        return Segment(first, last), excess, loss

    def best(self, first: int, last: int) -> tuple[Segment, int, int] | None:
        """Return the best plan for sizes and its cost; None where none covers all."""
        if (first, last) not in self.found:
            self.found[first, last] = self._rank(first, last)
        return self.found[first, last]

    def _rank(self, first: int, last: int) -> tuple[Segment, int, int] | None:
        """Rank plans by excess. Among equals, usual sizes use the first one's file, too."""
        found, span = [], slice(first, last + 1)
        rows = zip(self.losses, self.served, self.offer.measured, strict=True)
        for losses, served, measured in rows:
            here = [loss for loss in losses[span] if loss is not None]
            if len(here) == last + 1 - first and any(x is not None for x in served[span]):
                excess, loss = self._sums(here)
                found.append((excess, measured.usable[span].count(False), loss, measured))
        if not found:
            return None
        found.sort(key=lambda item: item[:3])
        excess, _, loss, _ = found[0]
        return Segment(first, last, tuple(item[3] for item in found)), excess, loss

    def _sums(self, losses: Sequence[int]) -> tuple[int, int]:
        return sum(max(loss - self.slack, 0) for loss in losses), sum(losses)
