"""Measurements that a copy of this process shares with it, so that each plan is measured once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from colsynth.jobs.shared import Shared
from colsynth.search.measured import Limit, Measured
from colsynth.search.objective import Objective
from colsynth.search.plan import Plan
from colsynth.search.workshop import Asked, Workshop

_Told = tuple[Measured, dict[str, float]]
"""A result, and the seconds that it took by name."""


class Sharing:
    """The work of a search that a copy of this process does too, in its own order.

    Use it as a context. Which process measures a plan depends on the clock, but no result does:
    what may depend on the process is left out of it (`Limit.judged`).

    Parameters
    ----------
    workshop : Workshop
    objective : Objective
    best : Measured or None
        The best result so far.
    work : callable
        What the copy tries, in the hope that this process needs it.
    """

    def __init__(
        self,
        workshop: Workshop,
        objective: Objective,
        best: Measured | None,
        work: Callable[[], None],
    ) -> None:
        self._workshop, self._objective, self._best = workshop, objective, best
        self._shared = Shared[Plan, _Told, Asked](lambda _: work())
        self._mine: dict[Plan, Measured] = {}

    def __enter__(self) -> Sharing:
        self._shared.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._shared.__exit__(*raised)

    def run(self, rows: Sequence[Sequence[Asked]]) -> Iterator[list[Measured]]:
        """Yield for every row the results of its plans up to the first that gives a program.

        Each process begins at another end, and leaves out what the other is measuring. The copy
        has the first: it meets rings, which take longest, before the other process does. It
        measures what that has waiting before its own.
        """
        order = rows if self._shared.is_copy else rows[::-1]
        if not self._shared.is_copy:
            self._shared.wish([row[0] for row in order[1:]])
        waiting = deque((list[Measured](), row) for row in order)
        while waiting:
            self._help()
            free = (i for i, (_, row) in enumerate(waiting) if not self._shared.is_begun(row[0][0]))
            place = next(free, None)
            measured = None if place is None else self._result(*waiting[place][1][0])
            if place is None or measured is None:
                self._shared.wait()
                continue
            done, row = waiting[place]
            done.append(measured)
            if measured.refusal is None or not row[1:]:
                del waiting[place]
                yield done
            else:
                waiting[place] = done, row[1:]

    def best_known(self, own: Measured | None) -> Measured | None:
        """Return the better of a result and, in the copy, those of the other process.

        Only what the copy tries may depend on the clock.
        """
        if not self._shared.is_copy:
            return own
        known = (own, *(told[0] for told in self._shared.results()))
        return self._objective.best(m for m in known if m is not None)

    def serve(self) -> None:
        """Measure what the other process has waiting, until it has no more use for this copy."""
        self._help()
        while self._shared.wait():
            self._help()

    def _help(self) -> None:
        """Measure what the other process has waiting."""
        while (wish := self._shared.wished()) is not None:
            if not self._shared.is_begun(wish[0]):
                self._result(*wish)

    def adopt(self, measured: Measured) -> None:
        """Keep what the passes of a plan gave to the copy, so that they need not run again."""
        values = self._shared.value(measured.plan)
        if values is not None:
            self._workshop.adopt(measured, values)

    def _result(self, plan: Plan, limit: Limit) -> Measured | None:
        """Return the result of a plan; None where both processes have just begun with it."""
        told = self._shared.result(plan)
        if told is not None and limit.holds(told[0]):
            measured, spent = told
            self._workshop.clock.add(spent)
            return measured
        if plan in self._mine and limit.holds(self._mine[plan]):  # as the other process wished
            return self._mine[plan]
        self._shared.begin(plan)
        if self._shared.is_copy and self._shared.is_begun(plan):
            self._shared.leave()  # or the other process, done with it, would wait for this one
            return None
        return self._own(plan, limit)

    def _own(self, plan: Plan, limit: Limit) -> Measured:
        clock = self._workshop.clock
        before = clock.seconds()
        (measured,) = self._workshop.measure([(plan, limit)])
        self._mine[plan] = measured
        more = {name: s - before.get(name, 0.0) for name, s in clock.seconds().items()}
        passes = {item.name for item in plan.pipeline.passes}
        spent = {name: s for name, s in more.items() if s or name in passes}
        known = (m for m in (self._best, measured) if m is not None)
        self._best = self.best_known(self._objective.best(known))
        wanted = self._best is measured or plan in self._workshop.held
        needed = self._shared.is_copy and wanted and measured.refusal is None
        made = self._workshop.made_of(plan) if needed else None
        self._shared.give(plan, (measured, spent), made)
        return measured
