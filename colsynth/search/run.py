"""Entry points of the search: the best plan of a request, or the best plans at every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from colsynth.bounds.runtime import RuntimeBound, file_rate, is_proven, runtime_bounds
from colsynth.errors import require_least
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.target import usual_protocol
from colsynth.search.case import Case, usable_protocols, usable_sizes
from colsynth.search.found import Found, found_by
from colsynth.search.kinds import gains_by_free_roots
from colsynth.search.least_times import Known, LeastTimes
from colsynth.search.levels import DEFAULT_LEVEL, LEVELS, check_level
from colsynth.search.means import Means, Progress, onward
from colsynth.search.measured import Limit, Measured
from colsynth.search.objective import Objective
from colsynth.search.plan import Plan
from colsynth.search.quest import Quest
from colsynth.search.searcher import Searcher
from colsynth.search.wish import Wish, algorithm_names
from colsynth.search.workshop import Asked, Workshop

Floors = tuple[RuntimeBound, ...]
"""At every size of a case."""
Outlook = tuple[Floors, bool]
"""Floors at all sizes, and whether free roots gain."""


def find_plan(
    case: Case,
    objective: Objective,
    wish: Wish,
    means: Means,
    clock: Clock | None = None,
    also: tuple[Plan, ...] = (),
    held: tuple[Plan, ...] = (),
) -> Found:
    """Return the best plan of a request.

    Parameters
    ----------
    case : Case
    objective : Objective
    wish : Wish
    means : Means
    clock : Clock, optional
    also : tuple of Plan
        Plans that are tried at the end, so that the best is none that is slower.
    held : tuple of Plan
        Plans whose programs are kept if they are tried (`Workshop.programs_held`).

    Raises
    ------
    InputError
        Wrong options.
    LimitError, InfeasibleError
        No algorithm gives a program; the error is that of the first one.
    """
    from colsynth.bounds.optimum import best_optimum

    check_level(wish.level)
    workshop = Workshop(case, clock, held)
    with workshop.clock.measure("bound"):
        optimum = best_optimum(case.problem)
    quest = Quest.of(workshop, objective, wish, means, optimum)
    if wish.passes is not None:
        given = Plan("passes", wish.protocol or wish.usual, wish.passes, wish.size)
        quest.searcher.try_all([tuple(quest.counted(given))])
    else:
        quest.begin()
        for level in LEVELS[1 : wish.level + 1]:
            if quest.searcher.best() is not None:
                quest.improve(level)
    quest.searcher.try_all([(plan,) for plan in also])
    bound = file_rate(case.problem, case.profile, optimum)
    return found_by(quest.searcher, bound, proven=is_proven(optimum, bound))


@dataclass(frozen=True)
class Explored:
    """What searches for the best plan at every size found.

    Parameters
    ----------
    measured : tuple of Measured
        All plans that were tried.
    spent : tuple of bool
        For every size, whether the budget ended the search.
    """

    measured: tuple[Measured, ...]
    spent: tuple[bool, ...]


def find_each(
    case: Case, algorithms: Sequence[str], means: Means, *, alone: bool = False
) -> Explored:
    """Return all results of a search for the best plan at every size.

    Every size is searched for as if it were the only one, so its best plan does not depend on
    the other sizes. What a search finds is not made again by the next one, but counts as if.
    No search is made for a size that no file can serve.

    The first search of a size is among programs for several sizes. Where no budget is given, a
    second one is among programs for this size alone. If all algorithms are tried, it is that of the
    default level, so its result is among them.

    Parameters
    ----------
    case : Case
    algorithms : sequence of str
        Starting points, each with all protocols.
    means : Means
        Its budget is that of every size; None: that of the highest level.
    alone : bool
        Whether programs only have to serve calls of these very sizes. If so, all are for one size
        where that is not usual, some algorithms are left out, or a budget is given.

    Raises
    ------
    InputError
        CS210: the budget is below 1. CS212: no file can serve any of the sizes.
    LimitError
        The runtime serves no such problem.
    """
    budget = LEVELS[-1].evaluations if means.budget is None else means.budget
    require_least("--budget", budget, 1)
    case.target(usual_protocol(case.problem, case.profile))  # raises if none could serve
    served = usable_sizes(case.runtime, case.sizes)
    every = set(algorithm_names(case.problem, profile=case.profile))
    outlook = _outlook(case) if means.budget is None and every <= set(algorithms) else None
    work = _Each(case, tuple(algorithms), means, budget, served, outlook, alone)
    for turn, place in enumerate(i for i, size in enumerate(case.sizes) if size in served):
        work.search(place, turn)
    if not alone:
        work.complete()
    return Explored(tuple(work.found.values()), tuple(work.spent))


@dataclass
class _Each:
    """What searches for several sizes found so far.

    Parameters
    ----------
    case, algorithms, means
        As for `find_each`.
    budget : int
        Of each size.
    served : tuple of int
        Sizes that files can serve.
    outlook : tuple, optional
        As of `_outlook`; None where some algorithms are left out, or a budget is given.
    alone : bool
        As for `find_each`.
    """

    case: Case
    algorithms: tuple[str, ...]
    means: Means
    budget: int
    served: tuple[int, ...]
    outlook: Outlook | None
    alone: bool

    def __post_init__(self) -> None:
        case, sizes = self.case, self.case.sizes
        self.found: dict[Plan, Measured] = {}
        self.spent = [False] * len(sizes)
        self._twice = self.means.budget is None and (self.outlook is not None or not self.alone)
        self._times = LeastTimes([size in self.served and self._shares(size) for size in sizes])
        self._objectives, self._told = Objective.each(sizes), onward(self.means.progress)
        self._workshop, self._usual = Workshop(case), usual_protocol(case.problem, case.profile)

    def _shares(self, size: int) -> bool:
        """Whether programs for several sizes are tried at a size."""
        return not self.alone or (self.outlook is not None and self.case.is_usual(size))

    def search(self, place: int, turn: int) -> None:
        """Search for a size, in its turn of those that are served."""
        begun, size = turn * self._span, self.case.sizes[place]
        shared = Wish(usual=self._usual, rounds=self.case.profile.rounds)
        own = replace(shared, size=size)
        self.spent[place] = self._explore(place, shared if self._shares(size) else own, begun)
        if self.outlook is not None:
            self._improve(place, own, begun, self.outlook)
        elif self._twice:
            self._explore(place, own, begun + self.budget)

    @property
    def _span(self) -> int:
        """What a size counts for in the progress."""
        return 2 * self.budget if self._twice else self.budget

    def _explore(self, place: int, wish: Wish, begun: int) -> bool:
        """Try the algorithms and neighbours; return whether the budget ended that."""
        means = self._means(begun, self.budget, self.budget)
        searcher = self._searcher(place, means, ())
        Quest(wish, searcher, free_roots=False).explore(self.algorithms)
        self.found = self.found | searcher.found
        return searcher.is_spent()

    def _improve(self, place: int, wish: Wish, begun: int, outlook: Outlook) -> None:
        """Search as the default level does.

        No number limits that, so its part of the progress is not full before it ends.
        """
        floors, free_roots = outlook
        means = self._means(begun + self.budget, None, self.budget - 1)
        searcher = self._searcher(place, means, floors)
        if self._usual not in searcher.protocols:
            return
        quest = Quest(wish, searcher, free_roots)
        quest.begin()
        if searcher.best() is not None:
            quest.improve(LEVELS[DEFAULT_LEVEL])
        self.found = self.found | searcher.found

    def _means(self, begun: int, budget: int | None, most: int) -> Means:
        """Return the means of a part that counts for `most` of the progress, of which is begun."""
        told = _part(self._told, begun, most, len(self.served) * self._span)
        return replace(self.means, budget=budget, progress=told)

    def _searcher(self, place: int, means: Means, floors: Floors) -> Searcher:
        """Return a searcher for a size; without floors, it simulates what is far too slow, too."""
        one = replace(self.case, sizes=self.case.sizes[place : place + 1])
        return Searcher(
            *(self._workshop, self._objectives[place], means, usable_protocols(one)),
            floors=floors,
            known=Known(self.found, self._times),
            shows_all=not floors,
        )

    def complete(self) -> None:
        """Add the times of winners at other sizes that they may serve."""
        case, times, found = self.case, self._times, self.found
        few = case.profile.max_files is not None
        most, asked = Limit(times.of_use(few=few)), list[tuple[Asked]]()
        for winner in times.winners(found.values()):
            limit = most.without(winner.seconds, case.tried(winner.plan.protocol))
            if not limit.holds(winner):
                asked.append(((winner.plan, limit),))
        more = self.means.workers.run(self._workshop.measure, asked)
        self.found = found | {m.plan: m.beside(found[m.plan]) for (m,) in more}


def _outlook(case: Case) -> Outlook:
    """Return the floors at all sizes, and whether free roots gain: what `Quest` is told."""
    from colsynth.bounds.optimum import best_optimum

    optimum = best_optimum(case.problem)
    floors = runtime_bounds(case.problem, case.profile, optimum, case.sizes, case.model)
    return floors, gains_by_free_roots(optimum)


def _part(told: Progress | None, begun: int, most: int, total: int) -> Progress | None:
    """Return what tells the progress of one search of several: `begun` before, at `most` in it."""
    if told is None:
        return None
    return lambda what, done, _: told(what, begun + min(done, most), total)
