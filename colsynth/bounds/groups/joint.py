"""A bound on several process groups at the same time: cuts that they must cross together.

For a set S every group with a root inside and a member outside must send the shares of the
roots inside over the links that leave S; what they send adds up. Every set gives a bound, no
theorem says which is least: the cuts that are tight for each group alone and for all members
taken together are tried, with unions of them, nodes and boxes, and the best of these are
improved node by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, islice
from math import lcm

from colsynth.bounds.cuts import improved
from colsynth.model import Bound, Cut, Direction, Problem, Topology
from colsynth.model.problem import PHASES
from colsynth.topology.communicator import communicators

_MOST_PAIRS = 500
"""Pairs of cuts whose union is tried."""
_STARTS = 4
"""Sets that are improved."""
_WORK = 10**6
"""Nodes times links up to which sets are improved."""

Found = tuple[Fraction, frozenset[int], Cut]
"""Bytes per second that a set allows each group, the set, and the cut around it."""


def together(problem: Problem, alone: Sequence[Bound], merged: Sequence[Cut]) -> Bound:
    """Return the least bound found on several groups.

    Parameters
    ----------
    problem : Problem
    alone : sequence of Bound
        Of each group by itself.
    merged : sequence of Cut
        By phase, the tightest cut of one group with all members; or empty.
    """
    cuts = _Cuts(problem)
    found: list[Found] = []
    for number, direction in enumerate(PHASES[problem.collective]):
        tight = (*(bound.cuts[number] for bound in alone), *merged[number : number + 1])
        known = [cut.nodes for cut in tight]
        tried = (cuts.rated(direction, x) for x in _sets(problem.topology, known))
        best = sorted((pair for pair in tried if pair), key=lambda pair: pair[0])[:_STARTS]
        tightest = (cuts.improved(direction, pair) for pair in best)
        found.append(min(tightest, key=lambda pair: pair[0]))
    rates = tuple(rate for rate, _, _ in found)
    return Bound(
        algbw=1 / sum((1 / rate for rate in rates), Fraction(0)),
        trees_per_root=lcm(*(bound.trees_per_root for bound in alone)),
        cuts=tuple(cut for _, _, cut in found),
        rates=rates,
    )


def _sets(topology: Topology, known: Iterable[Sequence[int]]) -> Iterator[frozenset[int]]:
    """Yield the known sets, each node, each box, and what all of these leave out."""
    nodes = range(len(topology.nodes))
    boxes = [[i for i in nodes if topology.nodes[i].box == box] for box in topology.boxes]
    pairs = (x | y for x, y in islice(combinations(map(frozenset, known), 2), _MOST_PAIRS))
    whole = frozenset[int]().union(*known)
    for some in (*known, whole, *pairs, *([node] for node in nodes), *boxes):
        yield frozenset(some)
        yield frozenset(nodes) - frozenset(some)


class _Cuts:
    """What cuts allow several groups together."""

    def __init__(self, problem: Problem) -> None:
        self._topology, self._groups = problem.topology, problem.groups
        self._part = dict(zip(problem.roots, problem.weights, strict=True))
        self._whole = Fraction(sum(self._part.values()), len(problem.groups))
        self._takers = _takers(problem)

    def improved(self, direction: Direction, start: Found) -> Found:
        """Return a set that no single node makes tighter; the start where that takes too long."""
        count = len(self._topology.nodes)
        if count * len(self._topology.links) > _WORK:
            return start
        return improved(start, count, partial(self.rated, direction))

    def rated(self, direction: Direction, nodes: frozenset[int]) -> Found | None:
        """Return what a cut allows each group, bytes/s; None where no group must cross it."""
        topology = self._topology
        inside = {rank for rank, node in enumerate(topology.ranks) if node in nodes}
        crossing = {
            number: weight
            for number, group in enumerate(self._groups)
            if not inside.issuperset(group)
            and (weight := sum(self._part.get(rank, 0) for rank in inside.intersection(group)))
        }
        if not crossing:
            return None
        ends = (x.ends for x in topology.links)
        ways = ends if direction is Direction.OUT else ((b, a) for a, b in ends)
        leaving = [i for i, (a, b) in enumerate(ways) if a in nodes and b not in nodes]
        links = tuple(i for i in leaving if not self._takers[i].isdisjoint(crossing))
        bandwidth = sum((topology.links[i].bandwidth for i in links), Fraction(0))
        cut = Cut(direction, tuple(sorted(nodes)), tuple(sorted(inside)), links, bandwidth)
        return self._whole * bandwidth / sum(crossing.values()), nodes, cut


def _takers(problem: Problem) -> list[frozenset[int]]:
    """Return by link the groups that may take it: it is on the machines of these alone."""
    found: list[set[int]] = [set() for _ in problem.topology.links]
    for number, group in enumerate(communicators(problem)):
        for link in group.links:
            found[link].add(number)
    return [frozenset(groups) for groups in found]
