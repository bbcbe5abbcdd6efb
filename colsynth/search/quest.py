"""A search in progress: where it begins, and which work it does in which order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from colsynth.bounds.runtime import Optimum, runtime_bounds
from colsynth.model.problem import PHASES
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.search.case import Case, usable_protocols
from colsynth.search.exact import try_exact
from colsynth.search.found import refusals
from colsynth.search.hopeless import is_hopeless
from colsynth.search.hops import hops_of
from colsynth.search.kinds import gains_by_free_roots, is_fabric
from colsynth.search.least_times import Known
from colsynth.search.levels import (
    BASELINES,
    BEHIND,
    LAST,
    LATE,
    LEVELS,
    OTHER_PATTERNS,
    RELAYED,
    TIMED,
    Level,
    first_algorithms,
    other_algorithms,
    varied,
)
from colsynth.search.means import Means
from colsynth.search.measured import Measured
from colsynth.search.neighbours import Alternatives
from colsynth.search.objective import Objective
from colsynth.search.plan import Plan
from colsynth.search.rivals import rivals
from colsynth.search.searcher import Searcher
from colsynth.search.sharing import Sharing
from colsynth.search.timed import needless, with_chunks
from colsynth.search.variants import COPIED
from colsynth.search.wish import Wish, algorithm_names, or_longer
from colsynth.search.workshop import Workshop
from colsynth.synthesis.baselines.build_relays import fewer_peers
from colsynth.synthesis.baselines.rails import meets

_PATTERNS_SHARE = 8
"""Part of the budget that is left for fixed patterns."""
_TREES, _GRID = "pack-trees.trees", "pack-trees.grid"


@dataclass(frozen=True)
class Quest:
    """A search in progress for the best plan of a wish.

    Parameters
    ----------
    wish : Wish
    searcher : Searcher
    free_roots : bool
        Whether the bound of an allreduce is better with free roots.
    optimum : Fraction or None
        Bytes per second that no schedule beats, if that is known.
    rival : Measured or None
        The best plan of another search, if that may end this one.
    """

    wish: Wish
    searcher: Searcher
    free_roots: bool
    optimum: Fraction | None = None
    rival: Measured | None = None

    @classmethod
    def of(
        cls, workshop: Workshop, objective: Objective, wish: Wish, means: Means, optimum: Optimum
    ) -> Quest:
        """Return a search that has not begun, given the bound of the links."""
        case = workshop.case
        protocols: tuple[str, ...] = (wish.protocol or wish.usual,)
        if LEVELS[wish.level].sweep and wish.protocol is None:
            protocols = usable_protocols(case)
        least = runtime_bounds(case.problem, case.profile, optimum, case.sizes, case.model)
        searcher = Searcher(workshop, objective, means, protocols, wish.pinned, least)
        return cls(wish, searcher, gains_by_free_roots(optimum), optimum.algbw)

    @property
    def _case(self) -> Case:
        return self.searcher.workshop.case

    def begin(self) -> None:
        """Try the first algorithms until one gives a program."""
        names = self._first()
        for name in names:
            self.searcher.try_all([tuple(self.starts(name))])
            if self.searcher.best() is not None:
                return
        if self.wish.algorithm is None:
            self.searcher.try_all(self._others())

    def _first(self) -> tuple[str, ...]:
        if self.wish.algorithm is not None:
            return (self.wish.algorithm,)
        names = first_algorithms(self._case.problem.collective)
        allowed = tuple(name for name in names if self.wish.allows(name))
        return allowed or tuple(filter(self.wish.allows, ALGORITHMS))[:1] or names

    def starts(self, name: str) -> Iterator[Plan]:
        """Yield the plans of an algorithm in order of preference; the first that fits is taken."""
        start = self.wish.start(name)
        free = self.free_roots and name == "forest" and self.wish.allows("roots")
        if free and not str(self.wish.settings.get("trees", "auto")).isdigit():
            yield self.wish.start("roots")
        plans = tuple(self.counted(start))
        yield from plans
        for grid in self._grids(start):
            for plan in plans:
                yield from plan.with_each([{_GRID: grid}])
        if name == RELAYED:
            yield from start.with_each(fewer_peers(self._case.problem))
        yield from self.wish.starts(name)[1:]
        yield from self.wish.fewer(name)
        yield from self.wish.in_two_shots(name, self._case)

    def _grids(self, plan: Plan) -> Iterator[str]:
        """Yield grids with fewer neighbours for each GPU behind a switch, if that is open."""
        problem = self._case.problem
        is_open = plan.values().get(_GRID) == "all" and "grid" not in self.wish.settings
        if is_open and not problem.groups and problem.collective in PHASES:
            from colsynth.synthesis.forest.grid import few_neighbours

            yield from few_neighbours(problem.topology)

    def counted(self, plan: Plan) -> Iterator[Plan]:
        """Yield a plan once for each number of trees worth trying, if it leaves the number open."""
        if plan.values().get(_TREES) != "auto" or self._case.problem.groups:
            yield plan
            return
        from colsynth.synthesis.forest.rate import candidates

        if self._case.problem.collective not in PHASES:
            yield plan  # making it raises the error
            return
        with self.searcher.workshop.clock.measure("choose-trees"):
            counts = candidates(self._case.problem)
        yield from plan.with_each({_TREES: str(count)} for count in counts)

    def _others(self) -> list[Alternatives]:
        """Return the defaults of the algorithms that were not tried, but for hopeless ones."""
        known = algorithm_names(self._case.problem, profile=self._case.profile)
        others = other_algorithms(tuple({plan.algorithm for plan in self.searcher.found}))
        allowed = (name for name in others if self.wish.allows(name) and name in known)
        promising = [
            name for name in allowed if not is_hopeless(name, self.searcher, self.wish.size)
        ]
        return [
            (plan, *self.wish.in_two_shots(name, self._case))
            for name in promising
            for plan in self.wish.starts(name)
        ]

    def _try_others(self) -> None:
        """Try all other algorithms, with all protocols, then variants with the best of these.

        But relays, which are varied by themselves later (`rivals`): in front, they would keep trees
        and timed schedules from being varied, of which one may be faster then.
        """
        searcher = self.searcher
        others = [row for row in self._others() if row[0].algorithm != RELAYED]
        searcher.try_all(others)
        searcher.vary_protocol({plan.algorithm for row in others for plan in row})
        if not searcher.is_near():
            found, objective = searcher.found.values(), searcher.objective
            floor = searcher.floors[objective.main]
            least = {floor.protocol}.intersection(searcher.protocols)
            best = searcher.best()
            seconds = best.seconds[objective.main] if best else None
            hops = hops_of(self._case, floor, inf if seconds is None else seconds)
            before, problem = searcher.work, self._case.problem
            searcher.try_all(self.wish.variants_of(self._case, found, objective, hops, *least))
            if searcher.most_work is not None and meets(problem):
                # The further ones take no work from others: by msccl, a ring of 1 GiB on four DGX
                # H100 would be left without a second copy, 1.6 % slower.
                searcher.most_work += searcher.work - before

    def improve(self, level: Level) -> None:
        """Do the additional work of a level."""
        searcher = self.searcher
        several = len(searcher.protocols) > 1
        searcher.most_evaluations = searcher.means.budget  # not what the level below had left
        searcher.most_work = level.work * self._case.problem.topology.size * (1 + several)
        anything = self.wish.algorithm is None
        if level.sweep and searcher.best(TIMED) is not None:
            searcher.try_all([(plan,) for plan in self.wish.starts(TIMED)])
        with self._shared(level, wanted=anything and not searcher.is_near()):
            if level.sweep:
                self.sweep(anything=anything)
                if anything and (not searcher.is_near() or is_fabric(self._case.problem)):
                    self._try_rivals()
            if level.everything and anything:
                searcher.most_evaluations = searcher.means.budget
                try_exact(searcher, self.wish)
            if level.evaluations:
                limits = searcher.means.budget, searcher.evaluations + level.evaluations
                searcher.most_evaluations = min(limit for limit in limits if limit is not None)
                if level.everything and anything:
                    self._compare_all(searcher.most_evaluations - searcher.evaluations)
                searcher.climb()

    @contextmanager
    def _shared(self, level: Level, *, wanted: bool) -> Iterator[None]:
        """Have a copy of this process share the work of the block, if that is allowed."""
        searcher, before = self.searcher, self.searcher.means
        if not before.beside or not (wanted or level.evaluations):
            yield
            return

        def work() -> None:
            searcher.means = replace(searcher.means, progress=None)
            if level.sweep and wanted:
                self._in_other_order()
            sharing.serve()

        sharing = Sharing(searcher.workshop, searcher.objective, searcher.best(), work)
        searcher.means = replace(before, beside=False, sharing=sharing)
        with sharing:
            yield
        searcher.means = before

    def _in_other_order(self) -> None:
        """Do the work of `improve` that may be needed in another order, beside its first part."""
        self._try_others()
        if self.searcher.most_evaluations is None:
            self._try_rivals()
        self.sweep(anything=True)

    def _try_rivals(self) -> None:
        """Search among other trees and timed schedules, each for itself.

        Choices that suit many trees mislead few.
        """
        searcher, rooted = self.searcher, self._case.problem.collective.rooted
        searcher.try_all(with_chunks(searcher, self.wish, self.optimum))
        starts = tuple(rivals(searcher, self.wish, self.starts, free_roots=self.free_roots))
        for start in starts:
            budget = searcher.most_evaluations
            left = None if budget is None else budget - searcher.evaluations
            if left == 0:
                return
            other = Searcher(
                *(searcher.workshop, searcher.objective),
                *(searcher.means.within(searcher.evaluations, left), searcher.protocols),
                *(searcher.pinned | start.pinned, searcher.floors),
                known=Known({**searcher.known, **searcher.found}),
            )
            other.most_work = searcher.most_work
            other.try_all([start.plans])
            found, best = other.best(), self._best_known()
            if found and (best is None or searcher.ratio(found, best) <= start.within):
                rival = None if rooted else best  # few trees take little work
                Quest(self.wish, other, free_roots=False, rival=rival).sweep(anything=False)
            searcher.take([m for found, m in other.found.items() if found not in searcher.found])

    def _best_known(self) -> Measured | None:
        """Return the best result; a copy of this process looks at the other's results, too."""
        best, sharing = self.searcher.best(), self.searcher.means.sharing
        return best if sharing is None else sharing.best_known(best)

    def _compare_all(self, most: int) -> None:
        """Search as `find_each` does, as if nothing were known; what is new counts once.

        So the highest level is never slower than what `compare` finds at a size.
        """
        searcher, size = self.searcher, self.wish.size
        known = algorithm_names(self._case.problem, profile=self._case.profile)
        names = tuple(filter(self.wish.allows, known))
        if most < 1:
            return
        apart = searcher.means.within(searcher.evaluations, most)
        other = Searcher(
            *(searcher.workshop, searcher.objective, apart, searcher.protocols, searcher.pinned),
            known=Known(searcher.found),
        )
        shares = size is not None and self._case.is_usual(size)
        wish = replace(self.wish, size=None) if shares else self.wish
        Quest(wish, other, free_roots=False).explore(names)
        searcher.take([m for plan, m in other.found.items() if plan not in searcher.found])

    def explore(self, names: tuple[str, ...]) -> None:
        """Begin with algorithms, each with all protocols; then try neighbours of the best."""
        searcher, serving = self.searcher, names
        searcher.most_work = LEVELS[-1].work * self._case.problem.topology.size
        for protocol in searcher.protocols:
            starts = [tuple(self.starts(name)) for name in serving]
            starts += [
                or_longer(plan)
                for name in serving
                for plan in self.wish.every_variant(name, self._case)
            ]
            searcher.try_all([tuple(replace(x, protocol=protocol) for x in row) for row in starts])
            left_out = refusals(searcher.found.values())
            serving = tuple(name for name in serving if name not in left_out)
        searcher.sweep(names)
        searcher.climb()

    def _sweep_patterns(self) -> None:
        """Vary the best pattern of libraries too, of our own, and all pairs, where they are close.

        One alone may hide the other: a ring gains by copies what rails gain by joined sums, and
        what all pairs have gained already. They take little work, for which there is some where
        trees have spent all: without, a reduce-scatter of 1 GiB by msccl on a DGX-2 is 3 % slower.
        """
        searcher = self.searcher
        if searcher.most_work is not None:
            left = searcher.work + searcher.most_work // _PATTERNS_SHARE
            searcher.most_work = max(searcher.most_work, left)
        libraries = tuple(name for name in BASELINES if name != COPIED)
        for names in (libraries, OTHER_PATTERNS, (COPIED,)):
            rival = searcher.best(*names)
            if rival and searcher.ratio(rival, searcher.best() or rival) <= self._case.close:
                searcher.sweep(names)

    def sweep(self, *, anything: bool) -> None:
        """Vary the first algorithm; try the others too if the best is far from the floor.

        Choices are not varied once more from where they led to, if the best is far behind the rival
        by then (`BEHIND`).

        The protocol of the floor comes first, since another may lead until trees carry segments:
        an allreduce of 1 GiB by rccl on three DGX A100 takes 13 s so, 20 s otherwise.
        """
        searcher, later = self.searcher, LATE if anything else ()
        searcher.vary_protocol(only=searcher.floors[searcher.objective.main].protocol)
        searcher.sweep(varied(), later)
        best = searcher.best()
        if best and self.rival and searcher.ratio(best, self.rival) > BEHIND:
            return
        searcher.vary_protocol()
        searcher.sweep(varied(), later)
        if anything and searcher.best() is not None and not searcher.is_near():
            self._try_others()
            searcher.vary_protocol()
            but = needless(searcher.best(), searcher.workshop, self.optimum)
            searcher.sweep(tuple(ALGORITHMS), but)
            self._sweep_patterns()
        searcher.vary_protocol()
        searcher.sweep(varied(), only=LAST)
