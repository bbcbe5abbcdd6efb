"""Forests of several process groups that share the links.

First every group has its best trees, as if it were alone, at the pace that the busiest link
lets all of them keep. Where that falls short of the bound, groups take turns: each packs its
trees into what those before it leave free at a pace that is aimed at. No theorem says that such
a turn finds the best; the gap to the bound is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import lcm

from colsynth.bounds.groups.bounds import bound_of_groups, forwarding
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import (
    Collective,
    Direction,
    Forest,
    Phase,
    Problem,
    Tree,
    chunks_on_links,
    unit_bandwidth,
)
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest.equal_roots import equal_forest
from colsynth.synthesis.groups.outward import OutwardTrees
from colsynth.topology.communicator import Communicator, communicators

_HALVES = {Direction.IN: Collective.REDUCE_SCATTER, Direction.OUT: Collective.ALLGATHER}
"""What the phases of an allreduce are, each by itself."""

_ROUNDS = 4
"""How often a pace between the best one so far and the bound is aimed at."""

_FINE = 16
"""Trees per root, at least, where groups take turns: few trees leave much of a link unused."""

_MANY = 64
"""Trees per root where groups would need very different numbers of them."""

_MOST = 2**12
"""Common multiples of these numbers that are still taken."""

Packed = tuple[int, tuple[Tree, ...]]
"""Trees per root, and the trees of all groups."""


def forest_of_several(problem: Problem, trees: str, prefer: str, target: Target) -> Forest:
    """Return the trees of several groups, and the pace that all of them keep together.

    Parameters
    ----------
    problem : Problem
        With groups.
    trees, prefer : str
        As in `PackTrees`, for every group.
    target : Target

    Raises
    ------
    InfeasibleError
        CS302: some member cannot be reached.
    """
    optimum = bound_of_groups(problem)
    found = []
    for cut, rate in zip(optimum.cuts, optimum.rates, strict=True):
        whole = problem.collective is Collective.ALLREDUCE
        kind = _HALVES[cut.direction] if whole else problem.collective
        turns = _Turns(replace(problem, collective=kind), trees, prefer, target)
        found.append(turns.best(rate))
    count = lcm(*(number for number, _ in found))
    phases = []
    for cut, (number, grown) in zip(optimum.cuts, found, strict=True):
        wider = _weighted(grown, count // number)
        unit = unit_bandwidth(problem.topology, chunks_on_links(wider))
        phases.append(Phase(cut.direction, wider, unit))
    return Forest(problem, optimum, count, tuple(phases))


def _weighted(trees: Iterable[Tree], times: int) -> tuple[Tree, ...]:
    return tuple(replace(tree, weight=tree.weight * times) for tree in trees)


class _Turns:
    """Several groups in one phase."""

    def __init__(self, problem: Problem, trees: str, prefer: str, target: Target) -> None:
        self._problem, self._trees, self._prefer = problem, trees, prefer
        self._target = target
        self._groups = communicators(problem)
        self._parts = len(problem.roots) // len(self._groups)

    def best(self, bound: Fraction) -> Packed:
        """Return the best trees found; `bound` is the most that there can be, bytes/s."""
        best = self._alone()
        count = best[0]
        fine = self._trees if self._trees.isdigit() else str(count * -(-_FINE // count))
        low, high = self._algbw(best), bound
        aim = high
        for _ in range(_ROUNDS):
            if self._algbw(best) == bound:
                break
            tried = self._in_turn(aim, fine)
            if tried is not None and self._algbw(tried) > self._algbw(best):
                best = tried
            reached = self._algbw(best)
            low, high = max(low, reached), high if reached >= aim else aim
            aim = (low + high) / 2
        return best

    def _algbw(self, found: Packed) -> Fraction:
        """Return the bytes/s of one group's message."""
        count, trees = found
        unit = unit_bandwidth(self._problem.topology, chunks_on_links(trees))
        return count * self._parts * unit

    def _alone(self) -> Packed:
        found = [self._forest(group, self._trees) for group in self._groups]
        if lcm(*(forest.trees_per_root for forest in found)) > _MOST:
            found = [self._forest(group, str(_MANY)) for group in self._groups]
        return self._joined(found)

    def _in_turn(self, aim: Fraction, trees: str) -> Packed | None:
        """Return trees that share the links at about a pace; None where some group finds none."""
        left = [link.bandwidth for link in self._problem.topology.links]
        found: list[Forest] = []
        for group in self._groups:
            try:
                forest = self._forest(_with_room(group, left), trees)
            except (InfeasibleError, InputError):
                return None
            found.append(forest)
            (phase,) = forest.phases
            unit = min(phase.unit_bandwidth, aim / forest.chunks)
            for link, load in chunks_on_links(phase.trees).items():
                left[link] -= load * unit
        return self._joined(found)

    def _forest(self, group: Communicator, trees: str) -> Forest:
        """Return a group's trees, with the links of the whole topology."""
        group = forwarding(group) if group.relays else group
        forest = equal_forest(group.problem, trees, self._prefer, self._target)
        outward = OutwardTrees(self._problem.topology, group)
        phases = tuple(outward.phase(phase, group.problem) for phase in forest.phases)
        return replace(forest, phases=phases)

    def _joined(self, found: list[Forest]) -> Packed:
        count = lcm(*(forest.trees_per_root for forest in found))
        trees = [
            tree
            for forest in found
            for tree in _weighted(forest.phases[0].trees, count // forest.trees_per_root)
        ]
        return count, tuple(trees)


def _with_room(group: Communicator, left: list[Fraction]) -> Communicator:
    """Return a group on the bandwidth that is left of each link of the whole topology."""
    topology = group.problem.topology
    pairs = [
        (old, replace(link, bandwidth=left[old]))
        for old, link in zip(group.links, topology.links, strict=True)
        if left[old] > 0
    ]
    topology = replace(topology, links=tuple(link for _, link in pairs))
    return replace(
        group,
        problem=replace(group.problem, topology=topology),
        links=tuple(old for old, _ in pairs),
    )
