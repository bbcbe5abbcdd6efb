"""Who holds and who wants each chunk of a collective, phase by phase.

Derived from the problem and the numbering of chunks in `colsynth.model.timed` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Collective, Demand, Direction, Problem, TimedSchedule
from colsynth.verify.timed_names import failure

Ints = NDArray[np.int64]

NOBODY = 0
"""The set without ranks: of chunks that do not move in a phase."""


_WHOLE = (Collective.BROADCAST, Collective.REDUCE)
"""Collectives whose message is the root's, in `chunks_per_gpu` chunks."""


@dataclass(frozen=True, eq=False)
class Need:
    """One phase: conditions of every chunk before and after it.

    Parameters
    ----------
    direction : Direction
    before, after : int64 (chunks,)
        Set of ranks that hold the chunk (or a contribution to it), and that want it.
        `NOBODY` for both where the chunk does not move.
    first, members : int64
        The sets: s holds ``members[first[s]:first[s + 1]]``. The set of rank r alone is
        r + 1.
    """

    direction: Direction
    before: Ints
    after: Ints
    first: Ints
    members: Ints

    @property
    def final(self) -> Ints:
        """The rank that keeps the sum of each chunk, -1 where the chunk does not move."""
        return self.after - 1

    def holds(self, rank: int, chunk: int) -> bool:
        """Whether a rank has a chunk, or a contribution to it, before the phase."""
        chosen = int(self.before[chunk])
        return rank in self.members[self.first[chosen] : self.first[chosen + 1]]


class _Sets:
    """Sets of ranks, numbered: nobody, every rank alone, then others as they come."""

    def __init__(self, ranks: int) -> None:
        self._others: list[tuple[int, ...]] = []
        self._ranks = ranks

    def number(self, members: tuple[int, ...]) -> int:
        """Return the number of a set."""
        if not members:
            return NOBODY
        if len(members) == 1:
            return members[0] + 1
        self._others.append(members)
        return self._ranks + len(self._others)

    def arrays(self) -> tuple[Ints, Ints]:
        """Return the sets one after the other: (first, members)."""
        sizes = [0] + [1] * self._ranks + [len(members) for members in self._others]
        first = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=first[1:])
        parts = [np.arange(self._ranks, dtype=np.int64)]
        parts += [np.array(members, np.int64) for members in self._others]
        return first, np.concatenate(parts)


_Conditions = dict[Direction, tuple[Ints, Ints]]
"""Sets before and after, for the phases that some chunks move in."""


def needs(schedule: TimedSchedule) -> tuple[Need, ...]:
    """Return the conditions of every phase that the problem calls for.

    Raises
    ------
    VerificationError
        CS510 when the problem is not one, or `chunks` or `chunk_bytes` are not what it,
        the size and the chunks per GPU say.
    """
    problem, each = schedule.problem, schedule.chunks_per_gpu
    if each < 1 or schedule.size < 1:
        raise failure("CS510", f"{schedule.size} bytes in {each} chunks per GPU are no message")
    _check_problem(problem)
    whole = problem.collective in _WHOLE
    if problem.collective is Collective.CUSTOM:
        counts = [demand.count * each for demand in problem.demands]
        shares = {sum(counts)}
    else:
        counts = [_count(problem, members, each) for members in problem.members]
        shares = {each if whole else len(members) * each for members in problem.members}
    _check_figures(schedule, sum(counts), shares)  # before anything of their size is made
    sets = _Sets(problem.topology.size)
    if problem.collective is Collective.CUSTOM:
        parts = _custom(problem.demands, each, sets)
    else:
        parts = [_group(problem, members, each, sets) for members in problem.members]
    first, members = sets.arrays()
    joined = _joined(parts)
    return tuple(
        Need(direction, *joined[direction], first, members)
        for direction in (Direction.IN, Direction.OUT)
        if direction in joined
    )


def _count(problem: Problem, members: tuple[int, ...], each: int) -> int:
    """Return the number of chunks of one group."""
    size = len(members)
    if problem.collective in _WHOLE:
        return each
    return each * size * (size if problem.collective is Collective.ALLTOALL else 1)


def _chunks(part: _Conditions) -> int:
    return max(before.size for before, _ in part.values())


def _joined(parts: list[_Conditions]) -> _Conditions:
    """Return the conditions of all chunks; those of other phases stand still."""
    found = [d for d in Direction if any(d in part for part in parts)]
    joined: _Conditions = {}
    for direction in found:
        columns = []
        for part in parts:
            still = np.full(_chunks(part), NOBODY, np.int64)
            columns.append(part.get(direction, (still, still)))
        before, after = (np.concatenate(column) for column in zip(*columns, strict=True))
        joined[direction] = before, after
    return joined


