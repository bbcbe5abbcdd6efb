"""A bound on the bandwidth of a collective of one's own: sets of nodes that data must leave.

What only GPUs of a set hold must leave it where somebody outside wants it; a contribution from
inside must where its sum is wanted outside, once for all that are added up inside. So the
message takes at least as long as that takes over the links that leave the set. Every set gives a
bound; those of single nodes, of boxes, and of who holds and who wants the same are tried, and
the best are improved node by node. Nothing says that the least of all sets is found, nor that it
is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.cuts import cut_of, improved
from colsynth.bounds.network import refuse_pair
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Direction, FlowBound, Problem
from colsynth.topology.reach import reached

_STARTS = 4
"""Sets that are improved."""
_WORK = 2 * 10**6
"""Nodes times links and demands up to which sets are improved."""
_MOST_DEMANDS = 200
"""Demands whose holders and takers are tried as sets."""

Found = tuple[Fraction, frozenset[int]]
"""Bytes per second that a set allows for the whole message, and the set."""


def custom_bound(problem: Problem) -> FlowBound:
    """Return the least bound found on a collective of one's own.

    Raises
    ------
    InfeasibleError
        CS302: some data cannot get where it is wanted.
    InputError
        CS307: nothing has to move.
    """
    _refuse_unreachable(problem)
    sets = _Sets(problem)
    tried = sorted(sets.tried(), key=lambda found: found[0])[:_STARTS]
    if not tried:
        phrase = "nothing has to move: all chunks are where they are wanted"
        raise InputError(Diagnostic("CS307", phrase))
    algbw, nodes = min((sets.improved(found) for found in tried), key=lambda found: found[0])
    cut = cut_of(problem.topology, Direction.OUT, sets.inside(nodes))
    return FlowBound(algbw, cut, algbw, prices=(), reached=None, exact=False)


def _refuse_unreachable(problem: Problem) -> None:
    """Refuse data that has no way to where it is wanted; two GPUs are named."""
    ranks, arcs = problem.topology.ranks, problem.topology.link_between
    known: dict[int, set[int]] = {}

    def is_reached(rank: int, other: int) -> bool:
        if rank not in known:
            known[rank] = reached(ranks[rank], arcs)
        return ranks[other] in known[rank]

    for demand in problem.demands:
        for rank in demand.wanted:
            apart = [holder for holder in demand.holders if not is_reached(holder, rank)]
            if apart and (demand.reduces or len(apart) == len(demand.holders)):
                refuse_pair(problem.topology, apart[0], rank)


class _Sets:
    """What has to leave sets of nodes; sets of ranks are kept as bits of a number."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._topology = problem, problem.topology
        self._demands = [
            (_bits(x.holders), _bits(x.wanted), x.count, x.reduces) for x in problem.demands
        ]
        self._total = sum(demand.count for demand in problem.demands)
        self._tail = np.array([link.source for link in self._topology.links], np.int64)
        self._head = np.array([link.target for link in self._topology.links], np.int64)
        self._all = frozenset(range(len(self._topology.nodes)))

    def tried(self) -> Iterator[Found]:
        """Yield what simple sets allow, and all that they leave out."""
        topology = self._topology
        ranks = topology.ranks
        sets: list[Iterable[int]] = [[node] for node in sorted(self._all)]
        sets += [[i for i in self._all if topology.nodes[i].box == box] for box in topology.boxes]
        for demand in self._problem.demands[:_MOST_DEMANDS]:
            sets += [[ranks[r] for r in demand.holders], [ranks[r] for r in demand.wanted]]
        for nodes in dict.fromkeys(map(frozenset, sets)):
            yield from filter(None, (self._rated(nodes), self._rated(self._all - nodes)))

    def improved(self, start: Found) -> Found:
        """Return a set that no single node makes tighter; the start where that takes too long."""
        work = len(self._all) * (len(self._topology.links) + len(self._demands))
        return improved(start, len(self._all), self._rated) if work <= _WORK else start

    def inside(self, nodes: frozenset[int]) -> NDArray[np.bool_]:
        """Return by node whether a set has it."""
        found = np.zeros(len(self._all), np.bool_)
        found[list(nodes)] = True
        return found

    def _room(self, nodes: frozenset[int]) -> Fraction:
        """Return the bandwidth of the links that leave a set."""
        inside = self.inside(nodes)
        links = np.flatnonzero(inside[self._tail] & ~inside[self._head]).tolist()
        return sum((self._topology.links[i].bandwidth for i in links), Fraction(0))

    def _rated(self, nodes: frozenset[int]) -> Found | None:
        """Return what a set allows; None where nothing has to leave it."""
        inside = self._ranks_of(nodes)
        must = sum(
            count
            for held, wanted, count, reduces in self._demands
            if _leaves(held, wanted, inside, reduces)
        )
        if not must:
            return None
        return self._room(nodes) * self._total / must, nodes

    def _ranks_of(self, nodes: frozenset[int]) -> int:
        return _bits(r for r, node in enumerate(self._topology.ranks) if node in nodes)


def _bits(ranks: Iterable[int]) -> int:
    return sum(1 << rank for rank in ranks)


def _leaves(held: int, wanted: int, inside: int, reduces: bool) -> bool:
    """Return whether chunks, or a part of their sum, must leave the ranks inside."""
    if not wanted & ~inside:
        return False
    return bool(held & inside) if reduces else not held & ~inside
