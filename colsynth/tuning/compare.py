"""Algorithms beside each other and beside the bound, by message size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.search.case import Case, usable_protocols, usable_sizes
from colsynth.search.found import nothing_fits, refusals
from colsynth.search.levels import HEAVY
from colsynth.search.library import Fastest, Library, library_algorithms
from colsynth.search.means import Means
from colsynth.search.measured import Measured
from colsynth.search.objective import Objective
from colsynth.search.run import Explored, find_each
from colsynth.search.wish import algorithm_names
from colsynth.units import format_size


@dataclass(frozen=True)
class Comparison:
    """What every algorithm reaches at its best, at every size.

    Parameters
    ----------
    case : Case
    winners : dict
        By algorithm, the best of its plans at every size whose file such a call would use; None
        where there is none.
    bound : Fraction
        Bytes per second that links allow any file of the runtime.
    left_out : dict
        Why algorithms gave no program.
    unselected : dict
        By algorithm, at which sizes a call would use none of its files. Files are not looked for
        at a size that the runtime uses none for.
    spent : tuple of bool
        For every size, whether the budget ended the search.
    untried : tuple of str
        Algorithms that are tried only where somebody names them.
    unfit : tuple of str
        Algorithms that the runtime cannot say, or that are for other machines or collectives.
    elsewhere : tuple of (float, str) or None
        Seconds and name of the library's fastest algorithm at every size, where the library is
        another runtime (`Profile.library`); empty where it is this one.
    starved : tuple of bool
        For every size, whether the budget ended the search before the library's algorithms had all
        protocols; their times say little then. Empty where the library is another runtime.
    """

    case: Case
    winners: dict[str, tuple[Measured | None, ...]]
    bound: Fraction
    left_out: dict[str, str]
    unselected: dict[str, tuple[bool, ...]]
    spent: tuple[bool, ...]
    untried: tuple[str, ...]
    unfit: tuple[str, ...]
    elsewhere: tuple[Fastest | None, ...] = ()
    starved: tuple[bool, ...] = ()

    def __repr__(self) -> str:
        """Return one line: fields hold the topology and what was measured."""
        case, problem = self.case, self.case.problem
        found = [f"{problem.collective} on {problem.topology.name}", case.runtime]
        pairs = zip(case.sizes, self.best, strict=True)
        found += [f"{name or 'nothing'} at {format_size(size)}" for size, name in pairs]
        return f"Comparison({', '.join(found)})"

    def seconds(self, algorithm: str, place: int) -> float | None:
        """Return the least time of an algorithm at one size.

        Raises
        ------
        InputError
            CS213: the algorithm is none of the `winners`.
        """
        if algorithm not in self.winners:
            phrase = f"the comparison has no algorithm {algorithm!r}"
            reason = self.left_out.get(algorithm)
            notes = () if reason is None else (reason,)
            advice = did_you_mean(algorithm, self.winners)
            raise InputError(Diagnostic("CS213", phrase, notes=notes, help=advice))
        winner = self.winners[algorithm][place]
        return None if winner is None else winner.seconds[place]

    def algbw(self, algorithm: str) -> tuple[float | None, ...]:
        """Return bytes per second of an algorithm at every size."""
        times = (self.seconds(algorithm, i) for i in range(len(self.case.sizes)))
        return tuple(
            None if t is None else size / t for size, t in zip(self.case.sizes, times, strict=True)
        )

    @property
    def best(self) -> tuple[str | None, ...]:
        """The fastest algorithm at every size; our own among equals."""
        return tuple(self._best(i, tuple(self.winners)) for i in range(len(self.case.sizes)))

    @property
    def library(self) -> tuple[str, ...]:
        """The algorithms of the library that gains are measured against."""
        known = library_algorithms(self.case.profile, self.case.problem.collective)
        if self.elsewhere:
            return known if any(self.elsewhere) else ()
        return tuple(name for name in self.winners if name in known)

    def over_library(self, place: int) -> float | None:
        """Return the library's least time over the least of all, less one; None without either.

        None, too, where the budget ended the search before the library's algorithms had all
        protocols.
        """
        if any(self.starved[place : place + 1]):
            return None
        best, other = self.best[place], self._theirs(place)
        least = None if best is None else self.seconds(best, place)
        return other / least - 1 if least and other else None

    def _theirs(self, place: int) -> float | None:
        """Return the library's least time at one size."""
        if self.elsewhere:
            fastest = self.elsewhere[place]
            return None if fastest is None else fastest[0]
        name = self._best(place, self.library)
        return None if name is None else self.seconds(name, place)

    def _best(self, place: int, names: tuple[str, ...]) -> str | None:
        timed = ((t, name) for name in names if (t := self.seconds(name, place)) is not None)
        return min(timed, key=lambda pair: pair[0], default=(0.0, None))[1]


