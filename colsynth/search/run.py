"""Entry points of the search: the best plan of a request, or the best plans at every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from colsynth.bounds.runtime import RuntimeBound, runtime_bounds
from colsynth.errors import require_least
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.target import usual_protocol
from colsynth.runtimes.selection import usual_size
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

Outlook = tuple[tuple[RuntimeBound, ...], bool]
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
        given = Plan("passes", wish.protocol or wish.usual, wish.passes)
        quest.searcher.try_all([tuple(quest.counted(given))])
    else:
        quest.begin()
        for level in LEVELS[1 : wish.level + 1]:
            if quest.searcher.best() is not None:
                quest.improve(level)
    quest.searcher.try_all([(plan,) for plan in also])
    return found_by(quest.searcher, optimum.algbw)


@dataclass(frozen=True)
class Explored:
    """What searches for the best plan at every size found.

    Parameters
    ----------
    measured : tuple of Measured
        All plans that were tried.
    spent : tuple of bool
        For every size, whether the budget ended the search.
    alone : tuple of tuple of Measured
        For every size, the results of programs that are made for it alone, if that was asked for.
    """

    measured: tuple[Measured, ...]
    spent: tuple[bool, ...]
    alone: tuple[tuple[Measured, ...], ...] = ()


def find_each(
    case: Case, algorithms: Sequence[str], means: Means, *, alone: bool = False
) -> Explored:
    """Return all results of a search for the best plan at every size.

    Every size is searched for as if it were the only one, so its best plan does not depend on
    the other sizes. What a search finds is not made again by the next one, but counts as if.
    Where all algorithms are tried and no budget is given, what the default level finds for the
    size is among the results. No search is made for a size that no file can serve.

    Programs are for messages of all sizes. If asked for, those that the default level finds are
    for one size alone, and so are all for sizes that are not usual, which no others may serve.

    Parameters
    ----------
    case : Case
    algorithms : sequence of str
        Starting points, each with all protocols.
    means : Means
        Its budget is that of every size; None: that of the highest level.
    alone : bool
        Whether there are programs for one size alone.

    Raises
    ------
    InputError
        CS210: the budget is below 1. CS212: no file can serve any of the sizes.
    LimitError
        The runtime serves no such problem.
    """
    budget = LEVELS[-1].evaluations if means.budget is None else means.budget
    require_least("--budget", budget, 1)
    case.target("LL" if "LL" in case.profile.fifo_calls else "Simple")  # raises if none could serve
    served = usable_sizes(case.runtime, case.sizes)
    every = set(algorithm_names(case.problem, profile=case.profile))
    outlook = _outlook(case) if means.budget is None and set(algorithms) >= every else None
    work = _Each(case, algorithms, means, budget, served, outlook, alone and case.size is None)
    for turn, place in enumerate(i for i, size in enumerate(case.sizes) if size in served):
        work.search(place, turn)
    if case.profile.max_files is not None:
        work.complete()
    return Explored(tuple(work.found.values()), tuple(work.spent), tuple(work.alone))


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
        As of `_outlook`; only with one, what the default level finds is among the results.
    makes_alone : bool
        Whether there are programs for one of several sizes alone.
    """

    case: Case
    algorithms: Sequence[str]
    means: Means
    budget: int
    served: tuple[int, ...]
    outlook: Outlook | None
    makes_alone: bool

    def __post_init__(self) -> None:
        case, sizes = self.case, self.case.sizes
        self.found: dict[Plan, Measured] = {}
        self.spent, self.alone = [False] * len(sizes), [tuple[Measured, ...]()] * len(sizes)
        self._shared = [size in self.served and not self._is_apart(size) for size in sizes]
        self._times, self._workshop = LeastTimes(self._shared), Workshop(case)
        self._objectives, self._told = Objective.each(sizes), onward(self.means.progress)
        self._usual = usual_protocol(case.problem, case.profile)
        self._wish = Wish(usual=self._usual, rounds=case.profile.rounds)

    def _is_apart(self, size: int) -> bool:
        """Whether there are only programs for a size alone: people send no such messages."""
        problem = self.case.problem
        usual = usual_size(size, problem.collective, problem.topology.size)
        return self.makes_alone and size != usual

    def search(self, place: int, turn: int) -> None:
        """Search for a size, in its turn of those that are served."""
        span = self.budget if self.outlook is None else 2 * self.budget
        one = replace(self.case, sizes=self.case.sizes[place : place + 1])

        def part(begun: int, most: int) -> Progress | None:
            return _part(self._told, turn * span + begun, most, len(self.served) * span)

        if not self._shared[place]:
            explored = find_each(one, self.algorithms, replace(self.means, progress=part(0, span)))
            self.alone[place], (self.spent[place],) = explored.measured, explored.spent
            return
        own = replace(self.means, budget=self.budget, progress=part(0, self.budget))
        protocols = usable_protocols(one)
        searcher = Searcher(
            *(self._workshop, self._objectives[place], own, protocols),
            known=Known(self.found, self._times),
            shows_all=True,
        )
        Quest(self._wish, searcher, free_roots=False).explore(tuple(self.algorithms))
        self.found = self.found | searcher.found
        self.spent[place] = searcher.is_spent()
        if self.outlook is not None and self._usual in protocols:
            # No number limits these, so their part is not full before they end.
            free = replace(self.means, budget=None, progress=part(self.budget, self.budget - 1))
            self._search_as_default(place, one, free, protocols, self.outlook)

    def _search_as_default(
        self, place: int, one: Case, means: Means, protocols: tuple[str, ...], outlook: Outlook
    ) -> None:
        """Search as the default level does: for files of all sizes, and perhaps of one alone."""
        floors, free_roots = outlook

        def improved(searcher: Searcher) -> dict[Plan, Measured]:
            quest = Quest(replace(self._wish, size=one.size), searcher, free_roots)
            quest.begin()
            if searcher.best() is not None:
                quest.improve(LEVELS[DEFAULT_LEVEL])
            return searcher.found

        where, known = (self._workshop, self._objectives[place]), Known(self.found, self._times)
        shared = Searcher(*where, means, protocols, floors=floors, known=known)
        self.found = self.found | improved(shared)
        if self.makes_alone:
            (objective,), least = Objective.each(one.sizes), floors[place : place + 1]
            own = Searcher(Workshop(one), objective, means, protocols, floors=least)
            self.alone[place] = tuple(improved(own).values())

    def complete(self) -> None:
        """Add the times of winners at other sizes that they may serve."""
        case, times, found = self.case, self._times, self.found
        most, asked = Limit(times.compromises()), list[tuple[Asked]]()
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
