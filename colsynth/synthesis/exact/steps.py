"""The steps model: routing, order and batches of chunks in one integer program.

In step s, a link that passes n chunks is busy for moving * n units behind the latency of their
hop, so the step lasts at least lag + moving * n; the sum of all steps is minimal. A chunk that
arrives in a step can be sent on from the next one (SCCL, arXiv 2008.08708, for links unlike each
other). Equal choices by symmetry share one variable.

One worker, a fixed seed and a limit in the solver's own units of work: equal questions have
equal answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.kernels.distances import FAR
from colsynth.synthesis.exact.instance import Instance

Ints = NDArray[np.int64]


class Sent(NamedTuple):
    """A chunk that takes a hop in a step."""

    step: int
    chunk: int
    hop: int


@dataclass(frozen=True)
class Answer:
    """What the solver says.

    Parameters
    ----------
    status : str
        ``"optimal"``, ``"feasible"``, ``"infeasible"`` or ``"unknown"``.
    sent : tuple of Sent
    units : int
        The sum of all steps, or the rounds of SCCL's question.
    bound : int
        Units that no schedule of so many steps beats.
    work : float
        What the solver did, in its deterministic units.
    choices : int
        (Chunk, hop) pairs of a model without steps.
    """

    status: str
    sent: tuple[Sent, ...] = ()
    units: int = 0
    bound: int = 0
    work: float = 0.0
    choices: int = 0


@dataclass(frozen=True)
class Question:
    """How to ask.

    Parameters
    ----------
    steps : int
        Most steps.
    work : float
        Limit, in the solver's deterministic units; about a second each.
    seed : int
    least : int
        Units that some bound asks for.
    below : int
        Units that the best schedule of fewer steps takes, proven; 0 where that is not known. Only
        shorter ones are asked for, and they use every step.
    hint : sequence of Sent
        A schedule to begin with; empty for none.
    rounds : tuple of int, optional
        Lanes of every link: links pass at most so many chunks per round, steps have whole
        rounds, and their sum is `total` (SCCL's question). Latencies do not count.
    total : int
        Rounds of all steps.
    """

    steps: int
    work: float = 10.0
    seed: int = 0
    least: int = 0
    below: int = 0
    hint: Sequence[Sent] = ()
    rounds: tuple[int, ...] | None = None
    total: int = 0


def distances(asked: Instance) -> Ints:
    """Return the fewest hops from a holder of each chunk to every GPU, (C, N)."""
    source, target = asked.hops.source, asked.hops.target
    found = np.full((asked.chunks, asked.gpus), FAR, np.int64)
    use = np.ones((asked.chunks, len(asked.hops)), np.bool_)
    for c, h in asked.barred:
        use[c, h] = False
    for c, holders in enumerate(asked.holders):
        found[c, list(holders)] = 0
    for c in range(asked.chunks):
        mine, row = np.flatnonzero(use[c]), found[c]
        while True:
            after = row.copy()
            np.minimum.at(after, target[mine], row[source[mine]] + 1)
            if np.array_equal(after, row):
                break
            row[:] = after
    return found


def span(asked: Instance) -> Ints:
    """Return how long a chunk takes over every hop, (H,) in units."""
    return np.maximum.reduceat(asked.moving[asked.hops.links], asked.hops.first[:-1]) + asked.lag


def fewest_steps(asked: Instance) -> int:
    """Return the steps that the farthest wanted chunk needs."""
    near = distances(asked)
    return max(int(near[c, list(wanted)].max()) for c, wanted in enumerate(asked.wanted))


def solver_of(cp: Any, model: Any, question: Any) -> tuple[Any, str, float]:
    """Return the solver after a question within its limits, its word, and the work it did."""
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = question.seed
    solver.parameters.max_deterministic_time = question.work
    status = solver.solve(model)
    words = {cp.OPTIMAL: "optimal", cp.FEASIBLE: "feasible", cp.INFEASIBLE: "infeasible"}
    return solver, words.get(status, "unknown"), solver.response_proto.deterministic_time


class Steps:
    """The model of one question.

    Parameters
    ----------
    asked : Instance
    question : Question
    """

    def __init__(self, asked: Instance, question: Question) -> None:
        self._asked, self._question = asked, question
        from ortools.sat.python import cp_model

        self._cp: Any = cp_model
        self._model = self._cp.CpModel()
        self._sends: dict[tuple[int, int], Any] = {}
        self._there: dict[tuple[tuple[int, ...], int], Any] = {}
        self._uses = self._choices()
        for use in self._uses:
            key = int(asked.same[use.chunk, use.hop]), use.step
            if key not in self._sends:
                self._sends[key] = self._model.new_bool_var("")
        self._arrivals()
        self._lasting = self._durations()

    def _choices(self) -> list[Sent]:
        """Return each (chunk, hop, step) that may be."""
        asked, steps = self._asked, self._question.steps
        near = distances(asked)
        source, target = asked.hops.source.tolist(), asked.hops.target.tolist()
        uses = []
        for c in range(asked.chunks):
            for h, (u, v) in enumerate(zip(source, target, strict=True)):
                if v in asked.holders[c] or (c, h) in asked.barred:
                    continue
                last = steps if v in asked.wanted[c] else steps - 1
                uses += [Sent(s, c, h) for s in range(int(near[c, u]), last)]
        return uses

    def _variable(self, use: Sent) -> Any:
        return self._sends[int(self._asked.same[use.chunk, use.hop]), use.step]

    def _arrivals(self) -> None:
        """Every wanted chunk arrives once, others at most once, and leaves only after that."""
        asked, model = self._asked, self._model
        into: dict[tuple[int, int], list[Sent]] = {}
        target, source = asked.hops.target.tolist(), asked.hops.source.tolist()
        for use in self._uses:
            into.setdefault((use.chunk, target[use.hop]), []).append(use)
        done: set[tuple[tuple[tuple[int, int], ...], bool]] = set()
        for (c, v), uses in sorted(into.items()):
            names = tuple(sorted((int(asked.same[c, x.hop]), x.step) for x in uses))
            wanted = v in asked.wanted[c]
            if (names, wanted) not in done:
                done.add((names, wanted))
                literals = [self._variable(x) for x in uses]
                (model.add_exactly_one if wanted else model.add_at_most_one)(literals)
        after = set()
        for use in self._uses:
            u = source[use.hop]
            key = int(asked.same[use.chunk, use.hop]), use.step
            if u in asked.holders[use.chunk] or key in after:
                continue
            after.add(key)
            here = self._held(into.get((use.chunk, u), []), use.chunk, use.step)
            model.add_implication(self._sends[key], here)

    def _held(self, uses: list[Sent], c: int, step: int) -> Any:
        """Return whether one of some uses lies before a step; those of equal names share it."""
        keys = tuple(
            sorted((int(self._asked.same[c, x.hop]), x.step) for x in uses if x.step < step)
        )
        name = tuple(part for key in keys for part in key), 0
        if name not in self._there:
            literal = self._model.new_bool_var("")
            self._model.add_bool_or([self._sends[key] for key in keys] + [literal.negated()])
            self._there[name] = literal
        return self._there[name]

    def _loads(self) -> dict[tuple[int, int], dict[tuple[int, int], int]]:
        """Return how often each variable counts on (link, step)."""
        asked = self._asked
        hops = asked.hops
        loads: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
        for use in self._uses:
            key = int(asked.same[use.chunk, use.hop]), use.step
            for link in hops.links[hops.first[use.hop] : hops.first[use.hop + 1]].tolist():
                count = loads.setdefault((link, use.step), {})
                count[key] = count.get(key, 0) + 1
        return loads

    def _durations(self) -> list[Any]:
        """Return a variable for every step's length, with what links ask for."""
        asked, question, model = self._asked, self._question, self._model
        most = question.total or int((asked.lag.max() + asked.moving.max() * asked.chunks) * 2)
        lasting = [model.new_int_var(0, most, "") for _ in range(question.steps)]
        lags: dict[tuple[int, int], int] = {
            (int(asked.same[use.chunk, use.hop]), use.step): int(asked.lag[use.hop])
            for use in self._uses
        }
        asked_already = set()
        for (link, step), count in sorted(self._loads().items()):
            load = tuple(sorted(count.items()))
            weight = 1 if question.rounds else int(asked.moving[link])
            lanes = question.rounds[link] if question.rounds else 1
            if (load, weight, lanes) in asked_already:
                continue
            asked_already.add((load, weight, lanes))
            total = sum(weight * n * self._sends[key] for key, n in load)
            if question.rounds:
                model.add(total <= lanes * lasting[step])
                continue
            for lag in sorted({lags[key] for key, _ in load}):
                used = self._used(tuple(key for key, _ in load if lags[key] == lag))
                model.add(total + lag * used <= lasting[step])
        if question.rounds:
            model.add(sum(lasting) == question.total)
            for length in lasting:
                model.add(length >= 1)
        else:
            model.add(sum(lasting) >= question.least)
            model.minimize(sum(lasting))
        if question.below:
            model.add(sum(lasting) < question.below)
            for length in lasting:
                model.add(length >= int(span(asked).min()))
        return lasting

    def _used(self, keys: tuple[tuple[int, int], ...]) -> Any:
        """Return whether any of some variables is chosen."""
        if len(keys) == 1:
            return self._sends[keys[0]]
        literal = self._model.new_bool_var("")
        for key in keys:
            self._model.add_implication(self._sends[key], literal)
        return literal

    def _hint(self) -> None:
        chosen = {(int(self._asked.same[x.chunk, x.hop]), x.step) for x in self._question.hint}
        for key, literal in self._sends.items():
            self._model.add_hint(literal, key in chosen)

    def solve(self) -> Answer:
        """Return the best schedule found within the work allowed."""
        cp, question = self._cp, self._question
        if question.hint:
            self._hint()
        solver, word, work = solver_of(cp, self._model, question)
        if word not in ("optimal", "feasible"):
            return Answer(word, work=work)
        sent = tuple(sorted(use for use in self._uses if solver.boolean_value(self._variable(use))))
        if question.rounds:
            return Answer(word, sent, question.total, question.total, work)
        units, bound = int(solver.objective_value), int(solver.best_objective_bound)
        return Answer(word, sent, units, bound, work)
