"""Entry points of the search: the best plan of a request, or the best plans at every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from colsynth.bounds.runtime import RuntimeBound, runtime_bounds
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
    """

    measured: tuple[Measured, ...]
    spent: tuple[bool, ...]


def find_each(case: Case, algorithms: Sequence[str], means: Means) -> Explored:
    """Return all results of a search for the best plan at every size.

    Every size is searched for as if it were the only one, so its best plan does not depend on
    the other sizes. What a search finds is not made again by the next one, but counts as if.
    Where all algorithms are tried and no budget is given, what the default level finds for the
    size is among the results. No search is made for a size that no file can serve.

    Parameters
    ----------
    case : Case
    algorithms : sequence of str
        Starting points, each with all protocols.
    means : Means
        Its budget is that of every size; None: that of the highest level.

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
    workshop, found, spent = Workshop(case), dict[Plan, Measured](), [False] * len(case.sizes)
    usual = usual_protocol(case.problem, case.profile)
    wish = Wish(usual=usual, rounds=case.profile.rounds)
    every = algorithm_names(case.problem, profile=case.profile)
    times = LeastTimes([size in served for size in case.sizes])
    outlook = _outlook(case) if means.budget is None and set(algorithms) >= set(every) else None
    span = budget if outlook is None else 2 * budget
    total = span * len(served)
    told = onward(means.progress)
    objectives = Objective.each(case.sizes)
    for turn, place in enumerate(i for i, size in enumerate(case.sizes) if size in served):
        begun, objective = turn * span, objectives[place]
        own = replace(means, budget=budget, progress=_part(told, begun, budget, total))
        protocols = usable_protocols(replace(case, sizes=case.sizes[place : place + 1]))
        searcher = Searcher(
            workshop, objective, own, protocols, known=Known(found, times), shows_all=True
        )
        Quest(wish, searcher, free_roots=False).explore(tuple(algorithms))
        found = found | searcher.found
        spent[place] = searcher.is_spent()
        if outlook is not None and usual in protocols:
            floors, free_roots = outlook
            # No number limits this one, so its part is not full before it ends.
            rest = _part(told, begun + budget, budget - 1, total)
            free = replace(means, budget=None, progress=rest)
            again = Searcher(
                workshop, objective, free, protocols, floors=floors, known=Known(found, times)
            )
            quest = Quest(replace(wish, size=case.sizes[place]), again, free_roots)
            quest.begin()
            if again.best() is not None:
                quest.improve(LEVELS[DEFAULT_LEVEL])
            found = found | again.found
    if case.profile.max_files is not None:
        found = _completed(workshop, times, found, means)
    return Explored(tuple(found.values()), tuple(spent))


def _completed(
    workshop: Workshop, times: LeastTimes, found: dict[Plan, Measured], means: Means
) -> dict[Plan, Measured]:
    """Return the results with the times of winners at other sizes that they may serve."""
    most, asked = Limit(times.compromises()), list[tuple[Asked]]()
    for winner in times.winners(found.values()):
        limit = most.without(winner.seconds, workshop.case.tried(winner.plan.protocol))
        if not limit.holds(winner):
            asked.append(((winner.plan, limit),))
    more = {m.plan: m.beside(found[m.plan]) for (m,) in means.workers.run(workshop.measure, asked)}
    return found | more


def _outlook(case: Case) -> tuple[tuple[RuntimeBound, ...], bool]:
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
