"""Which candidates are the fastest, without trying all.

Every algorithm starts with its first settings, and with every protocol where it serves the
problem at all. Then neighbours of whatever is best of its algorithm at some size are tried, in
rounds that take from all in turn, the most promising first, until nothing new is left or the
budget is spent. Only predictions decide, never the clock, so equal inputs try equal candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from operator import attrgetter

from colsynth.errors import Diagnostic, LimitError, require_least
from colsynth.pipeline.journal import Journal
from colsynth.pipeline.target import aim
from colsynth.pipeline.workers import Workers
from colsynth.runtimes.catalog import profile
from colsynth.tuning.candidates import Candidate, algorithm_names, knobs, neighbours, starts
from colsynth.tuning.evaluate import Case, Measured, evaluate

BUDGET, SMALL_BUDGET = 128, 40
"""Evaluations of a search for all sizes, and of one for a single size."""
_ROUND = 24
"""Evaluations before the best are looked at anew."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Means:
    """What a search works with.

    Parameters
    ----------
    budget : int
        Most evaluations, those of the journal included.
    workers : Workers
    journal : Journal
    progress : callable or None
        Told (what, evaluations done, most evaluations).
    """

    budget: int = BUDGET
    workers: Workers = field(default_factory=Workers)
    journal: Journal = field(default_factory=Journal)
    progress: Progress | None = None

    def tell(self, what: str, done: int) -> None:
        """Report progress, where somebody listens."""
        if self.progress is not None:
            self.progress(what, done, self.budget)


def search(case: Case, algorithms: Sequence[str], means: Means) -> tuple[Measured, ...]:
    """Return everything that was measured, in the order it was decided on.

    Parameters
    ----------
    case : Case
    algorithms : sequence of str
    means : Means

    Raises
    ------
    InputError
        CS210 where the budget is no number from 1.
    LimitError
        The runtime serves no such problem.
    """
    require_least("--budget", means.budget, 1)
    aim(case.problem, profile(case.runtime), "LL")  # refuses what no candidate could serve
    found: dict[Candidate, Measured] = {}
    for batch in _rounds(case, algorithms, found):
        for measured in _measure(case, batch[: means.budget - len(found)], means, len(found)):
            found[measured.candidate] = measured
        if len(found) >= means.budget:
            break
    return tuple(found.values())


def _rounds(
    case: Case, algorithms: Sequence[str], found: dict[Candidate, Measured]
) -> Iterator[list[Candidate]]:
    """Yield what to try next, given what was `found` by then."""
    least = case.sizes[0]
    usable = _usable_protocols(case)
    first, *others = (row for row in starts(algorithms, least) if row[0].protocol in usable)
    yield list(first)
    serving = {m.candidate.algorithm for m in found.values() if m.refusal is None}
    yield [candidate for row in others for candidate in row if candidate.algorithm in serving]
    while batch := [x for x in _next(found, least) if x.protocol in usable][:_ROUND]:
        yield batch


def _usable_protocols(case: Case) -> frozenset[str]:
    """Return the protocols with which the runtime runs a collective at all."""
    found = []
    for protocol in knobs().protocols:
        with suppress(LimitError):
            aim(case.problem, profile(case.runtime), protocol)
            found.append(protocol)
    return frozenset(found)


def _measure(case: Case, batch: Sequence[Candidate], means: Means, done: int) -> Iterator[Measured]:
    """Yield the measurements of a batch in its order."""
    what = f"tuning {case.problem.collective}"
    known = {candidate: _recalled(case, candidate, means) for candidate in batch}
    open_ = [candidate for candidate, measured in known.items() if measured is None]
    done += len(batch) - len(open_)
    means.tell(what, done)
    for measured in means.workers.run(partial(evaluate, case), open_):
        means.journal.keep(case.key(measured.candidate), measured.entry())
        known[measured.candidate] = measured
        done += 1
        means.tell(what, done)
    yield from (measured for measured in known.values() if measured is not None)


def _recalled(case: Case, candidate: Candidate, means: Means) -> Measured | None:
    """Return what an earlier search measured, None where there is nothing of use."""
    with suppress(ValueError):
        return Measured.of_entry(case, candidate, means.journal.recall(case.key(candidate)))
    return None


def _next(found: dict[Candidate, Measured], least: int) -> list[Candidate]:
    """Return new neighbours of the best of each algorithm in turn, the most promising first.

    Once by all times, and once by those of calls that use the file.
    """
    ranked: dict[Candidate, float] = {}
    algorithms = dict.fromkeys(candidate.algorithm for candidate in found)
    for times in (_SECONDS, _SERVED):
        for place in range(len(next(iter(found.values())).seconds)):
            best = fastest(found.values(), place, times)
            for algorithm in algorithms:
                of_it = (m for m in found.values() if m.candidate.algorithm == algorithm)
                own = fastest(of_it, place, times)
                if own is None or best is None:
                    continue
                behind = own[0] / best[0]
                if behind <= knobs().promising:
                    parent = own[1].candidate
                    ranked[parent] = min(behind, ranked.get(parent, behind))
    parents = sorted(ranked, key=lambda parent: ranked[parent])  # stable: ties by size, name
    rows = ([x for x in neighbours(parent, least) if x not in found] for parent in parents)
    turns = (candidate for turn in zip_longest(*rows) for candidate in turn)
    return [candidate for candidate in dict.fromkeys(turns) if candidate is not None]


_SECONDS, _SERVED = attrgetter("seconds"), attrgetter("served")


def fastest(
    measured: Iterable[Measured],
    place: int,
    times: Callable[[Measured], tuple[float | None, ...]] = _SECONDS,
) -> tuple[float, Measured] | None:
    """Return least time and who takes it at one size, the first among equals."""
    timed = ((times(m)[place], m) for m in measured)
    known = ((seconds, m) for seconds, m in timed if seconds is not None)
    return min(known, key=lambda pair: pair[0], default=None)


def choose(case: Case, means: Means | None = None) -> Candidate:
    """Return the best candidate for the one size of a case.

    Raises
    ------
    LimitError
        CS611 when no algorithm gives a program.
    """
    means = replace(Means(), budget=SMALL_BUDGET) if means is None else means
    found = search(case, algorithm_names(), means)
    best = fastest(found, 0, _SERVED) or fastest(found, 0)
    if best is None:
        raise nothing_fits(case, found)
    return best[1].candidate


def nothing_fits(case: Case, found: Iterable[Measured]) -> LimitError:
    """Return the error that no algorithm gives a program, with the reason of each."""
    phrase = f"no algorithm gives a program for {case.problem.collective} on {case.runtime}"
    reasons = refusals(found)
    notes = tuple(f"{name}: {reason}" for name, reason in reasons.items())
    return LimitError(Diagnostic("CS611", phrase, notes=notes))


def refusals(found: Iterable[Measured]) -> dict[str, str]:
    """Return why algorithms gave no program at all: the reason of their first candidate."""
    measured = tuple(found)
    served = {m.candidate.algorithm for m in measured if m.refusal is None}
    reasons: dict[str, str] = {}
    for m in measured:
        if m.candidate.algorithm not in served and m.refusal is not None:
            reasons.setdefault(m.candidate.algorithm, m.refusal)
    return reasons
