"""Cut demand: how many chunks must pass into and out of a set of GPUs, whatever the schedule.

Reductions mirror copies: what must leave a set there must enter it here, since a sum of
contributions crosses a cut as one chunk. In an allreduce both halves cross every set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Collective, Problem

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class CutDemand(NamedTuple):
    """Chunks that must enter and leave; int64, one per set."""

    entering: Ints
    leaving: Ints


class PhaseDemand(Protocol):
    """The chunks of one phase.

    Attributes
    ----------
    starts, ends : bool (N,)
        Ranks that have something at first, and that want something.
    """

    starts: Flags
    ends: Flags

    def of_each_rank(self) -> CutDemand:
        """Return the demand of every rank by itself, (N,)."""

    def of_ranks(self, inside: Flags) -> CutDemand:
        """Return the demand of one set of ranks, (1,)."""


def cut_demands(problem: Problem, chunks_per_gpu: int) -> tuple[PhaseDemand, ...]:
    """Return the chunks of each phase of a problem, in order."""
    if problem.collective is Collective.CUSTOM:
        return (_Custom(problem, chunks_per_gpu),)
    kinds: tuple[Collective, ...] = (problem.collective,)
    if problem.collective is Collective.ALLREDUCE:
        kinds = (Collective.REDUCE_SCATTER, Collective.ALLGATHER)
    return tuple(_Grouped(problem, kind, chunks_per_gpu) for kind in kinds)


def group_of(problem: Problem) -> Ints:
    """Return the number of each rank's process group, -1 outside all of them."""
    found = np.full(problem.topology.size, -1, np.int64)
    for number, members in enumerate(problem.members):
        found[list(members)] = number
    return found


# Each rule takes the members in the set, all members, and whether the root is in the set;
# it returns what must enter and what must leave for one chunk per GPU.
_Rule = Callable[[Ints, Ints, Flags], tuple[Ints, Ints]]


def _allgather(a: Ints, n: Ints, _: Flags) -> tuple[Ints, Ints]:
    return (n - a) * (a > 0), a * (a < n)


def _alltoall(a: Ints, n: Ints, _: Flags) -> tuple[Ints, Ints]:
    return a * (n - a), a * (n - a)


def _broadcast(a: Ints, n: Ints, rooted: Flags) -> tuple[Ints, Ints]:
    return (~rooted & (a > 0)).astype(np.int64), (rooted & (a < n)).astype(np.int64)


def _scatter(a: Ints, n: Ints, rooted: Flags) -> tuple[Ints, Ints]:
    return np.where(rooted, 0, a), np.where(rooted, n - a, 0)


_RULES: dict[Collective, _Rule] = {
    Collective.ALLGATHER: _allgather,
    Collective.ALLTOALL: _alltoall,
    Collective.BROADCAST: _broadcast,
    Collective.SCATTER: _scatter,
}
_MIRRORED = {
    Collective.REDUCE_SCATTER: Collective.ALLGATHER,
    Collective.REDUCE: Collective.BROADCAST,
    Collective.GATHER: Collective.SCATTER,
}


class _Grouped:
    """The same collective in every process group."""

    def __init__(self, problem: Problem, kind: Collective, chunks: int) -> None:
        self._group = group_of(problem)
        self._sizes = np.array([len(members) for members in problem.members], np.int64)
        self._chunks = chunks
        self._mirrored = kind in _MIRRORED
        self._rule = _RULES[_MIRRORED.get(kind, kind)]
        self._is_root = np.zeros(problem.topology.size, np.bool_)
        self.starts = self.ends = self._group >= 0
        if problem.root is not None:
            self._is_root[[members[problem.root] for members in problem.members]] = True
            if self._mirrored:
                self.ends = self._is_root
            else:
                self.starts = self._is_root

    def _count(self, a: Ints, n: Ints, rooted: Flags) -> CutDemand:
        entering, leaving = self._rule(a, n, rooted)
        if self._mirrored:
            entering, leaving = leaving, entering
        return CutDemand(entering * self._chunks, leaving * self._chunks)

    def of_each_rank(self) -> CutDemand:
        member = self._group >= 0
        sizes = np.where(member, self._sizes[self._group], 0)
        return self._count(member * np.int64(1), sizes, self._is_root)

    def of_ranks(self, inside: Flags) -> CutDemand:
        groups = len(self._sizes)
        counted = np.bincount(self._group[inside & (self._group >= 0)], minlength=groups)
        rooted = np.zeros(groups, np.bool_)
        rooted[self._group[inside & self._is_root]] = True
        every = self._count(counted, self._sizes, rooted)
        return CutDemand(every.entering.sum(keepdims=True), every.leaving.sum(keepdims=True))


class _Custom:
    """The demands of a custom problem; each copies, or reduces to one rank."""

    def __init__(self, problem: Problem, chunks: int) -> None:
        demands = problem.demands
        self._ranks = problem.topology.size
        self._count = np.array([d.count * chunks for d in demands], np.int64)
        self._reduces = np.array([d.reduces for d in demands], np.bool_)
        self._holders, self._held = _flat([d.holders for d in demands])
        self._wanted, self._wants = _flat([d.wanted for d in demands])
        self.starts = self._flags(self._holders)
        self.ends = self._flags(self._wanted)

    def _flags(self, ranks: Ints) -> Flags:
        found = np.zeros(self._ranks, np.bool_)
        found[ranks] = True
        return found

    def of_each_rank(self) -> CutDemand:
        entering, leaving = np.zeros((2, self._ranks), np.int64)
        held, wants = self._held * self._ranks, self._wants * self._ranks
        alone = np.bincount(self._held, minlength=len(self._count)) == 1
        single = np.bincount(self._wants, minlength=len(self._count)) == 1
        holds_itself = np.isin(wants + self._wanted, held + self._holders)
        wants_itself = np.isin(held + self._holders, wants + self._wanted)
        # A copy comes in unless it is there; a sum does unless its only part is there.
        summed = self._reduces[self._wants]
        comes = np.where(summed, ~(holds_itself & alone[self._wants]), ~holds_itself)
        np.add.at(entering, self._wanted, comes * self._count[self._wants])
        # A part goes out unless the sum stays; a copy must if nobody else can give it.
        summed = self._reduces[self._held]
        stays = wants_itself & single[self._held]
        goes = np.where(summed, ~wants_itself, alone[self._held] & ~stays)
        np.add.at(leaving, self._holders, goes * self._count[self._held])
        return CutDemand(entering, leaving)

    def of_ranks(self, inside: Flags) -> CutDemand:
        size = len(self._count)
        held = np.bincount(self._held[inside[self._holders]], minlength=size)
        wanted = np.bincount(self._wants[inside[self._wanted]], minlength=size)
        held_out = np.bincount(self._held, minlength=size) - held
        wanted_out = np.bincount(self._wants, minlength=size) - wanted
        summed = self._reduces
        enters = (wanted > 0) & np.where(summed, held_out > 0, held == 0)
        leaves = (wanted_out > 0) & np.where(summed, held > 0, held_out == 0)
        return CutDemand(
            self._count[enters].sum(keepdims=True), self._count[leaves].sum(keepdims=True)
        )


def _flat(lists: list[tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Return all values in one array, and the list that each stands in."""
    values = np.array([x for ranks in lists for x in ranks], np.int64)
    return values, np.repeat(np.arange(len(lists)), [len(ranks) for ranks in lists])