def compare(
    case: Case, bound: Fraction, means: Means, algorithms: Sequence[str] | None = None
) -> Comparison:
    """Return what every algorithm reaches at every size.

    Parameters
    ----------
    case : Case
    bound : Fraction
        Bytes per second.
    means : Means
    algorithms : sequence of str, optional
        All unless given.

    Raises
    ------
    InputError
        CS210 and CS213 for a wrong budget or algorithm; CS212: no file can serve any of the sizes.
    LimitError
        CS611 where no algorithm gives a program.
    """
    tried = algorithm_names(case.problem, algorithms, case.profile)
    served = usable_sizes(case.runtime, case.sizes)
    explored = find_each(case, tried, means, alone=True)
    found = explored.measured
    left_out = refusals(found)
    names = dict.fromkeys(m.plan.algorithm for m in found)
    best = {name: _best(case, found, name) for name in names if name not in left_out}
    if not best:
        raise nothing_fits(case, found)
    winners, unselected = {}, {}
    for name, row in best.items():
        winners[name] = tuple(m if m and m.exact[i] else None for i, m in enumerate(row))
        unselected[name] = tuple(
            size not in served or (m is not None and not m.exact[i])
            for i, (size, m) in enumerate(zip(case.sizes, row, strict=True))
        )
    others = () if algorithms else tuple(name for name in ALGORITHMS if name not in tried)
    unfit = tuple(name for name in others if name != HEAVY and name not in left_out)
    untried = tuple(name for name in others if name == HEAVY)
    told = (left_out, unselected, explored.spent, untried, unfit, _elsewhere(case))
    return Comparison(case, winners, bound, *told, starved=_starved(case, explored))


def _starved(case: Case, explored: Explored) -> tuple[bool, ...]:
    """Return for every size whether the budget left protocols of the library's algorithms out."""
    if case.profile.library is not None:
        return ()
    known = library_algorithms(case.profile, case.problem.collective)
    theirs = [m for m in explored.measured if m.plan.algorithm in known]
    names = {m.plan.algorithm for m in theirs if m.refusal is None}
    found = []
    for size, spent in zip(case.sizes, explored.spent, strict=True):
        own = [m.plan for m in theirs if m.plan.size in (None, size)]
        tried = {(plan.algorithm, plan.protocol) for plan in own}
        protocols = usable_protocols(replace(case, sizes=(size,)))
        found.append(spent and not tried >= set(product(names, protocols)))
    return tuple(found)


def _elsewhere(case: Case) -> tuple[Fastest | None, ...]:
    """Return what the library does at every size, where it is another runtime."""
    if case.profile.library is None:
        return ()
    library = Library(case)
    return tuple(map(library.fastest, case.sizes))


def _best(case: Case, found: Sequence[Measured], name: str) -> tuple[Measured | None, ...]:
    """Return the best plan of an algorithm at every size."""
    own = [m for m in found if m.plan.algorithm == name]
    return tuple(objective.best(own) for objective in Objective.each(case.sizes))
