"""Allreduce over switches that multicast or reduce: the linear program over free roots.

Trees are packed over GPUs and such switches alike. That every tree reaches every such
switch is more than the bound asks for, so `widen` offers several choices of switches and
the best is taken; the gap to the bound is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colsynth.bounds.allreduce.halves import Branching, Halves, Side, halves_of
from colsynth.bounds.allreduce.rooted import Proposal
from colsynth.bounds.network import Ints
from colsynth.model import AllreduceBound, Forest, Phase, Problem, RootedBound
from colsynth.synthesis.allreduce.pack import joined_forest, packed
from colsynth.synthesis.allreduce.whole import WholeSearch, WholeTrees
from colsynth.synthesis.in_network.widen import choices, narrowed, widened


def allreduce_forest(problem: Problem, found: AllreduceBound, trees: str) -> Forest | None:
    """Return a forest whose trees branch at switches; None where there is none.

    Parameters
    ----------
    problem : Problem
    found : AllreduceBound
        Of the problem; without `in_network` there is no such forest.
    trees : str
        ``"auto"``, ``"optimal"`` or the number of trees in all, as in `PackInNetwork`.
    """
    if found.in_network is None:
        return None
    best = max(_proposals(problem), key=lambda item: item[0].reached, default=None)
    if best is None:
        return None
    rooted, branching, halves = best
    search = WholeSearch(problem, rooted, halves)
    whole = search.choose(trees)
    if whole is None:
        return None
    phases = [
        _phase(problem, side, branching, whole, units)
        for side, units in zip(halves.sides, whole.units, strict=True)
    ]
    return joined_forest(problem, found.in_network, whole.counts, phases, in_network=True)


def _proposals(problem: Problem) -> Iterator[tuple[RootedBound, Branching, Halves]]:
    """Yield what each choice of switches to branch at can reach."""
    for branching in choices(problem.topology):
        halves = halves_of(problem, branching, reached=True)
        rooted = Proposal(problem, halves, in_network=True).bound()
        if rooted is not None:
            yield rooted, branching, halves


def _phase(
    problem: Problem, side: Side, branching: Branching, whole: WholeTrees, units: Ints
) -> Phase:
    """Pack the trees of one half over GPUs and switches, then leave the switches out."""
    places = sorted(branching.get(side.direction, ()))
    wider = replace(problem, topology=widened(problem.topology, places))
    phase = Phase(
        side.direction, tuple(packed(wider, side, whole.counts, units)), whole.unit_bandwidth
    )
    return narrowed(phase, problem.topology.size)
