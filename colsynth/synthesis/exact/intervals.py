"""The interval model: every chunk takes hops at times of its own, without steps.

Each (chunk, hop) that is used occupies its links for the bytes of one chunk, and no link passes
two chunks at once. A chunk leaves a GPU once it is there. The last arrival is earliest. Latency
is a lag, so the optimum of this model is that of all schedules of these chunks.

It serves sizes at which bandwidth counts, on links unlike each other: there, steps last as long as
their slowest link while the others wait. One worker, a seed and a limit in the solver's own work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.steps import Answer, Sent, solver_of, span

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Timing:
    """How to ask.

    Parameters
    ----------
    work : float
        Limit, in the solver's deterministic units; about a second each.
    least, most : int
        Units that some bound asks for, and that a known schedule takes.
    seed : int
    hint : sequence of Sent
        The known schedule; its steps are the times of starts in units.
    busy : sequence of (int, int, int)
        Link, begin and end in units of times at which other chunks have it.
    """

    work: float
    least: int
    most: int
    seed: int = 0
    hint: Sequence[Sent] = ()
    busy: Sequence[tuple[int, int, int]] = ()


def earliest(asked: Instance) -> Ints:
    """Return when a chunk can be at every GPU at the earliest, (C, N) in units."""
    source, target = asked.hops.source, asked.hops.target
    taken = span(asked)
    never = int(taken.sum()) + 1
    found = np.full((asked.chunks, asked.gpus), never, np.int64)
    for c, (holders, row) in enumerate(zip(asked.holders, found, strict=True)):
        use = np.array([(c, h) not in asked.barred for h in range(len(asked.hops))])
        row[list(holders)] = 0
        before = None
        while before is None or not np.array_equal(before, row):
            before = row.copy()
            np.minimum.at(row, target[use], before[source[use]] + taken[use])
    return found


class Intervals:
    """The model of one question.

    Parameters
    ----------
    asked : Instance
    question : Timing
    """

    def __init__(self, asked: Instance, question: Timing) -> None:
        self._asked, self._question = asked, question
        from ortools.sat.python import cp_model

        self._cp: Any = cp_model
        self._model = cp_model.CpModel()
        self._span = span(asked)
        self._sends: dict[int, tuple[Any, Any]] = {}
        self._uses = self._choices()
        self._links()
        self._arrivals()

    def _choices(self) -> list[tuple[int, int]]:
        """Make literal and start of each (chunk, hop) that may be; return all of them."""
        asked, most = self._asked, self._question.most
        near = earliest(asked)
        left = earliest(replace(asked.turned(), holders=asked.wanted))
        source, target = asked.hops.source.tolist(), asked.hops.target.tolist()
        uses = []
        for c in range(asked.chunks):
            for h, (u, v) in enumerate(zip(source, target, strict=True)):
                first, last = int(near[c, u]), most - int(self._span[h] + left[c, v])
                if v in asked.holders[c] or (c, h) in asked.barred or first > last:
                    continue
                uses.append((c, h))
                key = int(asked.same[c, h])
                if key not in self._sends:
                    start = self._model.new_int_var(first, last, "")
                    self._sends[key] = self._model.new_bool_var(""), start
        return uses

    def _send(self, use: tuple[int, int]) -> tuple[Any, Any]:
        return self._sends[int(self._asked.same[use])]

    def _links(self) -> None:
        """No link passes two chunks at once, and none is busy for longer than there is time."""
        asked, hops, model = self._asked, self._asked.hops, self._model
        self._end = model.new_int_var(self._question.least, self._question.most, "")
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for c, h in self._uses:
            for i in range(int(hops.first[h]), int(hops.first[h + 1])):
                begin = -(-int(hops.begin[i]) // asked.unit)
                rows.setdefault(int(hops.links[i]), []).append((c, h, begin))
        busy: dict[int, list[tuple[int, int]]] = {}
        for link, begin, end in self._question.busy:
            busy.setdefault(link, []).append((begin, end))
        done = set()
        for link, some in sorted(rows.items()):
            taken = tuple(busy.get(link, ()))
            name = tuple(sorted((int(asked.same[c, h]), begin) for c, h, begin in some)), taken
            if name in done:
                continue
            done.add(name)
            moving = int(asked.moving[link])
            passed = [model.new_fixed_size_interval_var(a, b - a, "") for a, b in taken]
            for c, h, begin in some:
                used, start = self._send((c, h))
                passed.append(
                    model.new_optional_fixed_size_interval_var(start + begin, moving, used, "")
                )
            model.add_no_overlap(passed)
            model.add(sum(moving * self._send((c, h))[0] for c, h, _ in some) <= self._end)
        model.minimize(self._end)

    def _arrivals(self) -> None:
        """Every wanted chunk arrives once, others at most once, and leaves only after that."""
        asked, model = self._asked, self._model
        source, target = asked.hops.source.tolist(), asked.hops.target.tolist()
        into: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for c, h in self._uses:
            into.setdefault((c, target[h]), []).append((c, h))
        missing = (
            v not in asked.holders[c] and (c, v) not in into
            for c, some in enumerate(asked.wanted)
            for v in some
        )
        if any(missing):
            model.add_bool_or([])  # no way is short enough
        there: dict[tuple[int, ...], Any] = {}
        for (c, v), uses in sorted(into.items()):
            name = tuple(sorted(int(asked.same[use]) for use in uses))
            wanted = v in asked.wanted[c]
            if name in there:
                continue
            there[name] = model.new_int_var(0, self._question.most, "")
            literals = [self._send(use)[0] for use in uses]
            (model.add_exactly_one if wanted else model.add_at_most_one)(literals)
            for use in uses:
                used, start = self._send(use)
                taken = int(self._span[use[1]])
                model.add(there[name] == start + taken).only_enforce_if(used)
                model.add(start + taken <= self._end).only_enforce_if(used)
        after = set()
        for c, h in self._uses:
            key = int(asked.same[c, h])
            if source[h] in asked.holders[c] or key in after:
                continue
            after.add(key)
            used, start = self._sends[key]
            uses = into.get((c, source[h]), [])
            model.add_bool_or([self._send(use)[0] for use in uses] + [used.negated()])
            if uses:
                name = tuple(sorted(int(asked.same[use]) for use in uses))
                model.add(start >= there[name]).only_enforce_if(used)

    def _hint(self) -> None:
        starts = {int(self._asked.same[x.chunk, x.hop]): x.step for x in self._question.hint}
        for key, (used, start) in self._sends.items():
            self._model.add_hint(used, key in starts)
            if key in starts:
                self._model.add_hint(start, starts[key])

    def solve(self) -> Answer:
        """Return the best schedule found within the work allowed; steps are times of starts."""
        if self._question.hint:
            self._hint()
        solver, word, work = solver_of(self._cp, self._model, self._question)
        if word not in ("optimal", "feasible"):
            return Answer(word, work=work, choices=len(self._uses))
        found = []
        for c, h in self._uses:
            used, start = self._send((c, h))
            if solver.boolean_value(used):
                found.append(Sent(solver.value(start), c, h))
        units, bound = int(solver.objective_value), int(solver.best_objective_bound)
        return Answer(word, tuple(sorted(found)), units, bound, work, len(self._uses))