_ALL, _ROOT, _OWNER, _SENDER, _RECEIVER = range(5)
"""Who holds or wants a chunk: all members, the root, the member it belongs to, or one of
the two that it goes between."""

_WHO: dict[Collective, tuple[tuple[Direction, int, int], ...]] = {
    Collective.ALLGATHER: ((Direction.OUT, _OWNER, _ALL),),
    Collective.REDUCE_SCATTER: ((Direction.IN, _ALL, _OWNER),),
    Collective.ALLREDUCE: ((Direction.IN, _ALL, _OWNER), (Direction.OUT, _OWNER, _ALL)),
    Collective.BROADCAST: ((Direction.OUT, _ROOT, _ALL),),
    Collective.REDUCE: ((Direction.IN, _ALL, _ROOT),),
    Collective.SCATTER: ((Direction.OUT, _ROOT, _OWNER),),
    Collective.GATHER: ((Direction.OUT, _OWNER, _ROOT),),
    Collective.ALLTOALL: ((Direction.OUT, _SENDER, _RECEIVER),),
}
"""Phases of each collective: who has its chunks before and after."""


def _group(problem: Problem, members: tuple[int, ...], each: int, sets: _Sets) -> _Conditions:
    """Return the conditions of the chunks of one group."""
    count = _count(problem, members, each)
    ranks = np.array(members, np.int64) + 1
    everyone = sets.number(tuple(sorted(members)))

    def column(who: int) -> Ints:
        if who == _ALL:
            return np.full(count, everyone)
        if who == _ROOT:
            return np.full(count, ranks[problem.root or 0])
        if who == _SENDER:
            return np.repeat(ranks, count // ranks.size)
        return np.resize(np.repeat(ranks, each), count)

    conditions: _Conditions = {}
    for direction, before, after in _WHO[problem.collective]:
        pair = column(before), column(after)
        conditions[direction] = _moving(*pair) if direction is Direction.OUT else pair
    return conditions


def _moving(before: Ints, after: Ints) -> tuple[Ints, Ints]:
    """Return the conditions with chunks that are already where they are wanted at rest."""
    rest = before == after
    return np.where(rest, NOBODY, before), np.where(rest, NOBODY, after)


def _custom(demands: tuple[Demand, ...], each: int, sets: _Sets) -> list[_Conditions]:
    parts: list[_Conditions] = []
    for demand in demands:
        before, after = sets.number(demand.holders), sets.number(demand.wanted)
        if not demand.reduces and set(demand.wanted) <= set(demand.holders):
            before = after = NOBODY
        column = np.ones(demand.count * each, np.int64)
        direction = Direction.IN if demand.reduces else Direction.OUT
        parts.append({direction: (before * column, after * column)})
    return parts


def _check_problem(problem: Problem) -> None:
    """Refuse ranks that do not exist or come twice: arrays are indexed by them."""
    size = problem.topology.size
    named = [*problem.members]
    for demand in problem.demands:
        named += [demand.holders, demand.wanted]
        if demand.count < 1 or not demand.holders or (demand.reduces and len(demand.wanted) != 1):
            raise failure("CS510", f"the problem asks for something impossible: {demand}")
    for ranks in named:
        if len(set(ranks)) != len(ranks) or not all(0 <= rank < size for rank in ranks):
            raise failure("CS510", f"the problem names ranks {ranks} of {size}")
    for members in problem.members:
        if not members or (problem.root is not None and not 0 <= problem.root < len(members)):
            raise failure("CS510", f"the group {members} has no root {problem.root}")
    if len({rank for members in problem.members for rank in members}) != sum(
        len(members) for members in problem.members
    ):
        raise failure("CS510", "a rank is in two groups of the problem")
    if problem.collective.rooted != (problem.root is not None):
        raise failure("CS510", f"the root of the {problem.collective} is {problem.root}")
    if (problem.collective is Collective.CUSTOM) != bool(problem.demands):
        raise failure("CS510", f"a {problem.collective} with {len(problem.demands)} demands")


def _check_figures(schedule: TimedSchedule, chunks: int, shares: set[int]) -> None:
    """Compare number and size of chunks; `shares` says how many of them are the message."""
    if schedule.chunks != chunks:
        raise failure("CS510", f"the schedule has {schedule.chunks} chunks, its problem {chunks}")
    for share in sorted(shares):
        size = Fraction(schedule.size, share)
        if schedule.chunk_bytes != size:
            text = f"a chunk has {schedule.chunk_bytes} bytes"
            raise failure("CS510", f"{text}, {schedule.size} bytes in {share} chunks make {size}")
