"""What a search found: the best plan and its rivals, or why nothing fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from colsynth.bounds.runtime import RuntimeBound
from colsynth.errors import Diagnostic, LimitError
from colsynth.search.case import Case
from colsynth.search.measured import Measured
from colsynth.search.searcher import Searcher
from colsynth.search.workshop import Workshop


@dataclass(frozen=True)
class Found:
    """The best plan, and the plans that it was compared with.

    Parameters
    ----------
    best : Measured
    start : Measured
        The plan that the search started from.
    workshop : Workshop
        Workshop of the search; it may still hold the program.
    ranking : tuple of Measured
        All plans that fit, the best first.
    floors : tuple of RuntimeBound
        The least time of any file, at every size of the case.
    bound : Fraction
        Bytes per second that links allow any file (`file_rate`).
    proven : bool
        Whether that is proven of all schedules (`is_proven`).
    evaluations : int
        How many plans were tried.
    refused : Measured or None
        A preferred start that does not fit the runtime.
    """

    best: Measured
    start: Measured
    workshop: Workshop
    ranking: tuple[Measured, ...]
    floors: tuple[RuntimeBound, ...]
    bound: Fraction
    proven: bool
    evaluations: int
    refused: Measured | None = None


def found_by(searcher: Searcher, bound: Fraction, *, proven: bool) -> Found:
    """Return the best plan; if there is none, raise the reason."""
    known = [m for m in searcher.found.values() if m.refusal is None]
    scored = [(searcher.objective.score(m), place, m) for place, m in enumerate(known)]
    ranked = [m for score, _, m in sorted(x for x in scored if x[0] is not None)]
    first = next(iter(searcher.found.values()))
    if ranked:
        refused = first if first.refusal is not None else None
        floors, tried = searcher.floors, searcher.evaluations
        best = searcher.objective.chosen(ranked)
        ranking = (best, *(m for m in ranked if m is not best))
        rate = bound, proven
        return Found(best, known[0], searcher.workshop, ranking, floors, *rate, tried, refused)
    own = [m for m in searcher.found.values() if m.plan.algorithm == first.plan.algorithm]
    searcher.workshop.make(own[-1].plan)  # raises why the first algorithm fails
    raise nothing_fits(searcher.workshop.case, searcher.found.values())


def nothing_fits(case: Case, found: Iterable[Measured]) -> LimitError:
    """Return the error that no algorithm gives a program, with the reason for each."""
    phrase = f"no algorithm gives a program for {case.problem.collective} on {case.runtime}"
    reasons = refusals(found)
    notes = tuple(f"{name}: {reason}" for name, reason in reasons.items())
    return LimitError(Diagnostic("CS611", phrase, notes=notes))


def refusals(found: Iterable[Measured]) -> dict[str, str]:
    """Return, for algorithms without any program, why their first plan was refused."""
    measured = tuple(found)
    served = {m.plan.algorithm for m in measured if m.refusal is None}
    reasons: dict[str, str] = {}
    for m in measured:
        if m.plan.algorithm not in served and m.refusal is not None:
            reasons.setdefault(m.plan.algorithm, m.refusal)
    return reasons
