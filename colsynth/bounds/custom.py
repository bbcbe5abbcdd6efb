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

from colsynth.bounds.network import refuse_pair
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Cut, Direction, FlowBound, Problem, Topology

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
    return FlowBound(algbw, sets.cut(nodes), algbw, prices=(), reached=None, exact=False)


def _refuse_unreachable(problem: Problem) -> None:
    """Refuse data that has no way to where it is wanted; two GPUs are named."""
    after: dict[int, list[int]] = {}
    for link in problem.topology.links:
        after.setdefault(link.source, []).append(link.target)
    known: dict[int, int] = {}

    def reached(rank: int) -> int:
        if rank not in known:
            known[rank] = _reached_from(problem.topology, after, rank)
        return known[rank]

    for demand in problem.demands:
        for rank in demand.wanted:
            apart = [holder for holder in demand.holders if not reached(holder) >> rank & 1]
            if apart and (demand.reduces or len(apart) == len(demand.holders)):
                refuse_pair(problem.topology, apart[0], rank)


def _reached_from(topology: Topology, after: dict[int, list[int]], rank: int) -> int:
    """Return the ranks that links lead to from one, as bits."""
    seen = {topology.ranks[rank]}
    front = list(seen)
    while front:
        found = set(after.get(front.pop(), ())) - seen
        seen |= found
        front += found
    return _bits(r for r, node in enumerate(topology.ranks) if node in seen)


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
        """Return a set to which moving no single node to the other side does any good."""
        best = start
        work = len(self._all) * (len(self._topology.links) + len(self._demands))
        while work <= _WORK:
            tried = (self._rated(best[1] ^ {node}) for node in sorted(self._all))
            least = min(filter(None, tried), key=lambda found: found[0], default=best)
            if least[0] >= best[0]:
                break
            best = least
        return best

    def cut(self, nodes: frozenset[int]) -> Cut:
        """Return the cut around a set."""
        topology = self._topology
        links = self._leaving(nodes)
        gpus = tuple(rank for rank, node in enumerate(topology.ranks) if node in nodes)
        bandwidth = sum((topology.links[i].bandwidth for i in links), Fraction(0))
        return Cut(Direction.OUT, tuple(sorted(nodes)), gpus, links, bandwidth)

    def _leaving(self, nodes: frozenset[int]) -> tuple[int, ...]:
        inside = np.zeros(len(self._all), np.bool_)
        inside[list(nodes)] = True
        crossing = inside[self._tail] & ~inside[self._head]
        return tuple(np.flatnonzero(crossing).tolist())

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
        links = self._topology.links
        room = sum((links[i].bandwidth for i in self._leaving(nodes)), Fraction(0))
        return room * self._total / must, nodes

    def _ranks_of(self, nodes: frozenset[int]) -> int:
        return _bits(r for r, node in enumerate(self._topology.ranks) if node in nodes)


def _bits(ranks: Iterable[int]) -> int:
    return sum(1 << rank for rank in ranks)


def _leaves(held: int, wanted: int, inside: int, reduces: bool) -> bool:
    """Return whether chunks, or a part of their sum, must leave the ranks inside."""
    if not wanted & ~inside:
        return False
    return bool(held & inside) if reduces else not held & ~inside
