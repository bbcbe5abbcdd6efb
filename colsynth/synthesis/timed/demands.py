"""What a problem asks for, chunk by chunk, as arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import offsets
from colsynth.model import Collective, Demand, Direction, Problem
from colsynth.model.problem import PHASES

Ints = NDArray[np.int32]

_ROOT_ONLY = (Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True)
class Lists:
    """A list of ranks for every chunk, one after the other.

    Parameters
    ----------
    first : int64 (C + 1,)
    items : int32
    """

    first: NDArray[np.int64]
    items: Ints

    @classmethod
    def of(cls, lists: list[tuple[int, ...]]) -> Lists:
        """Return the lists as arrays."""
        first = offsets([len(part) for part in lists])
        return cls(first, np.array([x for part in lists for x in part], np.int32))

    def take(self, index: NDArray[np.int64]) -> Lists:
        """Return the lists at some places."""
        sizes = np.diff(self.first)[index]
        first = offsets(sizes)
        place = np.repeat(self.first[:-1][index] - first[:-1], sizes) + np.arange(first[-1])
        return Lists(first, self.items[place])


@dataclass(frozen=True)
class Wants:
    """Chunks of one phase, outwards: for IN phases holders are where the sums end.

    Parameters
    ----------
    direction : Direction
    number : int32 (C,)
        Number of each chunk in the schedule.
    holders : Lists
    wanted : Lists or None
        None: every member of the holder's group wants every chunk of the group.
    """

    direction: Direction
    number: Ints
    holders: Lists
    wanted: Lists | None

    def take(self, index: NDArray[np.int64]) -> Wants:
        """Return the chunks at some places."""
        wanted = None if self.wanted is None else self.wanted.take(index)
        return Wants(self.direction, self.number[index], self.holders.take(index), wanted)


def count_chunks(problem: Problem, chunks_per_gpu: int) -> tuple[int, int]:
    """Return the number of chunks of a problem, and of one group's message."""
    groups, members = len(problem.members), len(problem.members[0])
    match problem.collective:
        case Collective.CUSTOM:
            total = sum(demand.count for demand in problem.demands) * chunks_per_gpu
            return total, total
        case Collective.BROADCAST | Collective.REDUCE:
            return groups * chunks_per_gpu, chunks_per_gpu
        case Collective.ALLTOALL:
            return groups * members**2 * chunks_per_gpu, members * chunks_per_gpu
    return groups * members * chunks_per_gpu, members * chunks_per_gpu


def count_transfers(problem: Problem, chunks_per_gpu: int) -> int:
    """Return how many transfers any schedule has at least, all phases together."""
    if problem.collective is Collective.CUSTOM:
        return chunks_per_gpu * sum(map(_moves, problem.demands))
    others = sum(len(members) - 1 for members in problem.members)
    each = 1 if problem.collective.rooted else len(problem.members[0])
    phases = len(PHASES.get(problem.collective, (Direction.OUT,)))
    return phases * others * each * chunks_per_gpu


def _moves(demand: Demand) -> int:
    ends = set(demand.holders), set(demand.wanted)
    give, take = ends if demand.reduces else ends[::-1]
    return demand.count * len(give - take)


def chunk_size(problem: Problem, size: int, chunks_per_gpu: int) -> Fraction:
    """Return the bytes of one chunk of a message of `size` bytes."""
    return Fraction(size, count_chunks(problem, chunks_per_gpu)[1])


def wants(problem: Problem, chunks_per_gpu: int) -> tuple[Wants, ...]:
    """Return the chunks of every phase, numbered as `colsynth.model.timed` says."""
    if problem.collective is Collective.CUSTOM:
        return _custom(problem, chunks_per_gpu)
    if problem.collective in PHASES:
        return _spread(problem, chunks_per_gpu)
    pairs = [
        (number, holder, target)
        for number, (holder, target) in enumerate(_pairs(problem))
        if holder != target
    ]
    copies = range(chunks_per_gpu)
    number = np.array([n * chunks_per_gpu + k for n, _, _ in pairs for k in copies], np.int32)
    holders, wanted = (
        Lists(np.arange(len(number) + 1), np.repeat(np.array(ranks, np.int32), chunks_per_gpu))
        for ranks in ([pair[1] for pair in pairs], [pair[2] for pair in pairs])
    )
    return (Wants(Direction.OUT, number, holders, wanted),)


def _pairs(problem: Problem) -> list[tuple[int, int]]:
    """Return (holder, target) of every place of an all-to-all, scatter or gather."""
    root = 0 if problem.root is None else problem.root
    match problem.collective:
        case Collective.ALLTOALL:
            return [(a, b) for group in problem.members for a in group for b in group]
        case Collective.SCATTER:
            return [(group[root], b) for group in problem.members for b in group]
    return [(a, group[root]) for group in problem.members for a in group]


def _spread(problem: Problem, chunks_per_gpu: int) -> tuple[Wants, ...]:
    """Return the phases of a collective in which all of a group want all its chunks."""
    if problem.collective in _ROOT_ONLY:
        root = 0 if problem.root is None else problem.root
        owners = [group[root] for group in problem.members]
    else:
        owners = [rank for group in problem.members for rank in group]
    items = np.repeat(np.array(owners, np.int32), chunks_per_gpu)
    holders = Lists(np.arange(len(items) + 1), items)
    wanted = _listed(problem, holders) if problem.groups and problem.transit else None
    number = np.arange(len(items), dtype=np.int32)
    listed = _listed(problem, holders) if problem.sketch and problem.sketch.leave else wanted
    return tuple(
        Wants(d, number, holders, listed if d is Direction.OUT else wanted)
        for d in PHASES[problem.collective]
    )


def _listed(problem: Problem, holders: Lists) -> Lists:
    """Return the members of each holder's group."""
    group_of = {rank: group for group in problem.members for rank in group}
    return Lists.of([group_of[int(holder)] for holder in holders.items])


def _custom(problem: Problem, chunks_per_gpu: int) -> tuple[Wants, ...]:
    phases = []
    for direction in (Direction.IN, Direction.OUT):
        number: list[int] = []
        holders: list[tuple[int, ...]] = []
        wanted: list[tuple[int, ...]] = []
        place = 0
        for demand in problem.demands:
            count = demand.count * chunks_per_gpu
            if demand.reduces == (direction is Direction.IN):
                inwards = demand.reduces
                number += range(place, place + count)
                holders += [demand.wanted if inwards else demand.holders] * count
                wanted += [demand.holders if inwards else demand.wanted] * count
            place += count
        if number:
            lists = Lists.of(holders), Lists.of(wanted)
            phases.append(Wants(direction, np.array(number, np.int32), *lists))
    return tuple(phases)
